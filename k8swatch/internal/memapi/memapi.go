// Package memapi is an API server in memory, as far as list and watch can tell:
// resource versions, a log of events, selectors, bookmarks, streaming lists and
// 410 after compaction. It stands behind the folder of manifests and behind
// k8swatchtest.
package memapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Server holds objects and the log of what happened to them. The zero value is
// not usable; see [New]. All methods may be called concurrently.
type Server struct {
	mu       sync.Mutex
	revision uint64
	floor    uint64                                 // watches from before this revision are too old
	floors   map[schema.GroupVersionResource]uint64 // of resources that were removed
	dropped  uint64                                 // counts DropWatches
	objects  map[schema.GroupVersionResource]map[string]Object
	log      []event
	logBase  uint64        // number of events that left the log
	changed  chan struct{} // closed and replaced when the log grows or watches are dropped
	fault    func(context.Context, Request) error
	noMarks  bool
	pages    map[string]page // what follows the pages that were sent
	tokens   uint64
}

// Request is what a fault decides on.
type Request struct {
	Resource schema.GroupVersionResource
	Verb     string // "get", "list" or "watch"
	Continue bool   // a list that asks for a later page
}

type event struct {
	revision uint64
	gvr      schema.GroupVersionResource
	old, new Object // nil where absent
	bookmark bool   // nothing happened: watches that want bookmarks get one
	removed  bool   // the resource went: its watches end
}

// maxLog bounds the log; older events are compacted, as etcd does after a while.
const maxLog = 100_000

// New returns an empty server.
func New() *Server {
	return &Server{
		revision: 1,
		objects:  map[schema.GroupVersionResource]map[string]Object{},
		floors:   map[schema.GroupVersionResource]uint64{},
		changed:  make(chan struct{}),
		pages:    map[string]page{},
	}
}

func key(namespace, name string) string { return namespace + "/" + name }

// Apply creates or replaces an object, which the server owns from then on. It
// sets the resource version and, where there is none, the uid.
func (s *Server) Apply(gvr schema.GroupVersionResource, obj Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(gvr, obj)
}

// Edit changes an object and reports whether it is there. The edit must not call
// the server.
func (s *Server) Edit(gvr schema.GroupVersionResource, namespace, name string, edit func(Object)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.objects[gvr][key(namespace, name)]
	if old == nil {
		return false
	}
	obj := old.DeepCopyObject().(Object)
	edit(obj)
	s.apply(gvr, obj)
	return true
}

func (s *Server) apply(gvr schema.GroupVersionResource, obj Object) {
	s.revision++
	obj.SetResourceVersion(strconv.FormatUint(s.revision, 10))
	k := key(obj.GetNamespace(), obj.GetName())
	all := s.objects[gvr]
	if all == nil {
		all = map[string]Object{}
		s.objects[gvr] = all
	}
	old := all[k]
	if obj.GetUID() == "" {
		if old != nil {
			obj.SetUID(old.GetUID())
		} else {
			obj.SetUID(uid(s.revision))
		}
	}
	all[k] = obj
	s.append(event{gvr: gvr, old: old, new: obj})
}

// Delete removes an object and reports whether there was one.
func (s *Server) Delete(gvr schema.GroupVersionResource, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delete(gvr, key(namespace, name))
}

func (s *Server) delete(gvr schema.GroupVersionResource, k string) bool {
	old := s.objects[gvr][k]
	if old == nil {
		return false
	}
	delete(s.objects[gvr], k)
	s.revision++
	last := old.DeepCopyObject().(Object)
	last.SetResourceVersion(strconv.FormatUint(s.revision, 10))
	s.append(event{gvr: gvr, old: last})
	return true
}

// Remove deletes all objects of a resource and ends its watches once they have
// told so; a later watch cannot begin before. That is what becomes of a custom
// resource whose definition is deleted.
func (s *Server) Remove(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(s.objects[gvr])) {
		s.delete(gvr, k)
	}
	s.revision++
	s.floors[gvr] = s.revision
	s.append(event{gvr: gvr, removed: true})
}

