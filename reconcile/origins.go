package reconcile

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

// Origins knows what wrote a configuration. The loop asks only when something
// is wrong. It may be asked from several goroutines.
type Origins interface {
	// Origin says what wrote a line; the zero Origin where that is not known.
	Origin(ctx context.Context, at dataplane.Position) (templating.Origin, error)
	// Owners returns all objects that the configuration was made of, in a
	// stable order.
	Owners(ctx context.Context) ([]any, error)
}

// templateOrigins knows it of a render of Templates. It keeps no more than
// what the render made anyway, and renders again what wrote a line when it is
// asked.
type templateOrigins struct {
	engine *templating.Engine
	in     *Input
	main   []piece          // in their order
	files  map[fileID]piece // made by templates

	mu     sync.Mutex
	traced map[tracedKey]*templating.Traced
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
func (o *templateOrigins) Origin(ctx context.Context, at dataplane.Position) (templating.Origin, error) {
	if at.Name != "" {
		p, ok := o.files[fileID{at.Kind, at.Name}]
		if !ok {
			return templating.Origin{Owners: o.in.Owners[dataplane.Position{Kind: at.Kind, Name: at.Name}]}, nil
		}
		return o.inPiece(ctx, p, at.Line)
	}
	at.Line = o.in.host.line(at.Line)
	var seen lineCounter
	for _, p := range o.main {
		if first, has := seen.add(p.text, at.Line); has {
			return o.inPiece(ctx, p, at.Line-first)
		}
	}
	return templating.Origin{}, nil
}

// inPiece finds what wrote a line of what one entry made.
func (o *templateOrigins) inPiece(ctx context.Context, p piece, line int) (templating.Origin, error) {
	if p.each == nil || line < 1 {
		return o.trace(ctx, p.entry, o.in.Vars, tracedKey{entry: p.entry}, line)
	}
	var seen lineCounter
	for _, item := range p.each.Items {
		first, has := seen.add(p.items[item], line)
		if !has {
			continue
		}
		origin, err := o.trace(ctx, p.entry, withItem(o.in.Vars, p.each.Var, item), tracedKey{p.entry, item}, line-first)
		if len(resourcesOf(origin.Owners)) == 0 {
			origin.Owners = []any{item}
		}
		return origin, err
	}
	return templating.Origin{File: p.entry}, nil
}

func (o *templateOrigins) trace(ctx context.Context, entry string, vars map[string]any, key tracedKey, line int) (templating.Origin, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	traced := o.traced[key]
	if traced == nil {
		var err error
		if traced, err = o.engine.RenderTraced(ctx, entry, vars); err != nil {
			return templating.Origin{File: entry}, err
		}
		if o.traced == nil {
			o.traced = map[tracedKey]*templating.Traced{}
		}
		o.traced[key] = traced
	}
	origin := traced.Origin(line)
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

// lineCounter counts the lines of texts that are put one behind the other as
// lines does.
type lineCounter struct{ lines int }

// add counts a text. It reports whether the line, from 1, is in it, and how
// many lines went before.
func (c *lineCounter) add(text string, line int) (before int, has bool) {
	before = c.lines
	c.lines += strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		c.lines++
	}
	return before, line > before && line <= c.lines
}
