package k8swatch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewSnapshot makes a snapshot of given objects, without a watcher: for tests
// and for input that comes from elsewhere. IndexBy and IgnoreFields of the
// options apply. The snapshot owns the objects. Their types must be those that a
// watcher of the resource would store, and no two may have the same name.
func NewSnapshot(gvr schema.GroupVersionResource, opts *Options, objs ...Object) (*Snapshot, error) {
	if opts == nil {
		opts = &Options{}
	}
	paths, err := opts.compile(TypeOf(gvr))
	if err != nil {
		return nil, &OptionError{Resource: gvr, Err: err}
	}
	meta := newMeta(gvr, paths)
	in := newIntake(newStore(meta), paths, logger(opts.Logger), nil)
	for _, obj := range objs {
		e, err := in.entry(obj)
		if err != nil {
			return nil, fmt.Errorf("k8swatch: %s: %w", nameOf(obj), err)
		}
		if in.store.get(e.place.objectName) != nil {
			return nil, fmt.Errorf("k8swatch: %s: there are two of it", nameOf(obj))
		}
		in.store.change(func(c *Changes) { in.store.put(e, c) })
	}
	return in.store.take(), nil
}

func newMeta(gvr schema.GroupVersionResource, paths *compiled) snapshotMeta {
	return snapshotMeta{resource: gvr, typ: TypeOf(gvr), indexed: len(paths.index) > 0}
}