// Get returns a copy of an object, or nil.
func (s *Server) Get(gvr schema.GroupVersionResource, namespace, name string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj := s.objects[gvr][key(namespace, name)]; obj != nil {
		return obj.DeepCopyObject().(Object)
	}
	return nil
}

// SetFault makes f decide, before each request is served, whether it fails, and
// after how long: it may wait.
func (s *Server) SetFault(f func(context.Context, Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// SetNoBookmarks keeps the bookmark that ends a streaming list from being sent,
// as some proxies and old servers do (kubernetes#135895).
func (s *Server) SetNoBookmarks(off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noMarks = off
}

// DropWatches ends all open watches.
func (s *Server) DropWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped++
	s.wake()
}

// Compact forgets the log: a watch from an older revision fails with 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	s.floor = s.revision
	s.logBase += uint64(len(s.log))
	s.log = nil
	clear(s.pages)
	s.wake()
}

// Bookmark sends a bookmark with the current revision to the watches that allow
// them, as the API server does every minute.
func (s *Server) Bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(event{bookmark: true})
}

func (s *Server) append(e event) {
	e.revision = s.revision
	s.log = append(s.log, e)
	if len(s.log) > maxLog {
		half := len(s.log) / 2
		s.floor = s.log[half-1].revision
		s.log = slices.Clone(s.log[half:])
		s.logBase += uint64(half)
	}
	s.wake()
}

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// endings are what ends watches that began before.
type endings struct{ dropped, removed uint64 }

func (s *Server) endings(gvr schema.GroupVersionResource) endings {
	return endings{dropped: s.dropped, removed: s.floors[gvr]}
}

// admit lets the fault decide. A watch ends at once if there was an ending after
// those that are returned.
func (s *Server) admit(ctx context.Context, r Request) (before endings, err error) {
	if err := ctx.Err(); err != nil {
		return before, err
	}
	s.mu.Lock()
	before, fault := s.endings(r.Resource), s.fault
	s.mu.Unlock()
	if fault == nil {
		return before, nil
	}
	if err := fault(ctx, r); err != nil {
		return before, err
	}
	return before, ctx.Err()
}

// Fetch returns a copy of one object; an error is what a client gets.
func (s *Server) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error) {
	if _, err := s.admit(ctx, Request{Resource: gvr, Verb: "get"}); err != nil {
		return nil, err
	}
	if obj := s.Get(gvr, namespace, name); obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

// Objects returns copies of all objects of a resource, sorted.
func (s *Server) Objects(gvr schema.GroupVersionResource) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.matching(gvr, matcher{labels: labels.Everything()})
	for i, obj := range found {
		found[i] = obj.DeepCopyObject().(Object)
	}
	return found
}

// ListWatch returns a list-watch of one resource in one namespace, or in all
// where namespace is empty. tweak, if not nil, changes the options of each call.
func (s *Server) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) *ListWatch {
	return &ListWatch{server: s, gvr: gvr, kind: KindFor(gvr), namespace: namespace, tweak: tweak}
}

// MetadataListWatch is ListWatch for metadata alone: what it sends are
// *metav1.PartialObjectMetadata.
func (s *Server) MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) *ListWatch {
	l := s.ListWatch(gvr, namespace, tweak)
	l.metadata = true
	return l
}

// ListWatch implements cache.ListerWatcherWithContext.
type ListWatch struct {
	server    *Server
	gvr       schema.GroupVersionResource
	kind      Kind
	namespace string
	tweak     func(*metav1.ListOptions)
	metadata  bool
}

// copy is what is sent of an object.
func (l *ListWatch) copy(obj Object) Object {
	if l.metadata {
		p := meta.AsPartialObjectMetadata(obj).DeepCopy()
		p.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		return p
	}
	return obj.DeepCopyObject().(Object)
}

