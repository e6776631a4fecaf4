package templating

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// tracedEntry is an entry compiled with calls of a recorder, for when something
// is wrong. The normal render pays nothing for it.
type tracedEntry struct {
	name     string
	template *scriggo.Template
	spots    []spot // statements
	values   []spot // shown values
}

func (e *Engine) compileTraced(name string) (*tracedEntry, error) {
	t := newTransformer(e.src, name, e.decl)
	t.traced = true
	traced := &tracedEntry{name: name}
	escape := func(env native.Env, v any, id int) native.JSON {
		r := recorderOf(env)
		text := r.escape(v, id, &t.sites[id])
		r.show(v, text, id)
		return text
	}
	more := native.Declarations{
		escapeName: escape, firstName: firstEscaper(escape),
		bufferName: func(env native.Env, v any, id int) native.JSON {
			text := escape(env, v, id)
			grow(env, len(text))
			return text
		},
		traceName: trace, elementName: element, beginName: begin, beginFileName: beginFile, endName: end,
		beginTextName: beginText, endTextName: endText,
	}
	if e.decl.owner {
		more[ownerName] = own
	}
	maps.Copy(more, e.decl.tolerant())
	tpl, err := e.build(t, name, nil, more)
	if err != nil {
		return nil, err
	}
	traced.template, traced.spots = tpl, t.spots
	for _, s := range t.sites {
		traced.values = append(traced.values, spot{file: s.File, line: s.Line, column: s.Column, start: -1})
	}
	return traced, nil
}

// escape is the escaper that goes on behind a refused value.
func (r *recorder) escape(v any, id int, at *place.Site) (text native.JSON) {
	defer func() {
		panicked := recover()
		if panicked == nil {
			return
		}
		refused, ok := panicked.(*place.Refusal)
		if !ok {
			panic(panicked)
		}
		text = ""
		if macro, ok := v.(native.JSON); ok && r.find(string(macro), r.shownAt()).lacks {
			return // refused for what is missing in it
		}
		r.refuse(refused, id)
	}()
	return at.Escape(v)
}

// rerun runs an entry traced. The values are those of [declared.values]; item is
// the variable of RenderEach, the innermost of the variables that are owners.
// The error, if there is one, is what Scriggo says; the recorder knows where.
func (e *Engine) rerun(ctx context.Context, en *entry, values map[string]any, item string, left map[string]bool) (*recorder, *output, error) {
	traced, err := en.traced()
	if err != nil {
		return nil, nil, err
	}
	r := newRecorder(e.src, traced)
	maps.Copy(r.left, left)
	for _, name := range variables(en.uses, item) {
		if ptr, ok := values[name]; ok {
			r.hold(0, true, objectsOrNone(reflect.ValueOf(ptr).Elem().Interface()))
		}
	}
	r.top.base = r.owners
	out := &output{max: e.max}
	err = e.decl.run(withRecorder(ctx, r), traced.template, out, values)
	return r, out, err
}

// variables returns names with one of them last.
func variables(names []string, last string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == last })
	return append(names, last)
}
