// Package rendering passes data in the context of a render. The package that runs the
// render and the package that reads objects in it do not import each other.
package rendering

import (
	"context"
	"iter"
	"slices"
	"sync"
)

// Rule says which objects a render leaves out or replaces.
type Rule struct {
	Of any // the set of excluded resources behind the rule

	// Stand returns the object that the render reads in place of obj, most often obj
	// itself. It returns false to leave obj out. If nil, the render reads all objects as
	// they are.
	Stand func(obj any) (any, bool)
}

type ruleKey struct{}

// WithRule returns the context of a render with a rule.
func WithRule(ctx context.Context, r *Rule) context.Context {
	return context.WithValue(ctx, ruleKey{}, r)
}

// RuleOf returns the rule of a context, nil if it has none.
func RuleOf(ctx context.Context) *Rule {
	r, _ := ctx.Value(ruleKey{}).(*Rule)
	return r
}

// Read notes which lists a render reads. It is safe for concurrent use.
type Read struct {
	mu    sync.Mutex
	lists []iter.Seq[any]
	known map[any]bool // the keys of the lists
}

type readKey struct{}

// WithRead returns a context in which r notes all reads.
func WithRead(ctx context.Context, r *Read) context.Context {
	return context.WithValue(ctx, readKey{}, r)
}

// Note notes that a render reads a list of objects. of is the comparable key of the list:
// repeated reads with the same key count once.
func Note(ctx context.Context, of any, list iter.Seq[any]) {
	if r, _ := ctx.Value(readKey{}).(*Read); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.known[of] {
			return
		}
		if r.known == nil {
			r.known = map[any]bool{}
		}
		r.known[of] = true
		r.lists = append(r.lists, list)
	}
}

// All iterates over all objects of the lists.
func (r *Read) All() iter.Seq[any] {
	return func(yield func(any) bool) {
		r.mu.Lock()
		lists := slices.Clone(r.lists)
		r.mu.Unlock()
		for _, list := range lists {
			for o := range list {
				if !yield(o) {
					return
				}
			}
		}
	}
}
