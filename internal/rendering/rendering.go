// Package rendering is what the context of a render carries from those who run it to those
// who read objects in it, without either knowing the other.
package rendering

import (
	"context"
	"iter"
	"slices"
	"sync"
)

// Rule says what a render leaves out.
type Rule struct {
	Of any // who made the rule

	// Stand returns what is read in place of an object, most often that itself, and
	// false where nothing is. Nil: all objects are read as they are.
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

// Read notes what a render reads. It is safe for concurrent use.
type Read struct {
	mu    sync.Mutex
	lists []iter.Seq[any]
	known map[any]bool // what they are of
}

type readKey struct{}

// WithRead returns a context whose reads are noted.
func WithRead(ctx context.Context, r *Read) context.Context {
	return context.WithValue(ctx, readKey{}, r)
}

// Note says that a render reads a list of objects, which are those of a comparable value:
// what is read more than once counts once.
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
