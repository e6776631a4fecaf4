package templating

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/templating/internal/origin"
	"github.com/hapticsdk/haptic/templating/internal/place"
	"github.com/hapticsdk/haptic/templating/internal/rewrite"
)

// A template around an entry renders it for several items: a loop that sets the variable
// and ends each item with a mark.
const (
	eachPrefix = "each/" // of the name of that template
	eachItems  = "haptic_each_items"
	eachItem   = "haptic_each_item"
	eachMark   = "haptic_each_mark"
)

// RenderEach renders one entry once for each item, with the variable set to the item, and
// returns one text an item. The result is that of one call of [Engine.Render] for each
// item, at a fraction of the cost. vars has the other variables. The error reports the
// problems of all items; see [Errors]. Each *Error has its item as the owner, if the item
// is a Kubernetes object or [Owned].
func (e *Engine) RenderEach(ctx context.Context, name, variable string, items []any, vars map[string]any) ([]string, error) {
	en := e.entries[name]
	typ := e.decl.vars[variable]
	switch {
	case en == nil:
		return nil, &Error{Entry: name, File: name, Err: fs.ErrNotExist, Message: "no such entry"}
	case typ == nil:
		return nil, &Error{Entry: name, File: name, Message: fmt.Sprintf("variable %s is not declared", variable)}
	case ctx.Err() != nil:
		return nil, stopped(name, ctx.Err())
	}
	// A loop over one item saves nothing. In a loop, the next item would see an assignment
	// to a variable.
	if len(items) > 1 && !en.assigns {
		texts, ok := e.renderLoop(ctx, en, variable, typ, items, vars)
		if ok {
			return texts, nil
		}
		if ctx.Err() != nil && len(texts) < len(items) {
			return nil, e.hanging(ctx, en, with(vars, variable, items[len(texts)]))
		}
	}
	// One by one: this also gives errors their position.
	own := with(vars, variable, nil)
	texts := make([]string, len(items))
	size := 0
	var all refusals
	for i, item := range items {
		own[variable] = item
		var err error
		if texts[i], err = e.render(ctx, name, own, variable); err != nil {
			all = append(all, Errors(err)...)
		}
		if ctx.Err() != nil {
			return nil, stopped(name, ctx.Err())
		}
		size += len(texts[i])
		if size > e.max {
			all = append(all, e.unlocated(en, fmt.Errorf("%w: all items together: more than %d bytes", ErrTooLarge, e.max)))
			break
		}
		if len(all) >= origin.MaxRefused {
			break
		}
	}
	if len(all) > 0 {
		return nil, all.err()
	}
	return texts, nil
}

// with returns a copy of vars with another value for one variable.
func with(vars map[string]any, name string, value any) map[string]any {
	own := make(map[string]any, len(vars)+1)
	maps.Copy(own, vars)
	own[name] = value
	return own
}

// renderLoop renders all items in one run. If that fails, it reports false and returns the
// texts of the complete items.
func (e *Engine) renderLoop(ctx context.Context, en *entry, variable string, typ reflect.Type, items []any, vars map[string]any) (texts []string, ok bool) {
	loop := e.loop(en, variable, typ)
	if loop == nil {
		return nil, false
	}
	list := reflect.New(reflect.SliceOf(typ))
	for _, item := range items {
		v := reflect.ValueOf(item)
		if !v.IsValid() || !v.Type().AssignableTo(typ) {
			return nil, false
		}
		list.Elem().Set(reflect.Append(list.Elem(), v))
	}
	values, err := e.decl.values(with(vars, variable, items[0]))
	if err != nil {
		return nil, false
	}
	values[eachItems] = list.Interface()
	r, err := e.run(ctx, place.KindOf(en.name), loop.template, values, 0)
	texts = strings.Split(r.out.String(), place.EndOfItem)
	texts = texts[:len(texts)-1]
	return texts, err == nil && r.check(loop.sites) == nil && len(texts) == len(items)
}

// loops are the templates around an entry, by variable. The first use compiles each.
type loops struct {
	mu   sync.Mutex
	made map[string]*entry // nil if it does not compile
}

func (e *Engine) loop(en *entry, variable string, typ reflect.Type) *entry {
	en.loops.mu.Lock()
	defer en.loops.mu.Unlock()
	if loop, ok := en.loops.made[variable]; ok {
		return loop
	}
	name := eachPrefix + variable + "/" + en.name
	e.src.Add(name, fmt.Sprintf("{%% for _, %s := range %s %%}{%% %s = %s %%}{{ render %q }}{{ %s }}{%% end %%}",
		eachItem, eachItems, variable, eachItem, "/"+en.name, eachMark))
	globals := maps.Clone(e.names.Globals)
	globals[eachItems] = reflect.Zero(reflect.PointerTo(reflect.SliceOf(typ))).Interface()
	globals[eachMark] = Raw(place.EndOfItem)
	loop := &entry{name: name}
	if _, err := e.build(loop, name, place.KindOf(en.name), rewrite.NewNames(globals, e.names.Vars)); err != nil {
		loop = nil
	}
	if en.loops.made == nil {
		en.loops.made = map[string]*entry{}
	}
	en.loops.made[variable] = loop
	return loop
}
