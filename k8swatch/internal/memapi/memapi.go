// Package memapi is an API server in memory, as far as list and watch can tell:
// resource versions, a log of events, selectors, bookmarks, streaming lists and
// 410 after compaction. It stands behind the folder of manifests and behind
// k8swatchtest.
package memapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	floor    uint64 // watches from before this revision are too old
	dropped  uint64 // counts DropWatches
	objects  map[schema.GroupVersionResource]map[string]Object
	log      []event
	logBase  uint64        // number of events that left the log
	changed  chan struct{} // closed and replaced when the log grows or watches are dropped
	fault    func(gvr schema.GroupVersionResource, verb string) error
	noMarks  bool
}

type event struct {
	revision uint64
	gvr      schema.GroupVersionResource
	old, new Object // nil where absent
}

// maxLog bounds the log; older events are compacted, as etcd does after a while.
const maxLog = 100_000

// New returns an empty server.
func New() *Server {
	return &Server{
		revision: 1,
		objects:  map[schema.GroupVersionResource]map[string]Object{},
		changed:  make(chan struct{}),
	}
}

func key(namespace, name string) string { return namespace + "/" + name }

// Apply creates or replaces an object, which the server owns from then on. It
// sets the resource version and, where there is none, the uid.
func (s *Server) Apply(gvr schema.GroupVersionResource, obj Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	k := key(namespace, name)
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

// Get returns a copy of an object, or nil.
func (s *Server) Get(gvr schema.GroupVersionResource, namespace, name string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj := s.objects[gvr][key(namespace, name)]; obj != nil {
		return obj.DeepCopyObject().(Object)
	}
	return nil
}

// SetFault makes f decide, before each list and each watch, whether it fails.
func (s *Server) SetFault(f func(gvr schema.GroupVersionResource, verb string) error) {
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
	s.wake()
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

func (s *Server) failure(gvr schema.GroupVersionResource, verb string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(gvr, verb)
}

// ListWatch returns a list-watch of one resource in one namespace, or in all
// where namespace is empty. tweak, if not nil, changes the options of each call.
func (s *Server) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) *ListWatch {
	return &ListWatch{server: s, gvr: gvr, kind: KindFor(gvr), namespace: namespace, tweak: tweak}
}

// ListWatch implements cache.ListerWatcherWithContext.
type ListWatch struct {
	server    *Server
	gvr       schema.GroupVersionResource
	kind      Kind
	namespace string
	tweak     func(*metav1.ListOptions)
}

// ListWithContext returns copies of all objects that match, sorted.
func (l *ListWatch) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := l.matcher(&opts)
	if err != nil {
		return nil, err
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if err := l.server.failure(l.gvr, "list"); err != nil {
		return nil, err
	}
	list := &metav1.List{}
	list.ResourceVersion = strconv.FormatUint(l.server.revision, 10)
	for _, obj := range l.server.matching(l.gvr, m) {
		list.Items = append(list.Items, runtime.RawExtension{Object: obj.DeepCopyObject()})
	}
	return list, nil
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
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := l.matcher(&opts)
	if err != nil {
		return nil, err
	}
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failure(l.gvr, "watch"); err != nil {
		return nil, err
	}
	w := &watching{server: s, list: l, match: m, dropped: s.dropped, events: make(chan watch.Event), end: make(chan struct{})}
	w.next = s.logBase + uint64(len(s.log))
	switch from, perr := strconv.ParseUint(opts.ResourceVersion, 10, 64); {
	case opts.SendInitialEvents != nil && *opts.SendInitialEvents:
		w.initial = s.matching(l.gvr, m)
		w.bookmark = l.bookmark(s.revision, !s.noMarks)
	case opts.ResourceVersion == "" || opts.ResourceVersion == "0":
		w.initial = s.matching(l.gvr, m)
	case perr != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is not a number", opts.ResourceVersion))
	case from < s.floor:
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.floor))
	default:
		i, _ := slices.BinarySearchFunc(s.log, from+1, func(e event, r uint64) int { return compare(e.revision, r) })
		w.next = s.logBase + uint64(i)
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
	var mark Object = &unstructured.Unstructured{Object: map[string]any{}}
	if l.kind.Type != nil {
		if obj, err := scheme.Scheme.New(l.kind.GVK); err == nil {
			mark = obj.(Object)
		}
	}
	mark.SetResourceVersion(strconv.FormatUint(revision, 10))
	mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return mark
}
