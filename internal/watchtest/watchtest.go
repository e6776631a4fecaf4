// Package watchtest has tests for every API server behind package k8swatch, the one in
// memory and the real one. A suite tests lists and watches. A model checks watchers while
// objects and connections change at random.
package watchtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch"
)

// ConfigMaps is the resource that the tests use: servers accept any content.
var ConfigMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Routes is a custom resource in the same tests.
var Routes = schema.GroupVersionResource{Group: "test.haptic.dev", Version: "v1", Resource: "routes"}

// Route returns an object of Routes.
func Route(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Routes.GroupVersion().String(), "kind": "Route", "spec": map[string]any{"host": name + ".test"},
		"metadata": map[string]any{"namespace": namespace, "name": name},
	}}
}

// Server is an API server under test, with an empty namespace.
type Server interface {
	Source() k8swatch.MetadataSource
	Namespace() string
	Apply(context.Context, *corev1.ConfigMap) error // creates or replaces
	Delete(ctx context.Context, name string) error

	// Install adds the definition of Routes and the named objects. Uninstall deletes the
	// definition, and returns when the server does not know Routes any more.
	Install(ctx context.Context, names ...string) error
	Uninstall(context.Context) error

	// Compact makes the server forget the history, also in memory.
	Compact(context.Context) error

	// Settle repeats check until it returns nil. After a time-out it returns the last
	// error.
	Settle(check func() error) error
}

func configMap(s Server, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: name, Labels: labels}}
}

// Suite tests how the server lists, watches and fetches. Each part gets a server
// with an empty namespace.
func Suite(t *testing.T, run func(t *testing.T, test func(*testing.T, Server))) {
	for name, test := range map[string]func(*suite){
		"list": (*suite).list, "pages": (*suite).pages, "watch": (*suite).watch, "streaming list": (*suite).stream,
		"expired": (*suite).expired, "metadata": (*suite).metadata, "fetch": (*suite).fetch, "recreated": (*suite).recreated,
		"definition": (*suite).definition,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, s Server) { test(&suite{T: t, Server: s}) })
		})
	}
}

type suite struct {
	*testing.T
	Server
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) apply(name string, labels map[string]string) {
	s.Helper()
	s.must(s.Apply(s.Context(), configMap(s, name, labels)))
}

func (s *suite) listWatch(tweak func(*metav1.ListOptions)) cache.ListerWatcherWithContext {
	s.Helper()
	lw, err := s.Source().ListWatch(ConfigMaps, s.Namespace(), tweak)
	s.must(err)
	return lw
}

// names lists and returns the names, the resource version and the next page.
func (s *suite) names(lw cache.ListerWatcherWithContext, opts metav1.ListOptions) (names []string, page metav1.ListInterface) {
	s.Helper()
	list, err := lw.ListWithContext(s.Context(), opts)
	s.must(err)
	items, err := meta.ExtractList(list)
	s.must(err)
	for _, item := range items {
		m, err := meta.Accessor(item)
		s.must(err)
		names = append(names, m.GetName())
	}
	page, err = meta.ListAccessor(list)
	s.must(err)
	return names, page
}

func (s *suite) expect(what string, got, want []string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (s *suite) list() {
	s.apply("b", map[string]string{"app": "x"})
	s.apply("a", map[string]string{"app": "y"})
	s.apply("c", nil)
	for _, tt := range []struct {
		labels, fields string
		want           []string
	}{
		{"", "", []string{"a", "b", "c"}},
		{"app=x", "", []string{"b"}},
		{"app in (x,y)", "", []string{"a", "b"}},
		{"!app", "", []string{"c"}},
		{"", "metadata.name=a", []string{"a"}},
		{"app", "metadata.name!=a", []string{"b"}},
	} {
		got, _ := s.names(s.listWatch(func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = tt.labels, tt.fields }), metav1.ListOptions{})
		s.expect(tt.labels+" "+tt.fields, got, tt.want)
	}
}

