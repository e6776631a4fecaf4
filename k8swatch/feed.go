package k8swatch

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// Feed gives the objects of a group of watchers to the inputs of a [derive.Graph]: all at
// first, and then only those that changed. It is for the goroutine of the graph.
//
// Do not call [derive.Graph.Rollback] on its graph: the inputs would lose what the feed set,
// and it sets only what differs from that. A refused configuration needs none, because the
// next Fill goes on in the open transaction.
type Feed struct {
	graph *derive.Graph
	view  *View
	kinds []feedKind
	left  *derive.Input[Left, Object]
	last  *GroupSnapshot // that the inputs have; nil: none
}

// Left names an object that is held back without a version that could stand in its place.
type Left struct {
	Input string // its name
	Of    types.NamespacedName
}

// feedKind is an input with its watchers, without the type of the objects.
type feedKind struct {
	watchers []*Watcher
	set      func(s *GroupSnapshot, name types.NamespacedName)
	setAll   func(s *GroupSnapshot)
}

// NewFeed makes a feed of what a view shows. Give the changes of the group to [View.Changed].
// A view has one feed at a time.
func NewFeed(graph *derive.Graph, view *View) *Feed {
	return &Feed{graph: graph, view: view, left: derive.NewInput[Left, Object](graph, "held back")}
}

// Left returns the input with the objects that are held back and have no version that could
// stand in their place. All other inputs lack them.
func (f *Feed) Left() *derive.Input[Left, Object] { return f.left }

// Input makes an input of watchers of one type, for example of one resource in several
// namespaces. name is for errors and explanations. If two watchers have an object of one name,
// that of the first counts. T is the type of [Read].
func Input[T Object](f *Feed, name string, watchers ...*Watcher) *derive.Input[types.NamespacedName, T] {
	in := derive.NewInput[types.NamespacedName, T](f.graph, name)
	find := func(s *GroupSnapshot, of types.NamespacedName) (o Object) {
		for i := 0; i < len(watchers) && o == nil; i++ {
			o = s.Of(watchers[i]).ByName(of.Namespace, of.Name)
		}
		return o
	}
	set := func(s *GroupSnapshot, of types.NamespacedName) {
		if o, ok := find(s, of).(T); ok {
			in.Set(of, o)
		} else {
			in.Delete(of)
		}
		if real := s.base; real != nil && find(s, of) == nil && find(real, of) != nil {
			f.left.Set(Left{name, of}, find(real, of))
		} else {
			f.left.Delete(Left{name, of})
		}
	}
	f.kinds = append(f.kinds, feedKind{watchers, set, func(s *GroupSnapshot) {
		for i := len(watchers) - 1; i >= 0; i-- {
			for o := range s.Of(watchers[i]).All() {
				if o, ok := o.(T); ok {
					in.Set(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, o)
				}
			}
		}
		for of := range in.All() {
			if find(s, of) == nil {
				in.Delete(of)
			}
		}
		for of := range f.left.All() {
			if of.Input == name {
				set(s, of.Of)
			}
		}
	}})
	return in
}

// Fill sets the inputs to the objects that the view shows, and returns them. The transaction
// stays open until a configuration is accepted: then commit it. Until then each Fill sets in
// it what differs.
func (f *Feed) Fill() *GroupSnapshot {
	last, now := f.last, f.view.Snapshot()
	changes, known := f.view.take(last, now)
	f.last = now
	if !known {
		for _, kind := range f.kinds {
			kind.setAll(now)
		}
		for name := range now.names {
			f.set(now, nil, name)
		}
		return now
	}
	for _, c := range changes {
		f.set(now, c.Watcher, types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	}
	for _, s := range []*GroupSnapshot{last, now} {
		for name := range s.names {
			f.set(now, nil, name)
		}
	}
	return now
}

// set sets an object of one watcher, or of all that have the name; nil: of all.
func (f *Feed) set(s *GroupSnapshot, w *Watcher, name types.NamespacedName) {
	for _, kind := range f.kinds {
		for _, of := range kind.watchers {
			if w == nil || of == w {
				kind.set(s, name)
				break
			}
		}
	}
}

// real returns the snapshot as the stores had it.
func (s *GroupSnapshot) real() *GroupSnapshot {
	if s.base != nil {
		return s.base
	}
	return s
}
