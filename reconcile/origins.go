package reconcile

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

// renderError is an error of a render that knows which lines of templates failed.
type renderError struct{ error }

// withOrigins wraps an error of a render, nil as nil.
func withOrigins(err error) error {
	if err == nil {
		return nil
	}
	return &renderError{err}
}

// Unwrap returns the error as it came.
func (e *renderError) Unwrap() error { return e.error }

// Origins gives the line and the message of each failure of a template.
func (e *renderError) Origins() iter.Seq2[Origin, string] {
	return func(yield func(Origin, string) bool) {
		for _, t := range templating.Errors(e.error) {
			if !yield(Origin{TemplateLine{t.File, t.Line, t.Column, t.Text}, t.Owners}, t.Message) {
				return
			}
		}
	}
}

// templateOrigins knows it of a render of Templates. It keeps no more than
// what the render made anyway, and renders again what wrote a line when it is
// asked.
type templateOrigins struct {
	engine *templating.Engine
	in     *Input
	main   []piece          // in their order
	files  map[fileID]piece // made by templates

	mu      sync.Mutex
	traced  map[tracedKey]*templating.Traced
	indexes map[string]lineIndex // by entry
}

type fileID struct {
	kind dataplane.FileKind
	name string
}

// piece is what one entry made.
type piece struct {
	entry string
	text  string
	each  *Each          // how the entry was rendered, nil for once
	items map[any]string // texts by item, with each
}

type tracedKey struct {
	entry string
	item  any
}

// Origin finds the entry, and the item, whose text has the line, and renders
// that one alone once more.
func (o *templateOrigins) Origin(ctx context.Context, at dataplane.Position) (Origin, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at.Name != "" {
		p, ok := o.files[fileID{at.Kind, at.Name}]
		if !ok {
			if origin := o.in.host.registry.origin(at.Kind, at.Name); origin.File != "" {
				return origin, nil
			}
			return Origin{Owners: o.in.Owners[dataplane.Position{Kind: at.Kind, Name: at.Name}]}, nil
		}
		return o.inPiece(ctx, p, at.Line)
	}
	at.Line = o.in.host.line(at.Line)
	i, before := o.index("", len(o.main), func(i int) string { return o.main[i].text }).find(at.Line)
	if i < 0 {
		return Origin{}, nil
	}
	return o.inPiece(ctx, o.main[i], at.Line-before)
}

// inPiece finds what wrote a line of what one entry made.
func (o *templateOrigins) inPiece(ctx context.Context, p piece, line int) (Origin, error) {
	if p.each == nil {
		return o.trace(ctx, p.entry, p.text, o.in.Vars, tracedKey{entry: p.entry}, line)
	}
	items := p.each.Items
	i, before := o.index(p.entry, len(items), func(i int) string { return p.items[items[i]] }).find(line)
	if i < 0 {
		return Origin{TemplateLine: TemplateLine{File: p.entry}}, nil
	}
	item := items[i]
	origin, err := o.trace(ctx, p.entry, p.items[item], p.each.withItem(o.in.Vars, item), tracedKey{p.entry, item}, line-before)
	if len(ResourcesOf(origin.Owners)) == 0 {
		origin.Owners = []any{item}
	}
	return origin, err
}

// trace renders a text again and returns the origin of a line, but only where
// the text has as many lines again: no origin is better than a wrong one.
func (o *templateOrigins) trace(ctx context.Context, entry, text string, vars map[string]any, key tracedKey, line int) (Origin, error) {
	unknown := Origin{TemplateLine: TemplateLine{File: entry}}
	traced := o.traced[key]
	if traced == nil {
		var err error
		if traced, err = o.engine.RenderTraced(ctx, entry, vars); err != nil {
			return unknown, err
		}
		if o.traced == nil {
			o.traced = map[tracedKey]*templating.Traced{}
		}
		o.traced[key] = traced
	}
	if strings.Count(traced.Text, "\n") != strings.Count(text, "\n") {
		return unknown, nil
	}
	wrote := traced.Origin(line)
	origin := Origin{TemplateLine{wrote.File, wrote.Line, wrote.Column, wrote.Text}, wrote.Owners}
	if origin.File == "" {
		origin.File = entry
	}
	return origin, nil
}

// Owners finds the objects in the items, the variables and the files. Of a
// list it looks at the elements, and of what is neither an object nor says
// itself to whom it belongs at nothing.
func (o *templateOrigins) Owners(context.Context) ([]any, error) {
	var found []any
	for _, name := range slices.Sorted(maps.Keys(o.in.Each)) {
		for _, item := range o.in.Each[name].Items {
			found = appendOwners(found, item)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.in.Vars)) {
		v := reflect.ValueOf(o.in.Vars[name])
		switch v.Kind() {
		case reflect.Slice:
			for i := range v.Len() {
				found = appendOwners(found, v.Index(i).Interface())
			}
		case reflect.Map:
			if _, ok := ResourceOf(v.Interface()); ok {
				found = append(found, v.Interface())
				continue
			}
			for _, key := range sortedKeys(v) {
				found = appendOwners(found, v.MapIndex(key).Interface())
			}
		case reflect.Invalid:
		default:
			found = appendOwners(found, v.Interface())
		}
	}
	for _, f := range o.in.Files {
		for _, owner := range o.in.Owners[dataplane.Position{Kind: f.Kind, Name: f.Name}] {
			found = appendOwners(found, owner)
		}
	}
	return found, nil
}

// appendOwners adds an object, or those to which something belongs.
func appendOwners(found []any, v any) []any {
	if rv := reflect.ValueOf(v); !rv.IsValid() || rv.Kind() == reflect.Pointer && rv.IsNil() {
		return found
	}
	if _, ok := ResourceOf(v); ok {
		return append(found, v)
	}
	if owned, ok := v.(templating.Owned); ok {
		return append(found, owned.Owners()...)
	}
	return found
}

// sortedKeys returns the keys of a map in the order of their text.
func sortedKeys(m reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(m.MapKeys()), func(a, b reflect.Value) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}

// lineIndex has, for texts that lines puts one behind the other, how many lines
// go before each, and at the end how many there are.
type lineIndex []int

// index makes the index of an entry's items once, that of the main text under
// no name.
func (o *templateOrigins) index(name string, n int, text func(int) string) lineIndex {
	if known, ok := o.indexes[name]; ok {
		return known
	}
	index := make(lineIndex, n+1)
	for i := range n {
		s := text(i)
		index[i+1] = index[i] + strings.Count(s, "\n")
		if s != "" && !strings.HasSuffix(s, "\n") {
			index[i+1]++
		}
	}
	if o.indexes == nil {
		o.indexes = map[string]lineIndex{}
	}
	o.indexes[name] = index
	return index
}

// find returns the text that has a line, counted from 1, and how many lines go
// before that; -1 for a line that is not there.
func (x lineIndex) find(line int) (text, before int) {
	after, _ := slices.BinarySearch(x, line) // the first text before which there are that many lines, or more
	if line < 1 || after >= len(x) {
		return -1, 0
	}
	return after - 1, x[after-1]
}
