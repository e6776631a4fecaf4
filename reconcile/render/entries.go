package render

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// maxItemErrors bounds the errors of one render about the items of one entry.
const maxItemErrors = 100

// render renders an entry for several items.
func (r *run) render(ctx context.Context, entry string, items []any) ([]*text, error) {
	r.registry.begin(entry)
	vars := r.varsOf(entry)
	var made []string
	var err error
	if each, ok := r.in.Each[entry]; ok {
		values := make([]any, len(items))
		for i, item := range items {
			values[i] = each.value(item, vars)
		}
		made, err = r.Engine.RenderEach(ctx, entry, each.Var, values, vars)
	} else {
		made = []string{""}
		made[0], err = r.Engine.Render(ctx, entry, vars)
	}
	if err != nil {
		return nil, err
	}
	all, errs := make([]*text, len(items)), []error(nil)
	for i, s := range made {
		if err := r.misread(ctx, entry, items[i], s); err != nil && len(errs) < maxItemErrors {
			errs = append(errs, err)
		}
		all[i] = r.newText(entry, s)
	}
	if len(items) == 1 {
		all[0].files = r.registry.made()
	}
	return all, joined(errs)
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

// anew renders an entry that nothing remembers: all its items, in their order.
func (r *run) anew(ctx context.Context, entry string) (piece, error) {
	each, parts := r.itemsOf(entry)
	items, texts, errs := slices.Concat(parts...), []*text(nil), []error(nil)
	if err := checkItems(entry, items); err != nil {
		return piece{}, err
	}
	step := max(1, len(items))
	if r.asksHost(entry) {
		step = 1 // its files are those of the item
	}
	for some := range slices.Chunk(items, step) {
		made, err := r.render(ctx, entry, some)
		if err != nil {
			errs = append(errs, err)
			if ctx.Err() != nil || len(errs) == maxItemErrors {
				break
			}
			continue
		}
		texts = append(texts, made...)
	}
	if len(errs) > 0 {
		return piece{}, joined(errs)
	}
	return piece{entry, each, &madeTexts{chunks: chunksOf(parts, texts)}}, nil
}

// all renders every entry, and returns the pieces in the order of the entries. It reports the
// errors of all entries.
func (r *run) all(ctx context.Context) (all []piece, err error) {
	pieces, failures := r.remembered(ctx)
	for _, entry := range r.Engine.Entries() { // sorted: haproxy.cfg goes before haproxy.d/
		if r.remembers(entry) {
			continue
		}
		p, err := r.anew(ctx, entry)
		pieces[entry] = p
		if err != nil {
			failures[entry] = append(failures[entry], err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	var errs []error
	for _, entry := range slices.Sorted(maps.Keys(failures)) {
		errs = append(errs, failures[entry]...)
	}
	if len(errs) > 0 {
		return nil, joined(errs)
	}
	for _, entry := range r.Engine.Entries() {
		all = append(all, pieces[entry])
	}
	return all, nil
}

// remembers reports whether the texts of an entry are remembered. Values that entries share
// are gone with their render.
func (r *run) remembers(entry string) bool { return r.Pure && !r.Engine.Shares(entry) }

// remembered returns the pieces of the entries that are remembered, or their errors.
func (r *run) remembered(ctx context.Context) (pieces map[string]piece, failures map[string][]error) {
	pieces, failures = map[string]piece{}, map[string][]error{}
	entries := slices.DeleteFunc(r.Engine.Entries(), func(entry string) bool { return !r.remembers(entry) })
	var made []piece
	err := r.texts.update(ctx, r, entries)
	if err == nil {
		made, err = r.texts.accept(r, entries)
	}
	for _, p := range made {
		pieces[p.entry] = p
	}
	for _, err := range split(err) {
		entry := ""
		if of := (*derive.ItemError)(nil); errors.As(err, &of) {
			if key, ok := of.Item.Key.(textOf); ok {
				entry, err = key.entry, of.Err
			}
		}
		failures[entry] = append(failures[entry], err)
	}
	return pieces, failures
}

// split returns the errors that errors.Join joined.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// asksHost reports whether an entry uses variables of the host.
func (r *run) asksHost(entry string) bool {
	is, known := r.asks[entry]
	if !known {
		is = slices.ContainsFunc(r.Engine.Uses(entry), r.fromHost)
		r.asks[entry] = is
	}
	return is
}

// fromHost reports whether a variable comes from the host.
func (r *run) fromHost(name string) bool {
	switch r.in.Vars[name].(type) {
	case *FileRegistry, *CurrentConfig, *fetch.Fetcher:
		return true
	}
	return r.in.Reads != nil && slices.Contains(r.in.Reads.Vars, name)
}