func (s *suite) pages() {
	for i := range 5 {
		s.apply(fmt.Sprint("p", i), nil)
	}
	lw := s.listWatch(nil)
	all, first := s.names(lw, metav1.ListOptions{Limit: 2})
	s.expect("first page", all, []string{"p0", "p1"})
	s.must(s.Delete(s.Context(), "p4")) // later pages show the same instant
	for token := first.GetContinue(); token != ""; {
		names, page := s.names(lw, metav1.ListOptions{Limit: 2, Continue: token})
		if page.GetResourceVersion() != first.GetResourceVersion() {
			s.Errorf("a page of resource version %s in a list of %s", page.GetResourceVersion(), first.GetResourceVersion())
		}
		all, token = append(all, names...), page.GetContinue()
	}
	s.expect("all pages", all, []string{"p0", "p1", "p2", "p3", "p4"})
}

// next returns the kind and the name of the next event that is no bookmark.
func (s *suite) next(w watch.Interface) string {
	s.Helper()
	for e := range w.ResultChan() {
		switch e.Type {
		case watch.Bookmark:
			continue
		case watch.Error:
			return fmt.Sprint("ERROR ", apierrors.ReasonForError(apierrors.FromObject(e.Object)))
		}
		m, err := meta.Accessor(e.Object)
		s.must(err)
		return string(e.Type) + " " + m.GetName()
	}
	return "end"
}

func (s *suite) watch() {
	s.apply("a", nil)
	lw := s.listWatch(func(o *metav1.ListOptions) { o.LabelSelector = "!hidden" })
	_, page := s.names(lw, metav1.ListOptions{})
	s.apply("b", nil) // the watch also has changes between the list and the watch
	w, err := lw.WatchWithContext(s.Context(), metav1.ListOptions{ResourceVersion: page.GetResourceVersion()})
	s.must(err)
	defer w.Stop()
	s.apply("a", map[string]string{"x": "y"})
	s.apply("a", map[string]string{"hidden": ""}) // leaves the selection
	s.apply("a", map[string]string{"hidden": "still"})
	s.apply("a", nil) // and comes back
	s.must(s.Delete(s.Context(), "b"))
	for _, want := range []string{"ADDED b", "MODIFIED a", "DELETED a", "ADDED a", "DELETED b"} {
		if got := s.next(w); got != want {
			s.Errorf("got %q, want %q", got, want)
		}
	}
}

func (s *suite) stream() {
	s.apply("a", nil)
	s.apply("b", nil)
	yes := true
	w, err := s.listWatch(nil).WatchWithContext(s.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	s.must(err)
	defer w.Stop()
	var got []string
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			s.Fatal(apierrors.FromObject(e.Object))
		}
		m, err := meta.Accessor(e.Object)
		s.must(err)
		if e.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			break
		}
		got = append(got, string(e.Type)+" "+m.GetName())
	}
	slices.Sort(got)
	s.expect("stream", got, []string{"ADDED a", "ADDED b"})
	s.apply("c", nil) // the stream goes on as a watch
	if got := s.next(w); got != "ADDED c" {
		s.Errorf("after the bookmark: %q", got)
	}
}

func (s *suite) expired() {
	s.apply("a", nil)
	s.apply("a", map[string]string{"a": "b"})
	s.apply("b", nil)
	lw := s.listWatch(nil)
	_, page := s.names(lw, metav1.ListOptions{Limit: 1})
	s.apply("c", nil)
	s.must(s.Compact(s.Context()))
	s.isExpired("a watch from the beginning", lw, "1")
	_, err := lw.ListWithContext(s.Context(), metav1.ListOptions{Limit: 1, Continue: page.GetContinue()})
	if !apierrors.IsResourceExpired(err) {
		s.Errorf("a page after compaction: %v", err)
	}
}

// isExpired watches from a resource version that the server has forgotten.
func (s *suite) isExpired(what string, lw cache.ListerWatcherWithContext, version string) {
	s.Helper()
	w, err := lw.WatchWithContext(s.Context(), metav1.ListOptions{ResourceVersion: version})
	if err == nil {
		defer w.Stop()
		if got := s.next(w); got != "ERROR Expired" {
			s.Errorf("%s: %q", what, got)
		}
	} else if !apierrors.IsResourceExpired(err) {
		s.Errorf("%s: %v", what, err)
	}
}

