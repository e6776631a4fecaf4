package templating

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/open2b/scriggo/native"
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
		if env.Context().Err() != nil || r.profiler != nil || !owners.inLoop() {
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
	if _, is := v.(failure); !ok || !is {
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

// maxFailing is how long it is looked for all that ends a render, one run after
// the other, by a [stopwatch]: what an engine has in Engine.patience.
const maxFailing = 5 * time.Second

// failures runs an entry that failed again, traced, and returns what is wrong.
func (e *Engine) failures(ctx context.Context, en *entry, vars map[string]any, item string) (all refusals) {
	var ended refusals // what ended a run
	left := map[string]bool{}
	watch := startStopwatch(e.patience, nil)
	defer watch.stop()
	for {
		values, _ := e.decl.values(vars) // anew: the run before may have changed them
		r, traced, again := e.tracedWithout(ctx, en, values, item, left)
		var located *Error
		if !errors.As(again, &located) || ctx.Err() != nil || located.Line == 0 {
			return append(append(traced.Refused, all...), ended...)
		}
		who := located.innermost()
		if !r.left[who] { // else it failed before, and this is due to that
			ended = append(ended, located)
		}
		if left[who] || who == "" || who == r.root().base.innermost() || len(ended) >= maxRefused || watch.elapsed() >= e.patience {
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

// How long it is looked for what does not end, by a [stopwatch]: a part of the time
// that the render took for each run.
const (
	minHanging = time.Second
	maxHanging = 5 * time.Second
	mostHangs  = 3 // objects; with more it is not due to them
)

// hanging says why a render did not end in its time: the objects for which it
// would not, if that is so, and without which it comes along. It runs the entry
// again for a while, as ctx is done.
func (e *Engine) hanging(ctx context.Context, en *entry, vars map[string]any, item string, took time.Duration) error {
	plain := stopped(en.name, ctx.Err())
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return plain
	}
	left := map[string]bool{}
	var all refusals
	for range mostHangs + 1 {
		found := e.hangs(ctx, en, vars, item, left, took)
		if found == nil {
			break
		}
		found.Message, found.Err = plain.Message, plain.Err
		all = append(all, found)
		who := found.innermost()
		if item != "" && found.atItem {
			break // which cannot be left out
		}
		if left[who] { // nor can what a call of owner says
			return plain
		}
		left[who] = true
	}
	if len(all) == 0 || len(all) > mostHangs {
		return plain
	}
	return all.err()
}

// hangingItem is hanging for one of several items: if another one hangs as well,
// it is not due to the item.
func (e *Engine) hangingItem(ctx context.Context, en *entry, vars map[string]any, variable string, items []any, i int, took time.Duration) error {
	other := items[(i+1)%len(items)]
	err := e.hanging(ctx, en, with(vars, variable, items[i]), variable, took)
	if found := Errors(err); len(found) > 0 && len(found[0].Owners) > 0 &&
		e.hangs(ctx, en, with(vars, variable, other), variable, nil, took) != nil {
		return stopped(en.name, ctx.Err())
	}
	return err
}

// hangs runs an entry for a while, and returns where it is if it has been there,
// with one object, for most of that.
func (e *Engine) hangs(ctx context.Context, en *entry, vars map[string]any, item string, left map[string]bool, took time.Duration) *Error {
	values, err := e.decl.values(vars)
	if err != nil {
		return nil
	}
	if _, err := en.traced(); err != nil {
		return nil
	}
	probe := min(max(took/8, minHanging), maxHanging)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	watch := startStopwatch(probe, cancel)
	defer watch.stop()
	r, _, _ := e.tracedWithout(withStopwatch(ctx, watch), en, values, item, left)
	if r == nil || ctx.Err() == nil {
		return nil
	}
	base := r.root().base
	ofItem := item != "" && len(objectsOrNone(vars[item])) > 0
	for h := r.owners; h != nil; h = h.outer {
		if h.level == 0 && (h != base || !ofItem) || len(h.objects) == 0 || watch.elapsed()-h.since < probe/2 {
			continue
		}
		at := r.spot()
		found := e.src.at(en.name, at.file, at.line, at.column, "", nil)
		found.Owners, found.atItem = h.list(), h.level == 0
		return found
	}
	return nil
}
