// Package k8swatchtest stands in for a cluster in unit tests: an API server in
// memory behind k8swatch's Source, with faults on demand, and ready-made
// snapshots that need no watcher.
//
//	src := k8swatchtest.NewSource(ingress, service)
//	w, err := k8swatch.New(src, ingresses, nil)
//	go w.Run(ctx)
//	src.Apply(changedIngress)
//	src.Partition() // connection refused, until Restore
//
// What it has in common with the real one: resource versions, selectors, events
// in order, streaming lists with their bookmark, 410 after compaction. What it
// lacks: validation, defaulting, generations, finalizers, paging.
package k8swatchtest

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// Source is a cluster in memory. All methods may be called concurrently.
type Source struct {
	server *memapi.Server

	mu          sync.Mutex
	partitioned bool
	forbidden   map[schema.GroupVersionResource][]string
	absent      map[schema.GroupVersionResource]bool
}

var _ k8swatch.Source = (*Source)(nil)

// NewSource returns a source that holds the objects. It panics on objects that
// [Source.Apply] would panic on.
func NewSource(objs ...runtime.Object) *Source {
	s := &Source{
		server:    memapi.New(),
		forbidden: map[schema.GroupVersionResource][]string{},
		absent:    map[schema.GroupVersionResource]bool{},
	}
	s.server.SetFault(s.fault)
	s.Apply(objs...)
	return s
}

// ListWatch implements k8swatch.Source.
func (s *Source) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	return s.server.ListWatch(gvr, namespace, tweak), nil
}

// Apply creates or replaces objects, typed or unstructured. A uid is kept where
// the object has one; a new uid under an old name is an object that was deleted
// and created again. It panics on what cannot be in a cluster: a kind that
// nobody named, an object without a name.
func (s *Source) Apply(objs ...runtime.Object) {
	for _, obj := range objs {
		o, gvr, err := memapi.Normalize(obj.DeepCopyObject())
		if err != nil {
			panic(fmt.Sprintf("k8swatchtest: %v", err))
		}
		if o.GetName() == "" {
			panic(fmt.Sprintf("k8swatchtest: a %s without a name", gvr.Resource))
		}
		s.server.Apply(gvr, o)
	}
}

// Delete removes objects; only their kind, namespace and name matter. It reports
// whether all of them were there.
func (s *Source) Delete(objs ...runtime.Object) bool {
	all := true
	for _, obj := range objs {
		o, gvr, err := memapi.Normalize(obj.DeepCopyObject())
		if err != nil {
			panic(fmt.Sprintf("k8swatchtest: %v", err))
		}
		all = s.server.Delete(gvr, o.GetNamespace(), o.GetName()) && all
	}
	return all
}

// Drop ends all open watches, as a restart of the API server does.
func (s *Source) Drop() { s.server.DropWatches() }

// Compact forgets the history: who watches from an older resource version gets
// 410 Gone and must list again.
func (s *Source) Compact() { s.server.Compact() }

// EatBookmarks keeps the bookmark from being sent that ends a streaming list.
func (s *Source) EatBookmarks(on bool) { s.server.SetNoBookmarks(on) }

// Partition ends all watches and refuses connections until [Source.Restore].
func (s *Source) Partition() { s.change(func() { s.partitioned = true }) }

// Restore ends a partition.
func (s *Source) Restore() { s.change(func() { s.partitioned = false }) }

// Forbid takes away the permission for the verbs ("list", "watch"; none means
// both) on a resource, and ends the watches.
func (s *Source) Forbid(gvr schema.GroupVersionResource, verbs ...string) {
	if len(verbs) == 0 {
		verbs = []string{"list", "watch"}
	}
	s.change(func() { s.forbidden[gvr] = verbs })
}

// Allow gives the permission back.
func (s *Source) Allow(gvr schema.GroupVersionResource) {
	s.change(func() { delete(s.forbidden, gvr) })
}

// Uninstall makes the server answer 404 for a resource, as without its CRD.
func (s *Source) Uninstall(gvr schema.GroupVersionResource) {
	s.change(func() { s.absent[gvr] = true })
}

// Install ends that.
func (s *Source) Install(gvr schema.GroupVersionResource) {
	s.change(func() { delete(s.absent, gvr) })
}

func (s *Source) change(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	s.server.DropWatches()
}

// fault decides on each request.
func (s *Source) fault(gvr schema.GroupVersionResource, verb string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.partitioned:
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case s.absent[gvr]:
		return apierrors.NewNotFound(gvr.GroupResource(), "")
	case slices.Contains(s.forbidden[gvr], verb):
		return apierrors.NewForbidden(gvr.GroupResource(), "", fmt.Errorf("cannot %s resource %q", verb, gvr.Resource))
	}
	return nil
}

// Snapshot returns a snapshot of the objects, indexed as by a watcher with these
// options (nil: by namespace and name). The objects are copied. Anything that is
// wrong fails the test.
func Snapshot(t testing.TB, gvr schema.GroupVersionResource, opts *k8swatch.Options, objs ...runtime.Object) *k8swatch.Snapshot {
	t.Helper()
	all := make([]k8swatch.Object, 0, len(objs))
	for _, obj := range objs {
		o, of, err := memapi.Normalize(obj.DeepCopyObject())
		if err != nil {
			t.Fatalf("k8swatchtest: %v", err)
		}
		if of != gvr {
			t.Fatalf("k8swatchtest: %s is of %s, not of %s", o.GetName(), of.Resource, gvr.Resource)
		}
		all = append(all, o)
	}
	snap, err := k8swatch.NewSnapshot(gvr, opts, all...)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}
