// Package k8swatchtest stands in for a cluster in unit tests. It has an API server in
// memory behind k8swatch's Source, with faults on demand, and ready-made snapshots that
// need no watcher.
//
//	src := k8swatchtest.NewSource(ingress, service)
//	w, err := k8swatch.New(src, ingresses, nil)
//	go w.Run(ctx)
//	src.Apply(changedIngress)
//	src.Partition() // connection refused, until Restore
//
// A suite of tests passes against both this server and a real one. It covers resource
// versions, selectors, the order of events, pages, bookmarks, streaming lists, 410
// after compaction, and metadata alone. This server has no validation, defaulting,
// generations, conflicts and finalizers.
package k8swatchtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

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
	types  memapi.Types

	mu          sync.Mutex
	partitioned bool
	forbidden   map[schema.GroupVersionResource][]string
	absent      map[schema.GroupVersionResource]bool
	watched     []schema.GroupVersionResource
	onRequest   func(context.Context, Request) error
}

var _ k8swatch.MetadataSource = (*Source)(nil)

// NewSource returns a source that holds the objects. It panics where [Source.Apply] does.
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

// SetScheme adds Go types besides those of client-go, such as those of custom
// resources. Call it before the first watcher is made.
func (s *Source) SetScheme(scheme *runtime.Scheme) { s.types.Own = scheme }
func (s *Source) Scheme() *runtime.Scheme          { return s.types.Own }

func (s *Source) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	if err := s.watch(gvr); err != nil {
		return nil, err
	}
	return s.server.ListWatch(gvr, namespace, tweak), nil
}

func (s *Source) MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	if err := s.watch(gvr); err != nil {
		return nil, err
	}
	return s.server.MetadataListWatch(gvr, namespace, tweak), nil
}

// watch notes that a resource is watched. It refuses a wrong plural of a kind.
func (s *Source) watch(gvr schema.GroupVersionResource) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.server.Mistaken(gvr)
	if err == nil && !slices.Contains(s.watched, gvr) {
		s.watched = append(s.watched, gvr)
	}
	return err
}

func (s *Source) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (k8swatch.Object, error) {
	return s.server.Fetch(ctx, gvr, namespace, name)
}

// Apply creates or replaces objects, typed or unstructured. It keeps the uid of an
// object that has one. A new uid under an old name means that the object was deleted
// and created again. Apply panics on objects that no cluster can have: an unknown kind,
// no name, or a resource that is uninstalled. It also panics on a kind of which a wrong
// plural is watched. The plural of a kind is the English one, or that of its
// CustomResourceDefinition, if Apply got that before.
func (s *Source) Apply(objs ...runtime.Object) {
	for _, obj := range objs {
		o, gvr, err := s.normalize(obj)
		if err != nil {
			panic(fmt.Sprintf("k8swatchtest: %v", err))
		}
		if o.GetName() == "" {
			panic(fmt.Sprintf("k8swatchtest: a %s without a name", gvr.Resource))
		}
		s.apply(gvr, o)
	}
}

// normalize returns a copy of an object as a watcher expects it, and its resource.
func (s *Source) normalize(obj runtime.Object) (k8swatch.Object, schema.GroupVersionResource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.types.Learn(obj)
	return s.types.Normalize(obj.DeepCopyObject())
}

func (s *Source) apply(gvr schema.GroupVersionResource, o k8swatch.Object) {
	s.mu.Lock() // an uninstalled resource must not get an object afterwards
	defer s.mu.Unlock()
	for absent := range s.absent {
		if memapi.Serves(absent, gvr) {
			panic(fmt.Sprintf("k8swatchtest: a %s while the resource is uninstalled", gvr.GroupResource()))
		}
	}
	if err := s.server.Overlooked(s.watched, gvr, o); err != nil {
		panic(fmt.Sprintf("k8swatchtest: %v", err))
	}
	s.server.Apply(gvr, o)
}

// Edit changes one object, such as its labels, and reports whether the object exists.
// The edit must not call the source.
func (s *Source) Edit(gvr schema.GroupVersionResource, namespace, name string, edit func(k8swatch.Object)) bool {
	return s.server.Edit(gvr, namespace, name, func(o memapi.Object) { edit(o) })
}

// List returns copies of all objects of a resource, by namespace and name. Faults do
// not apply.
func (s *Source) List(gvr schema.GroupVersionResource) []k8swatch.Object {
	found := s.server.Objects(gvr)
	objs := make([]k8swatch.Object, len(found))
	for i, o := range found {
		objs[i] = o
	}
	return objs
}

// Delete removes objects; only their kind, namespace and name matter. It reports
// whether all of them existed.
func (s *Source) Delete(objs ...runtime.Object) bool {
	all := true
	for _, obj := range objs {
		o, gvr, err := s.normalize(obj)
		if err != nil {
			panic(fmt.Sprintf("k8swatchtest: %v", err))
		}
		all = s.server.Delete(gvr, o.GetNamespace(), o.GetName()) && all
	}
	return all
}

// Snapshot returns a snapshot of copies of the objects, with the index of these options
// (nil: namespace and name). Any mistake fails the test, such as an object of another
// resource than gvr.
func Snapshot(t testing.TB, gvr schema.GroupVersionResource, opts *k8swatch.Options, objs ...runtime.Object) *k8swatch.Snapshot {
	t.Helper()
	all := make([]k8swatch.Object, 0, len(objs))
	for _, obj := range objs {
		o, of, err := memapi.Types{}.Normalize(obj.DeepCopyObject())
		if err != nil {
			t.Fatalf("k8swatchtest: %v", err)
		}
		if !memapi.Serves(gvr, of) {
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
