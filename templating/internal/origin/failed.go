package origin

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
)

// What fails ends a render. To find all that fails, a traced render goes on
// where it can: behind a function that fails while it is called for an object of
// a loop, as behind a refused value.

var envType = reflect.TypeFor[native.Env]()

// Tolerate makes a function as traced templates call it: it returns zero values where
// it fails and the recorder knows for whom.
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

// goOn returns what is to be deferred before a call that may fail: it notes the
// failure and calls zero where the render can go on, and panics on where it cannot.
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
		r.top, r.owners, r.mark, r.uses = top, owners, mark, uses // a function of the template may have failed within
		if who := r.owners.innermost(); !r.left[who] && len(r.refused) < MaxRefused {
			r.left[who] = true // the rest of it is of no interest
			r.top.out.lacks = true
			err := funcs.Recovered(v)
			text, cause := r.lost(funcs.Message(err.Error()), err)
			r.refused = append(r.refused, r.problem(r.spot(), text, funcs.Cause(cause)))
		}
		zero()
	}
}

// Note remembers why a function failed. Of what fails in a function or macro of a
// template that Go calls, Scriggo keeps the text alone.
func (r *Recorder) Note(v any) {
	if f, ok := v.(funcs.Failure); ok && r != nil {
		r.cause = f
	}
}

// lost returns the cause of an error that Scriggo lost.
func (r *Recorder) lost(text string, cause error) (string, error) {
	if lost := funcs.Cause(r.cause); lost != nil && !errors.Is(cause, lost) && strings.HasSuffix(strings.TrimRight(text, "\n"), lost.Error()) {
		cause = lost
	}
	return text, cause
}

// Failed says where a render is that ended with an error; it reports false where
// that is not known.
func (r *Recorder) Failed(message string, cause error) (p Problem, ok bool) {
	message, cause = r.lost(message, cause)
	return r.problem(r.spot(), message, cause), r.spot().File != ""
}

// Innermost returns the innermost owner of a failure that is of a turn of a loop, or ""
// if none is left to try. again reports that this owner failed before.
func (r *Recorder) Innermost(owners []any) (who string, again bool) {
	for _, o := range slices.Backward(owners) {
		if who = Describe(o); r.turns[who] {
			return who, r.left[who]
		}
	}
	return "", len(owners) > 0 && r.left[Describe(owners[len(owners)-1])]
}

// Refused has every value that was refused, and every function that failed in a loop
// over objects.
func (r *Recorder) Refused() []Problem { return r.refused }

// inLoop reports whether one of the owners is of a turn of a loop, so that there
// may be others.
func (h *held) inLoop() bool {
	for ; h != nil; h = h.outer {
		if h.level > 0 {
			return true
		}
	}
	return false
}

// innermost names the innermost owner. What has the same name is the same: it
// is left out as a whole.
func (h *held) innermost() string {
	for ; h != nil; h = h.outer {
		if n := len(h.objects); n > 0 {
			return Describe(h.objects[n-1])
		}
	}
	return ""
}
