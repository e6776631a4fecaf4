package origin

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
)

// A failure ends a normal render. A traced render goes on if it can, to find all failures:
// after a refused value, and after a function that fails for an object of a loop.

var envType = reflect.TypeFor[native.Env]()

// Tolerate wraps a function for traced templates: if it fails for an object of a loop, it
// returns zero values.
func Tolerate(function any) any {
	f := reflect.ValueOf(function)
	typ := f.Type()
	own := typ.NumIn() > 0 && typ.In(0) == envType
	in := []reflect.Type{envType}
	for i := range typ.NumIn() {
		if i > 0 || !own {
			in = append(in, typ.In(i))
		}
	}
	var out []reflect.Type
	for i := range typ.NumOut() {
		out = append(out, typ.Out(i))
	}
	call := f.Call
	if typ.IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, typ.IsVariadic()), func(args []reflect.Value) (results []reflect.Value) {
		env, _ := args[0].Interface().(native.Env)
		if !own {
			args = args[1:]
		}
		if env != nil && Of(env) != nil {
			defer Of(env).goOn(env)(func() {
				for _, typ := range out {
					results = append(results, reflect.Zero(typ))
				}
			})
		}
		return call(args)
	}).Interface()
}

// goOn returns a function to defer before a call that may fail. It notes the failure, and
// calls zero if the render can go on. Otherwise it panics again.
func (r *Recorder) goOn(env native.Env) func(zero func()) {
	top, owners, mark, uses := r.top, r.owners, r.mark, r.uses
	return func(zero func()) {
		v := recover()
		if v == nil {
			return
		}
		r.Note(v)
		if env.Context().Err() != nil || !owners.inLoop() {
			panic(v)
		}
		r.top, r.owners, r.mark, r.uses = top, owners, mark, uses // the call may have changed them before it failed
		if who := r.owners.innermost(); !r.left[who] && len(r.refused) < MaxRefused {
			r.left[who] = true // this owner's other failures do not count
			r.top.out.lacks = true
			err := funcs.Recovered(v)
			text, cause := r.lost(funcs.Message(err.Error()), err)
			r.refused = append(r.refused, r.problem(r.spot(), text, funcs.Cause(cause)))
		}
		zero()
	}
}

// Note remembers why a function failed. If Go calls the function or macro of a template,
// Scriggo keeps only the text of the error.
func (r *Recorder) Note(v any) {
	if f, ok := v.(funcs.Failure); ok && r != nil {
		r.cause = f
	}
}

// lost restores the cause of an error if Scriggo kept only its text.
func (r *Recorder) lost(text string, cause error) (string, error) {
	if lost := funcs.Cause(r.cause); lost != nil && !errors.Is(cause, lost) && strings.HasSuffix(strings.TrimRight(text, "\n"), lost.Error()) {
		cause = lost
	}
	return text, cause
}

// Failed returns the problem that ended a render, with its position; ok is false without
// one.
func (r *Recorder) Failed(message string, cause error) (p Problem, ok bool) {
	message, cause = r.lost(message, cause)
	return r.problem(r.spot(), message, cause), r.spot().File != ""
}

// Innermost returns the innermost owner that is an element of a loop, "" if there is none.
// again reports that the owner failed before.
func (r *Recorder) Innermost(owners []any) (who string, again bool) {
	for _, o := range slices.Backward(owners) {
		who = Describe(o)
		if r.turns[who] {
			return who, r.left[who]
		}
	}
	return "", len(owners) > 0 && r.left[Describe(owners[len(owners)-1])]
}

// Refused returns every refused value, and every function that failed in a loop over
// objects.
func (r *Recorder) Refused() []Problem { return r.refused }

// inLoop reports whether one of the owners belongs to a turn of a loop. Other turns may
// follow.
func (h *held) inLoop() bool {
	for ; h != nil; h = h.outer {
		if h.level > 0 {
			return true
		}
	}
	return false
}

// innermost names the innermost owner. Owners with the same name count as one: the render
// skips all of them.
func (h *held) innermost() string {
	for ; h != nil; h = h.outer {
		if n := len(h.objects); n > 0 {
			return Describe(h.objects[n-1])
		}
	}
	return ""
}