// ListWithContext returns copies of the objects that match, sorted, in pages
// where a limit is set. Like the real server's cache it gives a list from
// resource version 0 as a whole.
func (l *ListWatch) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	m, err := l.matcher(&opts)
	if err != nil {
		return nil, err
	}
	if _, err := l.server.admit(ctx, Request{Resource: l.gvr, Verb: "list", Continue: opts.Continue != ""}); err != nil {
		return nil, err
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	all := page{revision: l.server.revision}
	if opts.Continue == "" {
		all.rest = l.server.matching(l.gvr, m)
	} else {
		var ok bool
		if all, ok = l.server.pages[opts.Continue]; !ok {
			return nil, apierrors.NewResourceExpired("the continue token is too old")
		}
	}
	limit := int(opts.Limit)
	if limit == 0 || (opts.ResourceVersion == "0" && opts.Continue == "") {
		limit = len(all.rest)
	}
	list := &metav1.List{}
	list.ResourceVersion = strconv.FormatUint(all.revision, 10)
	for _, obj := range all.rest[:min(limit, len(all.rest))] {
		list.Items = append(list.Items, runtime.RawExtension{Object: l.copy(obj)})
	}
	if limit < len(all.rest) {
		list.Continue = l.server.keep(page{all.revision, all.rest[limit:]})
	}
	return list, nil
}

// page is what a list has not sent yet. Stored objects never change, so it stays
// what it was at its revision.
type page struct {
	revision uint64
	rest     []Object
}

// maxPages bounds what is kept for lists that are not read to their end.
const maxPages = 1000

// keep returns the token under which a page is fetched, again too: the answer
// may get lost.
func (s *Server) keep(p page) string {
	if len(s.pages) >= maxPages {
		clear(s.pages)
	}
	s.tokens++
	token := strconv.FormatUint(s.tokens, 10)
	s.pages[token] = p
	return token
}

func (s *Server) matching(gvr schema.GroupVersionResource, m matcher) []Object {
	var found []Object
	for _, obj := range s.objects[gvr] {
		if m.match(obj) {
			found = append(found, obj)
		}
	}
	slices.SortFunc(found, func(a, b Object) int {
		if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	return found
}

// WatchWithContext starts a watch. It ends with ctx, with Stop, and when watches
// are dropped.
func (l *ListWatch) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	m, err := l.matcher(&opts)
	if err != nil {
		return nil, err
	}
	s := l.server
	before, err := s.admit(ctx, Request{Resource: l.gvr, Verb: "watch"})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watching{
		server: s, list: l, match: m, dropped: before.dropped, marks: opts.AllowWatchBookmarks,
		events: make(chan watch.Event), end: make(chan struct{}),
	}
	w.next = s.logBase + uint64(len(s.log))
	switch from, perr := strconv.ParseUint(opts.ResourceVersion, 10, 64); {
	case opts.SendInitialEvents != nil && *opts.SendInitialEvents:
		w.initial = s.matching(l.gvr, m)
		w.bookmark = l.bookmark(s.revision, !s.noMarks)
	case opts.ResourceVersion == "" || opts.ResourceVersion == "0":
		w.initial = s.matching(l.gvr, m)
	case perr != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is not a number", opts.ResourceVersion))
	case from < max(s.floor, s.floors[l.gvr]):
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, max(s.floor, s.floors[l.gvr])))
	default:
		i, _ := slices.BinarySearchFunc(s.log, from+1, func(e event, r uint64) int { return compare(e.revision, r) })
		w.next = s.logBase + uint64(i)
	}
	if s.floors[l.gvr] != before.removed {
		w.Stop()
	}
	go w.run(ctx)
	return w, nil
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// List implements the older half of cache.ListerWatcher.
func (l *ListWatch) List(opts metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), opts)
}

// Watch implements the older half of cache.ListerWatcher.
func (l *ListWatch) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), opts)
}

// bookmark is the object that ends a streaming list.
func (l *ListWatch) bookmark(revision uint64, send bool) Object {
	if !send {
		return nil
	}
	mark := l.mark(revision)
	mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return mark
}

// mark is the object of a bookmark.
func (l *ListWatch) mark(revision uint64) Object {
	var mark Object = &unstructured.Unstructured{Object: map[string]any{}}
	if l.kind.Type != nil {
		if obj, err := scheme.Scheme.New(l.kind.GVK); err == nil {
			mark = obj.(Object)
		}
	}
	if l.metadata {
		mark = &metav1.PartialObjectMetadata{}
	}
	mark.SetResourceVersion(strconv.FormatUint(revision, 10))
	return mark
}
