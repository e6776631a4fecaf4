// Package memapi is an API server in memory. It implements all that list and watch
// show: resource versions, a log of events, selectors, bookmarks, streaming lists and
// 410 after compaction. The folder of manifests and k8swatchtest use it.
package memapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Server holds objects and the log of their changes. The zero value is not usable; see
// [New]. All methods may be called concurrently.
type Server struct {
	mu       sync.Mutex
	revision uint64
	floor    uint64 // watches from before this revision are too old
	objects  map[schema.GroupVersionResource]map[string]Object
	log      []event
	logBase  uint64        // number of events that have left the log
	changed  chan struct{} // closed and replaced when the log changes
	fault    func(context.Context, Request) error
	noMarks  bool
	pages    map[string]page // the rest of lists of which a page was sent
	tokens   uint64
	open     map[*watching]struct{}
}

// Request describes a request, for a fault.
type Request struct {
	Resource schema.GroupVersionResource
	Verb     string // "get", "list" or "watch"
	Continue bool   // a list that asks for a later page
}

// event is a change of an object. Without old and new it is a bookmark or an ending.
type event struct {
	revision uint64
	gvr      schema.GroupVersionResource // zero for all
	old, new Object                      // nil where absent
	bookmark bool                        // watches that asked for bookmarks get one
	ends     bool                        // the watches end; with gvr: the resource was removed
}

// concerns reports whether the event is one of a list-watch.
func (e event) concerns(l *ListWatch) bool { return slices.Contains(l.stored, e.gvr) || e.gvr.Empty() }

// maxLog bounds the log. Older events are compacted, as etcd does after a while.
const maxLog = 100_000

// New returns an empty server.
func New() *Server {
	return &Server{
		revision: 1,
		objects:  map[schema.GroupVersionResource]map[string]Object{},
		changed:  make(chan struct{}),
		pages:    map[string]page{},
		open:     map[*watching]struct{}{},
	}
}

func key(namespace, name string) string { return namespace + "/" + name }

// Apply creates or replaces an object. From then on the server owns it. It sets the
// resource version, and the uid if there is none.
func (s *Server) Apply(gvr schema.GroupVersionResource, obj Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(gvr, obj)
}

// Edit changes an object and reports whether it exists. The edit must not call the server.
func (s *Server) Edit(gvr schema.GroupVersionResource, namespace, name string, edit func(Object)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	gvr, old := s.find(gvr, namespace, name)
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
	if s.objects[gvr] == nil {
		s.objects[gvr] = map[string]Object{}
	}
	old := s.objects[gvr][k]
	if old != nil && obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("memapi-" + obj.GetResourceVersion()))
	}
	s.objects[gvr][k] = obj
	s.append(event{gvr: gvr, old: old, new: obj})
}

// Delete removes an object and reports whether it existed.
func (s *Server) Delete(gvr schema.GroupVersionResource, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	gvr, _ = s.find(gvr, namespace, name)
	return s.delete(gvr, key(namespace, name))
}

// find returns an object, or nil, and the resource under which it is stored.
func (s *Server) find(gvr schema.GroupVersionResource, namespace, name string) (schema.GroupVersionResource, Object) {
	for _, at := range Stored(gvr) {
		if obj := s.objects[at][key(namespace, name)]; obj != nil {
			return at, obj
		}
	}
	return gvr, nil
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

// Remove deletes all objects of a resource. Its watches send the deletions and end; a
// later watch cannot begin before. The API server does the same if a custom resource
// definition is deleted.
func (s *Server) Remove(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range Stored(gvr) {
		for _, k := range slices.Sorted(maps.Keys(s.objects[at])) {
			s.delete(at, k)
		}
	}
	s.revision++
	s.append(event{gvr: gvr, ends: true})
}

// SetFault sets a function that runs before each request. An error makes the request
// fail, and the function may wait.
func (s *Server) SetFault(f func(context.Context, Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// SetNoBookmarks suppresses the bookmark that ends a streaming list. Some proxies and
// old servers never send it (kubernetes#135895).
func (s *Server) SetNoBookmarks(off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noMarks = off
}

// DropWatches ends all open watches.
func (s *Server) DropWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(event{ends: true})
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
// bookmarks, as the API server does every minute.
func (s *Server) Bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.append(event{bookmark: true})
}

// WaitForWatches waits until the readers of all open watches have taken all earlier
// changes, or ctx ends. A bookmark follows the changes: a reflector takes the next
// event only when the one before it is in its store.
func (s *Server) WaitForWatches(ctx context.Context) error {
	s.mu.Lock()
	s.append(event{bookmark: true})
	var all []<-chan struct{}
	for w := range s.open {
		g := goal{s.logBase + uint64(len(s.log)), make(chan struct{})}
		w.goals, all = append(w.goals, g), append(all, g.reached)
	}
	s.mu.Unlock()
	for _, reached := range all {
		select {
		case <-reached:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
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

// admit lets the fault decide. It returns the number of the next event: an ending after
// that also ends the watch.
func (s *Server) admit(ctx context.Context, r Request) (next uint64, err error) {
	s.mu.Lock()
	next, fault := s.logBase+uint64(len(s.log)), s.fault
	s.mu.Unlock()
	if fault != nil && ctx.Err() == nil {
		err = fault(ctx, r)
	}
	return next, cmp.Or(err, ctx.Err())
}

// Fetch returns a copy of one object, or the error that a client gets.
func (s *Server) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error) {
	if _, err := s.admit(ctx, Request{Resource: gvr, Verb: "get"}); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, obj := s.find(gvr, namespace, name); obj != nil {
		return obj.DeepCopyObject().(Object), nil
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

// Objects returns copies of all objects of a resource, sorted.
func (s *Server) Objects(gvr schema.GroupVersionResource) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.matching(Stored(gvr), func(Object) bool { return true })
	for i, obj := range found {
		found[i] = obj.DeepCopyObject().(Object)
	}
	return found
}
