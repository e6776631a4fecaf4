package templating

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/origin"
	"github.com/hapticsdk/haptic/templating/internal/place"
	"github.com/hapticsdk/haptic/templating/internal/rewrite"
)

// Owned is a value that names its own owners. The host makes it from one or more Kubernetes
// objects, and a template loops over it.
type Owned interface {
	// Owners returns these objects, the most important last.
	Owners() []any
}

// OwnersOf returns the Kubernetes objects behind a value, the most important last. These
// are the value itself, the owners of an [Owned], or the objects in the exported fields of
// a struct.
func OwnersOf(v any) []any { return origin.ObjectsOf(v) }

// Origin says which line of a template wrote a line of an output, and for which objects.
type Origin struct {
	File         string // the template
	Line, Column int    // from 1; the column is in characters
	Text         string // that line of the template
	// Owners are the objects of the line, the innermost last. First come arguments of
	// owner(...), loop variables and items that belong to Kubernetes objects; see
	// [OwnersOf]. Then come the objects whose values the line shows. An object has
	// GetNamespace and GetName, or is a map with kind and metadata.
	Owners []any
}

// Traced is the result of a traced render, with the origin of each line.
type Traced struct {
	// Text is the output, up to the failure if the render failed.
	Text string
	// Refused has every value that the escaper refused, and every function that failed in a
	// loop over objects, with position and owners. The render wrote nothing in their place.
	Refused []*Error
	lines   []origin.Line // by line of Text
}

// Origin returns the origin of a line of Text, counted from 1. It returns the zero Origin
// for a line that does not exist.
func (t *Traced) Origin(line int) Origin {
	if line < 1 || line > len(t.lines) {
		return Origin{}
	}
	return Origin(t.lines[line-1])
}

// RenderTraced renders an entry as [Engine.Render] does, and notes the origin of each line.
// It goes on after a value that the escaper refuses, and, inside a loop over objects, after
// a function that fails. One call finds up to 1000 of these; they are in Refused. The error
// is the failure that ended the render. The result is never nil; with an error it has the
// findings so far. RenderTraced is several times slower than Render. Use it to find a
// problem.
//
// For one item of [Engine.RenderEach], set its variable in vars. Variables that are
// Kubernetes objects, or [Owned], are the outermost owners.
//
// The origin of a macro's line is inside the macro. If a template joins or indents texts of
// macros, equal lines may get each other's owners.
func (e *Engine) RenderTraced(ctx context.Context, name string, vars map[string]any) (*Traced, error) {
	en, values, err := e.prepare(ctx, name, vars)
	if err != nil {
		return &Traced{}, err
	}
	t, _, err := e.trace(ctx, en, values, "", nil)
	return t, err
}

// tracedEntry is an entry compiled with calls of a recorder. The normal render pays nothing
// for it.
type tracedEntry struct {
	template *scriggo.Template
	spots    []origin.Spot // statements
	values   []origin.Spot // shown values
}

func (e *Engine) compileTraced(name string) (*tracedEntry, error) {
	t := rewrite.New(e.src, name, place.KindOf(name), e.names, e.snippets, true)
	all := e.functions(escapers(func(env native.Env, v any, id int) native.JSON {
		r := origin.Of(env)
		text, ok := tryEscape(r, v, id, &t.Sites[id])
		if ok {
			_, raw := v.(Raw)
			r.Show(v, text, raw, id)
		}
		return text
	}))
	for name, f := range origin.Functions() {
		all[name] = f
	}
	for name, f := range e.names.Globals {
		switch {
		case name == ownerName && e.decl.owner:
			all[name] = func(env native.Env, v any) { origin.Of(env).Own(v) }
		case name != "debug" && reflect.TypeOf(f).Kind() == reflect.Func:
			all[name] = origin.Tolerate(f)
		}
	}
	tpl, problems := t.Build(all)
	if len(problems) > 0 { // the plain template compiled: without uses, errors still name lines and the loops around them
		t = rewrite.New(e.src, name, place.KindOf(name), e.names, e.snippets, true)
		t.NoUses = true
		tpl, problems = t.Build(all)
	}
	if len(problems) > 0 {
		return nil, e.problems(name, problems)
	}
	traced := &tracedEntry{template: tpl, spots: t.Spots}
	for _, s := range t.Sites {
		traced.values = append(traced.values, origin.Spot{File: s.File, Line: s.Line, Column: s.Column, Start: -1})
	}
	return traced, nil
}

// tryEscape escapes a value, or notes its refusal and goes on.
func tryEscape(r *origin.Recorder, v any, id int, at *place.Site) (text native.JSON, ok bool) {
	defer func() {
		if panicked := recover(); panicked != nil {
			refused, is := panicked.(*place.Refusal)
			if !is {
				panic(panicked)
			}
			r.Refuse(v, refused.Message, id)
			text, ok = "", false
		}
	}()
	return at.Escape(v), true
}

