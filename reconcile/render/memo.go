package render

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// remembered is what an entry rendered, and from what.
type remembered struct {
	vars  map[string]any // that it uses; for those of the host see run.value
	texts map[any]text   // by item; that of an entry that is rendered once is nil
}

// text is what an entry rendered for an item.
type text struct {
	string
	notes *notes // nil: it used no variable of the host
}

// notes say what a text depends on besides the values of variables, and what its
// template did besides writing it.
type notes struct {
	read  map[dependency]any // revisions
	files []dataplane.File   // registered
}

// maxItemErrors bounds what one render says of the items of one entry.
const maxItemErrors = 100

// entry renders one entry, but for the items that would render the same again.
func (r *run) entry(ctx context.Context, entry string) (piece, error) {
	each, forItems := r.in.Each[entry]
	p := piece{entry: entry, items: []any{nil}}
	if forItems {
		p.each, p.items = &each, each.Items
	}
	now := &remembered{vars: r.values(entry), texts: make(map[any]text, len(p.items))}
	before := r.remembered[entry]
	if before == nil || r.Engine.Shares(entry) || !sameVars(before.vars, now.vars) { // shared values are gone with their render
		before = &remembered{}
	}
	var missing []any
	for i, item := range p.items {
		if !canCompare(item) {
			return piece{}, fmt.Errorf("template %s: item %d is a %T, which cannot be compared: give a pointer to it", entry, i, item)
		}
		if known, ok := before.texts[item]; ok && r.same(known.notes) && r.registry.again(entry, item, known.notes) {
			now.texts[item] = known
		} else {
			missing = append(missing, item)
		}
	}
	if err := r.items(ctx, p, missing, now.texts); err != nil {
		return piece{}, err
	}
	p.texts, r.now[entry] = now.texts, now
	kind, _ := kindOfEntry(entry)
	all := lines{plain: !isMain(entry) && kind != dataplane.Map && kind != dataplane.CRTList}
	for _, item := range p.items {
		all.add(p.texts[item].string)
	}
	p.text = all.text.String()
	return p, nil
}

func canCompare(item any) bool { return item == nil || reflect.ValueOf(item).Comparable() }

// items renders an entry for each of these items, one by one where it must be
// known which of them read what from the host.
func (r *run) items(ctx context.Context, p piece, items []any, texts map[any]text) error {
	var errs []error
	host := slices.ContainsFunc(r.Engine.Uses(p.entry), r.fromHost)
	if p.each != nil && !host {
		made, err := r.Engine.RenderEach(ctx, p.entry, p.each.Var, p.each.values(items, r.in.Vars), r.in.Vars)
		for i, s := range made {
			texts[items[i]] = text{r.replace(p.entry, s), nil}
		}
		if err != nil {
			return err
		}
		for i, s := range made {
			if err := r.misread(ctx, p, items[i], s); err != nil && len(errs) < maxItemErrors {
				errs = append(errs, err)
			}
		}
		return joined(errs)
	}
	for _, item := range items {
		r.begin(p.entry, item)
		s, err := r.item(ctx, p, item)
		if err == nil {
			err = r.misread(ctx, p, item, s)
		}
		if ctx.Err() != nil && err != nil {
			return err
		}
		if err != nil {
			if errs = append(errs, err); len(errs) == maxItemErrors {
				break
			}
			continue
		}
		made := text{r.replace(p.entry, s), nil}
		if host {
			made.notes = r.noted()
		}
		texts[item] = made
	}
	return joined(errs)
}

func (r *run) item(ctx context.Context, p piece, item any) (string, error) {
	if p.each == nil {
		return r.Engine.Render(ctx, p.entry, r.in.Vars)
	}
	made, err := r.Engine.RenderEach(ctx, p.entry, p.each.Var, []any{p.each.value(item, r.in.Vars)}, r.in.Vars)
	if err != nil {
		return "", err
	}
	return made[0], nil
}

// replace does the replacements of post-processors in what an entry rendered.
// They are remembered with the text.
func (r *run) replace(entry, text string) string {
	if !isMain(entry) {
		return text
	}
	return r.post.replace(text)
}

// values returns the variables that an entry uses, without its item. Notes cover
// the variables of the host: of these only whether there is a current configuration
// counts here.
func (r *run) values(entry string) map[string]any {
	values := map[string]any{}
	each, forItems := r.in.Each[entry]
	for _, name := range r.Engine.Uses(entry) {
		v := r.in.Vars[name]
		switch {
		case forItems && name == each.Var:
		case r.fromHost(name):
			if _, ok := v.(*CurrentConfig); ok {
				values[name] = r.current != nil
			}
		default:
			values[name] = v
		}
	}
	if forItems {
		values[""] = each.Var // no variable has that name
	}
	return values
}

// fromHost reports whether a variable comes from the host.
func (r *run) fromHost(name string) bool {
	switch r.in.Vars[name].(type) {
	case *FileRegistry, *CurrentConfig, *fetch.Fetcher:
		return true
	}
	return r.in.Reads != nil && slices.Contains(r.in.Reads.Vars, name)
}

// sameVars reports whether all variables are the same values.
func sameVars(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		w, ok := b[name]
		if !ok || !sameValue(v, w) {
			return false
		}
	}
	return true
}

// sameValue reports whether two values are the same without looking at what
// they point to: slices and maps are the same if they are stored in the same
// place. Values that cannot be told apart that way are not the same.
func sameValue(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if !x.IsValid() || !y.IsValid() || x.Type() != y.Type() {
		return !x.IsValid() && !y.IsValid()
	}
	switch x.Kind() {
	case reflect.Slice:
		return x.Len() == y.Len() && x.UnsafePointer() == y.UnsafePointer()
	case reflect.Map:
		return x.UnsafePointer() == y.UnsafePointer()
	}
	return x.Comparable() && y.Comparable() && a == b
}
