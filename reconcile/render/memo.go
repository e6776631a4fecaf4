package render

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// remembered is what an entry rendered, and from what. Renders share what they have in
// common, so none of it changes.
type remembered struct {
	vars    map[string]any // that it uses; see run.values for those of the host
	items   []any          // one nil for an entry that is rendered once
	texts   []*text        // of the items
	content []byte         // of the file that they make, once it was asked for
}

// text is what an entry rendered for an item.
type text struct {
	string
	notes *notes // nil: it used no variable of the host
	lead  int    // see part

	end, ended string // argument and result of the last call of part, in the render under way
}

// notes are what a text depends on besides the values of variables, and what its template
// did besides writing it.
type notes struct {
	read  map[dependency]any // revisions
	files []dataplane.File   // registered
}

// maxItemErrors bounds the errors of one render about the items of one entry.
const maxItemErrors = 100

// entry renders one entry, except for the items that would render the same again.
func (r *run) entry(ctx context.Context, entry string) (piece, error) {
	each, forItems := r.in.Each[entry]
	now := &remembered{vars: r.values(entry), items: []any{nil}}
	p := piece{entry: entry, remembered: now}
	if forItems {
		p.each, now.items = &each, each.Items
	}
	before := r.remembered[entry]
	if before == nil || r.Engine.Shares(entry) || !sameVars(before.vars, now.vars) { // shared values are gone with their render
		before = &remembered{}
	}
	missing := now.recall(before, func(item any, t *text) bool {
		return t.notes == nil || r.same(t.notes) && r.registry.again(entry, item, t.notes)
	})
	for _, i := range missing {
		if !canCompare(now.items[i]) {
			return piece{}, fmt.Errorf("template %s: item %d is a %T, which cannot be compared: give a pointer to it", entry, i, now.items[i])
		}
	}
	if err := r.items(ctx, p, missing); err != nil {
		return piece{}, err
	}
	r.now[entry] = now
	return p, nil
}

// reach is how many vanished items recall skips to find the next one that is still there,
// before it makes a map of them.
const reach = 32

// recall takes over the texts of the items that the last render had, too, and returns the
// places of the others. It compares lists that differ in a few places by place. known
// reports whether an earlier text still holds.
func (m *remembered) recall(before *remembered, known func(item any, t *text) bool) (missing []int) {
	old, i := before.items, 0
	for i < min(len(m.items), len(old)) && m.items[i] == old[i] && known(old[i], before.texts[i]) {
		i++
	}
	if i == len(m.items) && i == len(old) && i > 0 {
		m.texts, m.content = before.texts, before.content
		return nil
	}
	m.texts = make([]*text, len(m.items))
	copy(m.texts, before.texts[:i])
	gone := map[any]*text{}
	j := i // in old
	for ; i < len(m.items); i++ {
		d := slices.Index(old[j:min(j+reach, len(old))], m.items[i])
		if d < 0 {
			missing = append(missing, i)
			continue
		}
		for k := j; k < j+d; k++ {
			gone[old[k]] = before.texts[k]
		}
		if j += d + 1; known(m.items[i], before.texts[j-1]) {
			m.texts[i] = before.texts[j-1]
		} else {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for k := j; k < len(old); k++ {
		gone[old[k]] = before.texts[k]
	}
	return slices.DeleteFunc(missing, func(i int) bool { // items that moved
		if !canCompare(m.items[i]) {
			return false
		}
		if t := gone[m.items[i]]; t != nil && known(m.items[i], t) {
			m.texts[i] = t
		}
		return m.texts[i] != nil
	})
}

func canCompare(item any) bool { return item == nil || reflect.ValueOf(item).Comparable() }

// items renders an entry for the items at these places. It renders them one by one if it
// must note which of them read what from the host.
func (r *run) items(ctx context.Context, p piece, places []int) error {
	if len(places) == 0 {
		return nil
	}
	var errs []error
	host := slices.ContainsFunc(r.Engine.Uses(p.entry), r.fromHost)
	if p.each != nil && !host {
		values := make([]any, len(places))
		for n, i := range places {
			values[n] = p.each.value(p.items[i], r.in.Vars)
		}
		made, err := r.Engine.RenderEach(ctx, p.entry, p.each.Var, values, r.in.Vars)
		if err != nil {
			return err
		}
		for n, i := range places {
			p.texts[i] = r.newText(p.entry, made[n])
			if err := r.misread(ctx, p, p.items[i], made[n]); err != nil && len(errs) < maxItemErrors {
				errs = append(errs, err)
			}
		}
		return joined(errs)
	}
	for _, i := range places {
		item := p.items[i]
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
		p.texts[i] = r.newText(p.entry, s)
		if host {
			p.texts[i].notes = r.noted()
		}
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

// newText makes the text that an entry rendered for an item. In a configuration it includes
// the replacements of post-processors.
func (r *run) newText(entry, s string) *text {
	if !isMain(entry) {
		return &text{string: s}
	}
	s = r.post.replace(s)
	return &text{string: s, lead: leadOf(s)}
}

// values returns the variables that an entry uses, without its item. Notes cover the
// variables of the host. Only one fact about these counts here: whether there is a current
// configuration.
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

// sameValue reports whether two values are the same without looking at what they point to.
// Slices and maps are the same if they are stored in the same place, and structs if their
// fields are the same. Values that it cannot compare that way are not the same.
func sameValue(a, b any) bool { return same(reflect.ValueOf(a), reflect.ValueOf(b)) }

func same(x, y reflect.Value) bool {
	if !x.IsValid() || !y.IsValid() || x.Type() != y.Type() {
		return !x.IsValid() && !y.IsValid()
	}
	switch x.Kind() {
	case reflect.Slice:
		return x.Len() == y.Len() && x.UnsafePointer() == y.UnsafePointer()
	case reflect.Map:
		return x.UnsafePointer() == y.UnsafePointer()
	case reflect.Interface:
		return same(x.Elem(), y.Elem())
	case reflect.Struct:
		for i := range x.NumField() {
			if !same(x.Field(i), y.Field(i)) {
				return false
			}
		}
		return true
	}
	return x.Comparable() && y.Comparable() && x.Equal(y)
}