// failed is the owner at which a traced run ended.
type failed struct {
	who   string // the innermost owner that is an element of a loop, "" if there is none
	again bool   // the owner failed before
}

// trace renders an entry with tracing. It skips elements of loops whose owner is named in
// left. item is the variable of RenderEach, the innermost owner among the variables. The
// error is an *Error with position and owners.
func (e *Engine) trace(ctx context.Context, en *entry, values map[string]any, item string, left map[string]bool) (*Traced, failed, error) {
	traced, err := en.traced()
	if err != nil {
		return &Traced{}, failed{}, e.unlocated(en, err)
	}
	var owners []any
	for _, name := range append(slices.DeleteFunc(slices.Clone(en.uses), func(name string) bool { return name == item }), item) {
		if ptr, ok := values[name]; ok {
			owners = append(owners, reflect.ValueOf(ptr).Elem().Interface())
		}
	}
	rec := origin.NewRecorder(e.src, traced.spots, traced.values, left, owners)
	r, err := e.run(rec.With(ctx), place.KindOf(en.name), traced.template, values, 0)
	t := &Traced{Text: r.out.String()}
	t.lines = rec.Lines(t.Text)
	for _, p := range rec.Refused() {
		t.Refused = append(t.Refused, e.at(en.name, &p))
	}
	var found *Error
	if err == nil {
		f := r.check(en.sites)
		if f == nil {
			return t, failed{}, nil
		}
		o := t.Origin(f.Line)
		found = &Error{Entry: en.name, File: o.File, Line: o.Line, Column: o.Column, Text: o.Text, Message: f.Message, Owners: o.Owners}
	} else {
		p, ok := rec.Failed(explain(err))
		switch {
		case ctx.Err() != nil:
			stop := stopped(en.name, ctx.Err())
			if !ok {
				return t, failed{}, stop
			}
			p.Message, p.Err, p.Owners = stop.Message, stop.Err, nil
		case !ok:
			return t, failed{}, e.unlocated(en, err)
		}
		found = e.at(en.name, &p)
	}
	who, again := rec.Innermost(found.Owners)
	return t, failed{who, again}, found
}

// maxFailing bounds how long failures repeats a failed render to find all its errors.
// maxHanging bounds the repetition of a render that ran out of time, to find its line.
const (
	maxFailing = 5 * time.Second
	maxHanging = time.Second / 2
)

// failures runs a failed entry again, traced, and returns its errors. Each error that ends
// Scriggo's run, such as a nil pointer, takes another run without the owners that failed
// before. A traced run of a too large output may take many times as long: after maxFailing,
// failures names its current line.
func (e *Engine) failures(ctx context.Context, en *entry, vars map[string]any, item string, full error) (all refusals) {
	if full != nil {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, maxFailing)
		defer end()
	}
	var ended refusals // the errors that ended a run
	left := map[string]bool{}
	for start := time.Now(); ; {
		values, _ := e.decl.values(vars) // anew: the previous run may have changed them
		traced, at, again := e.trace(ctx, en, values, item, left)
		var located *Error
		if errors.As(again, &located) && located.Line > 0 && ctx.Err() != nil && full != nil {
			plain := e.unlocated(en, full)
			located.Message, located.Err = plain.Message, plain.Err
			return append(append(traced.Refused, all...), append(ended, located)...)
		}
		if !errors.As(again, &located) || ctx.Err() != nil || located.Line == 0 {
			return append(append(traced.Refused, all...), ended...)
		}
		if !at.again { // otherwise an earlier failure caused it
			ended = append(ended, located)
		}
		if at.who == "" || left[at.who] || len(ended) >= origin.MaxRefused || time.Since(start) >= maxFailing {
			return append(append(traced.Refused, all...), ended...)
		}
		left[at.who] = true
		for _, refused := range traced.Refused { // the next run will not find these
			if slices.ContainsFunc(refused.Owners, func(o any) bool { return origin.Describe(o) == at.who }) {
				all = append(all, refused)
			}
		}
	}
}

// hanging names the current line of a render that ran out of time.
func (e *Engine) hanging(ctx context.Context, en *entry, vars map[string]any) error {
	plain := stopped(en.name, ctx.Err())
	values, err := e.decl.values(vars)
	if err != nil || !errors.Is(plain.Err, context.DeadlineExceeded) {
		return plain
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxHanging)
	defer cancel()
	_, _, err = e.trace(ctx, en, values, "", nil)
	var at *Error
	if errors.As(err, &at) && (ctx.Err() != nil || errors.Is(err, ErrTooLarge)) {
		plain.File, plain.Line, plain.Column, plain.Text = at.File, at.Line, at.Column, at.Text
	}
	return plain
}
