package k8swatch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// Feed gives the objects of a group of watchers to the inputs of a [derive.Graph]: all at
// first, and then only those that changed. Changed and Reread may be called concurrently; the
// other methods are for the goroutine of the graph.
type Feed struct {
	graph *derive.Graph
	group *Group
	kinds []feedKind
	left  *derive.Input[Left, Object]

	last  *GroupSnapshot // that the inputs have; nil: none
	since []Change       // set since the last commit
	whole bool           // all objects were set since the last commit
	ruled bool           // some inputs have other versions than the snapshot

	mu      sync.Mutex
	pending Changes
	reread  bool
}

// Left names an object that is in quarantine without a version that could stand in its place.
type Left struct {
	Input string // its name
	Of    types.NamespacedName
}

// feedKind is an input with its watchers, without the type of the objects.
type feedKind struct {
	watchers []*Watcher
	set      func(s *GroupSnapshot, rule *rendering.Rule, name types.NamespacedName)
	setAll   func(s *GroupSnapshot, rule *rendering.Rule)
}

// NewFeed makes a feed of a group. Give its Changed method the changes of the group.
func NewFeed(graph *derive.Graph, group *Group) *Feed {
	return &Feed{graph: graph, group: group, left: derive.NewInput[Left, Object](graph, "quarantined")}
}

// Left returns the input with the objects that are in quarantine and have no version that could
// stand in their place. All other inputs lack them.
func (f *Feed) Left() *derive.Input[Left, Object] { return f.left }

// Input makes an input of watchers of one type, for example of one resource in several
// namespaces. name is for errors and explanations. If two watchers have an object of one name,
// that of the first counts. T is the type of [Read].
func Input[T Object](f *Feed, name string, watchers ...*Watcher) *derive.Input[types.NamespacedName, T] {
	in := derive.NewInput[types.NamespacedName, T](f.graph, name)
	put := func(o Object, rule *rendering.Rule, of types.NamespacedName) {
		stands, ok := o.(T)
		if rule != nil {
			var v any
			if v, ok = rule.Stand(o); ok {
				stands, ok = v.(T)
			}
		}
		if ok {
			in.Set(of, stands)
			f.left.Delete(Left{name, of})
		} else {
			in.Delete(of)
			f.left.Set(Left{name, of}, o)
		}
	}
	find := func(s *GroupSnapshot, of types.NamespacedName) Object {
		for _, w := range watchers {
			if o := s.Of(w).ByName(of.Namespace, of.Name); o != nil {
				return o
			}
		}
		return nil
	}
	f.kinds = append(f.kinds, feedKind{watchers, func(s *GroupSnapshot, rule *rendering.Rule, of types.NamespacedName) {
		if o := find(s, of); o != nil {
			put(o, rule, of)
		} else {
			in.Delete(of)
			f.left.Delete(Left{name, of})
		}
	}, func(s *GroupSnapshot, rule *rendering.Rule) {
		for i := len(watchers) - 1; i >= 0; i-- {
			for o := range s.Of(watchers[i]).All() {
				put(o, rule, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
			}
		}
		for of := range in.All() {
			if find(s, of) == nil {
				in.Delete(of)
			}
		}
		for of := range f.left.All() {
			if of.Input == name && find(s, of.Of) == nil {
				f.left.Delete(of)
			}
		}
	}})
	return in
}

// Changed notes changes of the group, for the next Fill.
func (f *Feed) Changed(c Changes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = f.pending.And(c)
}

// Reread makes the next Fill set all objects as they are then, after a [Group.Refresh]: changes
// that wait may be older.
func (f *Feed) Reread() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread = true
}

// Fill sets the inputs to the objects as they are now, and returns the snapshot that it read.
// If a transaction is still open, Fill rolls it back first: it was not accepted. In the context
// of a render, the last good version of a quarantined object takes its place, as in [Read].
func (f *Feed) Fill(ctx context.Context) *GroupSnapshot {
	if f.graph.Open() {
		f.graph.Rollback()
	} else {
		f.since, f.whole = nil, false
	}
	rule := rendering.RuleOf(ctx)
	if rule != nil && rule.Stand == nil {
		rule = nil
	}
	f.mu.Lock()
	pending := f.pending
	if f.reread {
		f.last = nil
	}
	f.pending, f.reread = Changes{}, false
	f.mu.Unlock()
	now, known := f.next(pending)
	f.last, f.since = now, append(f.since, pending.Objects...)
	if f.whole = f.whole || !known || rule != nil || f.ruled || len(f.since) > maxSince; f.whole {
		for _, kind := range f.kinds {
			kind.setAll(now, rule)
		}
		f.since, f.ruled = nil, rule != nil
		return now
	}
	for _, c := range f.since {
		for _, kind := range f.kinds {
			for _, w := range kind.watchers {
				if w == c.Watcher {
					kind.set(now, nil, types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
				}
			}
		}
	}
	return now
}

// maxSince bounds the changes that are remembered while no transaction is committed.
const maxSince = 100_000

// next returns the snapshot to read, and whether the pending changes lead from the last one
// to it.
func (f *Feed) next(pending Changes) (now *GroupSnapshot, known bool) {
	now = f.group.Snapshot()
	switch {
	case f.last == nil:
		return now, false
	case now.Revision() == f.last.Revision():
		return now, true
	case pending.To > f.last.Revision():
		return pending.Snapshot, pending.More == 0 && pending.From <= f.last.Revision()
	}
	return now, false
}
