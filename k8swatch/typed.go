package k8swatch

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Typed is a [Watcher] of a [Group] whose objects have the type T. Make one with [Add]. All
// methods may be called concurrently.
type Typed[T Object] struct{ watcher *Watcher }

// Add makes a watcher as [New] does, and adds it to a group as [Group.Add] does. T is the type
// of the objects of the resource, see [TypeOf], or [Object]. Another T is an [*OptionError].
//
//	services, err := k8swatch.Add[*corev1.Service](group, cluster, corev1.SchemeGroupVersion.WithResource("services"), nil)
//	for _, s := range services.Read(group.Snapshot()).List() { ... }
func Add[T Object](group *Group, src Source, gvr schema.GroupVersionResource, opts *Options) (*Typed[T], error) {
	if group == nil {
		return nil, &OptionError{Resource: gvr, Err: errors.New("the group is nil: want one of NewGroup")}
	}
	if err := given(src, gvr); err != nil {
		return nil, err
	}
	if err := fits[T](src, gvr); err != nil {
		return nil, err
	}
	w, err := New(src, gvr, opts)
	if err != nil {
		return nil, err
	}
	if err := group.Add(w); err != nil {
		return nil, err
	}
	return &Typed[T]{w}, nil
}

// Read returns a typed reader of the objects in a snapshot of the group; see [Read]. It panics
// if the snapshot is one of other watchers.
func (t *Typed[T]) Read(all *GroupSnapshot) Reader[T] {
	return Read[T](all.Of(t.watcher))
}

// Watcher returns the watcher, for its state and its own snapshots. The group runs it.
func (t *Typed[T]) Watcher() *Watcher { return t.watcher }