// definition tests the deletion of a custom resource. Its watches report each object and
// end. A resource installed later under the same name has no history.
func (s *suite) definition() {
	s.must(s.Install(s.Context(), "a", "b"))
	lw, err := s.Source().ListWatch(Routes, s.Namespace(), nil)
	s.must(err)
	got, page := s.names(lw, metav1.ListOptions{})
	s.expect("installed", got, []string{"a", "b"})
	w, err := lw.WatchWithContext(s.Context(), metav1.ListOptions{ResourceVersion: page.GetResourceVersion()})
	s.must(err)
	defer w.Stop()
	s.must(s.Uninstall(s.Context()))
	reported := []string{s.next(w), s.next(w)}
	slices.Sort(reported)
	s.expect("told of the objects", reported, []string{"DELETED a", "DELETED b"})
	if got := s.next(w); got != "end" {
		s.Errorf("and then %q", got)
	}
	if _, err := lw.ListWithContext(s.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		s.Errorf("a list without the definition: %v", err)
	}
	if w, err := lw.WatchWithContext(s.Context(), metav1.ListOptions{ResourceVersion: page.GetResourceVersion()}); !apierrors.IsNotFound(err) {
		s.Errorf("a watch without the definition: %v, %v", w, err)
	}
	s.must(s.Install(s.Context(), "c"))
	got, _ = s.names(lw, metav1.ListOptions{})
	s.expect("installed again", got, []string{"c"})
	s.isExpired("a watch from before", lw, page.GetResourceVersion())
	s.must(s.Uninstall(s.Context()))
}

func (s *suite) metadata() {
	cm := configMap(s, "a", map[string]string{"x": "y"})
	cm.Data = map[string]string{"big": "content"}
	s.must(s.Apply(s.Context(), cm))
	lw, err := s.Source().MetadataListWatch(ConfigMaps, s.Namespace(), nil)
	s.must(err)
	list, err := lw.ListWithContext(s.Context(), metav1.ListOptions{})
	s.must(err)
	items, err := meta.ExtractList(list)
	s.must(err)
	if len(items) != 1 {
		s.Fatalf("%d items", len(items))
	}
	p, ok := items[0].(*metav1.PartialObjectMetadata)
	if !ok || p.Name != "a" || p.Labels["x"] != "y" || p.UID == "" || p.ResourceVersion == "" {
		s.Fatalf("listed %T %+v", items[0], items[0])
	}
	w, err := lw.WatchWithContext(s.Context(), metav1.ListOptions{ResourceVersion: p.ResourceVersion})
	s.must(err)
	defer w.Stop()
	s.must(s.Delete(s.Context(), "a"))
	e := <-w.ResultChan()
	if gone, ok := e.Object.(*metav1.PartialObjectMetadata); e.Type != watch.Deleted || !ok || gone.UID != p.UID {
		s.Errorf("event %+v", e)
	}
}

func (s *suite) fetch() {
	cm := configMap(s, "a", nil)
	cm.Data = map[string]string{"big": "content"}
	s.must(s.Apply(s.Context(), cm))
	obj, err := s.Source().Fetch(s.Context(), ConfigMaps, s.Namespace(), "a")
	s.must(err)
	if got, ok := obj.(*corev1.ConfigMap); !ok || got.Data["big"] != "content" || got.Kind != "ConfigMap" {
		s.Errorf("fetched %T %+v", obj, obj)
	}
	_, err = s.Source().Fetch(s.Context(), ConfigMaps, s.Namespace(), "b")
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details.Name != "b" {
		s.Errorf("of nothing: %v", err)
	}
}

func (s *suite) recreated() {
	uid := func() string {
		obj, err := s.Source().Fetch(s.Context(), ConfigMaps, s.Namespace(), "a")
		s.must(err)
		return string(obj.GetUID())
	}
	s.apply("a", nil)
	first := uid()
	s.apply("a", map[string]string{"a": "b"})
	if uid() != first {
		s.Error("an update changes the uid")
	}
	s.must(s.Delete(s.Context(), "a"))
	s.apply("a", nil)
	if uid() == first {
		s.Error("an object that was deleted and created has its old uid")
	}
}
