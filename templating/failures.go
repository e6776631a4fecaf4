package templating

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
)

// What fails ends a render. To find all that fails, a traced render goes on
// where it can: behind a function that fails while it is called for an object of
// a loop, as behind a refused value. What Scriggo itself ends a render for, such
// as a nil pointer, takes a run of its own each, without what failed before.

// tolerant returns the functions of the host as traced templates call them.
func (d *declared) tolerant() native.Declarations {
	all := native.Declarations{}
	for name, v := range d.globals {
		f := reflect.ValueOf(v)
		if f.Kind() == reflect.Func && f.Type() != debugType && name != ownerName {
			all[name] = tolerate(f).Interface()
		}
	}
	return all
}

// tolerate makes a function return zero values where it fails and the recorder
// knows for whom.
func tolerate(f reflect.Value) reflect.Value {
	typ := f.Type()
	own := typ.NumIn() > 0 && typ.In(0) == envType
	in := []reflect.Type{envType}
	for i := range typ.NumIn() {
		if i > 0 || !own {
			in = append(in, typ.In(i))
		}
	}
	out := make([]reflect.Type, typ.NumOut())
	for i := range out {
		out[i] = typ.Out(i)
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
		if env == nil {
			return call(args)
		}
		defer recorderOf(env).resume(env, func() {
			results = make([]reflect.Value, len(out))
			for i, typ := range out {
				results[i] = reflect.Zero(typ)
			}
		})()
		return call(args)
	})
}

// resume returns what is to be deferred before a call that may fail: it notes
// the failure and calls zero where the render can go on, and panics on where it
// cannot.
func (r *recorder) resume(env native.Env, zero func()) func() {
	if r == nil {
		return func() {}
	}
	top, owners, mark := r.top, r.owners, r.mark
	return func() {
		v := recover()
		if v == nil {
			return
		}
		r.note(v)
		if env.Context().Err() != nil || !owners.inLoop() {
			panic(v)
		}
		r.top, r.owners, r.mark = top, owners, mark // a function of the template may have failed within
		r.failed(v)
		zero()
	}
}

// failed notes a failure of what is rendered for an object, and that the rest
// of that is of no interest.
func (r *recorder) failed(v any) {
	who := r.owners.innermost()
	if r.left[who] || len(r.refused) >= maxRefused {
		return
	}
	r.left[who] = true
	r.top.out.lacks = true
	err, ok := v.(error)
	if _, is := v.(funcs.Failure); !ok || !is {
		err = &goPanic{v}
	}
	text, cause := r.explain(err)
	at := r.spot()
	e := r.src.at(r.entry, at.file, at.line, at.column, message(text), unwrapFailure(cause))
	e.Owners = r.owners.list()
	r.refused = append(r.refused, e)
}

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
			return describeOwner(h.objects[n-1])
		}
	}
	return ""
}

// innermost is [held.innermost] of an error.
func (e *Error) innermost() string {
	if n := len(e.Owners); n > 0 {
		return describeOwner(e.Owners[n-1])
	}
	return ""
}

// maxFailing is how long a render that failed is repeated to find all that ends it.
const maxFailing = 5 * time.Second

// failures runs an entry that failed again, traced, and returns what is wrong.
func (e *Engine) failures(ctx context.Context, en *entry, vars map[string]any, item string) (all refusals) {
	var ended refusals // what ended a run
	left := map[string]bool{}
	start := time.Now()
	for {
		values, _ := e.decl.values(vars) // anew: the run before may have changed them
		r, traced, again := e.tracedRun(ctx, en, values, item, left)
		var located *Error
		if !errors.As(again, &located) || ctx.Err() != nil || located.Line == 0 {
			return append(append(traced.Refused, all...), ended...)
		}
		who := located.innermost()
		if !r.left[who] { // else it failed before, and this is due to that
			ended = append(ended, located)
		}
		if left[who] || who == "" || who == r.root().base.innermost() || len(ended) >= maxRefused || time.Since(start) >= maxFailing {
			return append(append(traced.Refused, all...), ended...)
		}
		left[who] = true
		for _, refused := range traced.Refused { // not found again
			if refused.innermost() == who {
				all = append(all, refused)
			}
		}
	}
}

// maxHanging is how long a render that did not end in its time runs again, to find
// the line where it is.
const maxHanging = time.Second

// hanging names the line at which a render is that did not end in its time.
func (e *Engine) hanging(ctx context.Context, en *entry, vars map[string]any) error {
	plain := stopped(en.name, ctx.Err())
	if _, err := en.traced(); err != nil || !errors.Is(plain.Err, context.DeadlineExceeded) {
		return plain
	}
	values, err := e.decl.values(vars)
	if err != nil {
		return plain
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxHanging)
	defer cancel()
	r, _, _ := e.tracedRun(ctx, en, values, "", nil)
	if at := r.spot(); ctx.Err() != nil && at.file != "" {
		return e.src.at(en.name, at.file, at.line, at.column, plain.Message, plain.Err)
	}
	return plain
}
