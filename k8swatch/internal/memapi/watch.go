package memapi

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watching is one open watch: a cursor over the log.
type watching struct {
	server   *Server
	list     *ListWatch
	match    matcher
	initial  []Object
	bookmark Object
	marks    bool   // the client allows bookmarks
	next     uint64 // absolute number of the next event of the log
	admitted uint64 // endings from this event on count
	events   chan watch.Event
	end      chan struct{}
	once     sync.Once
	goals    []goal // guarded by the server's mutex
}

// goal is closed once a watch has sent all events before next, or has ended.
type goal struct {
	next    uint64
	reached chan struct{}
}

// reach closes the reached goals. The server is locked.
func (w *watching) reach(ended bool) {
	w.goals = slices.DeleteFunc(w.goals, func(g goal) bool {
		if g.next > w.next && !ended {
			return false
		}
		close(g.reached)
		return true
	})
}

// WatchWithContext starts a watch. It ends with ctx, with Stop, and with DropWatches.
func (l *ListWatch) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	m, err := l.matcher(&opts)
	if err != nil {
		return nil, err
	}
	s := l.server
	admitted, err := s.admit(ctx, Request{Resource: l.gvr, Verb: "watch"})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watching{
		server: s, list: l, match: m, admitted: admitted, marks: opts.AllowWatchBookmarks,
		events: make(chan watch.Event), end: make(chan struct{}),
	}
	w.next = s.logBase + uint64(len(s.log))
	switch from, perr := strconv.ParseUint(opts.ResourceVersion, 10, 64); {
	case opts.SendInitialEvents != nil && *opts.SendInitialEvents:
		w.initial = s.matching(l.stored, m)
		if !s.noMarks {
			w.bookmark = l.mark(s.revision, true)
		}
	case opts.ResourceVersion == "" || opts.ResourceVersion == "0":
		w.initial = s.matching(l.stored, m)
	case perr != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is not a number", opts.ResourceVersion))
	default:
		i, _ := slices.BinarySearchFunc(s.log, from+1, func(e event, r uint64) int { return cmp.Compare(e.revision, r) })
		if from < s.floor || slices.ContainsFunc(s.log[i:], func(e event) bool { return e.ends && slices.Contains(l.stored, e.gvr) }) {
			return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d", from))
		}
		w.next = s.logBase + uint64(i)
	}
	if n := max(admitted, s.logBase) - s.logBase; slices.ContainsFunc(s.log[n:], func(e event) bool { return e.ends && e.concerns(l) }) {
		w.Stop()
	}
	s.open[w] = struct{}{}
	go w.run(ctx)
	return w, nil
}

// ResultChan implements watch.Interface.
func (w *watching) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *watching) Stop() { w.once.Do(func() { close(w.end) }) }

func (w *watching) run(ctx context.Context) {
	defer func() {
		close(w.events)
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		delete(w.server.open, w)
		w.reach(true)
	}()
	for _, obj := range w.initial {
		if !w.send(ctx, watch.Added, w.list.copy(obj)) {
			return
		}
	}
	w.initial = nil
	if w.bookmark != nil && !w.send(ctx, watch.Bookmark, w.bookmark) {
		return
	}
	for {
		batch, changed, ok := w.batch()
		if !ok {
			status := apierrors.NewResourceExpired("the watch fell behind the compacted log").Status()
			w.send(ctx, watch.Error, &status)
			return
		}
		for _, e := range batch {
			if !w.deliver(ctx, e) {
				return
			}
			w.next++
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-w.end:
			return
		case <-ctx.Done():
			return
		}
	}
}

// batch returns the new events for this watch. ok is false if the log has lost some of them.
func (w *watching) batch() (batch []event, changed <-chan struct{}, ok bool) {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	w.reach(false)
	if w.next < s.logBase {
		return nil, nil, false
	}
	return slices.Clone(s.log[w.next-s.logBase:]), s.changed, true
}

// deliver translates an event as the API server does. If an object starts to match a
// selector, the watch sees it added; if it stops, deleted.
func (w *watching) deliver(ctx context.Context, e event) bool {
	if e.bookmark && w.marks {
		return w.send(ctx, watch.Bookmark, w.list.mark(e.revision, false))
	}
	if !e.concerns(w.list) {
		return true
	}
	if e.ends {
		return w.next < w.admitted
	}
	before, after := e.old != nil && w.match(e.old), e.new != nil && w.match(e.new)
	switch {
	case before && after:
		return w.send(ctx, watch.Modified, w.list.copy(e.new))
	case after:
		return w.send(ctx, watch.Added, w.list.copy(e.new))
	case before:
		gone := w.list.copy(e.old)
		gone.SetResourceVersion(strconv.FormatUint(e.revision, 10))
		return w.send(ctx, watch.Deleted, gone)
	}
	return true
}

func (w *watching) send(ctx context.Context, t watch.EventType, obj runtime.Object) bool {
	select {
	case w.events <- watch.Event{Type: t, Object: obj}:
		return true
	case <-w.end:
	case <-ctx.Done():
	}
	return false
}

// mark returns the object of a bookmark. An initial one ends a streaming list.
func (l *ListWatch) mark(revision uint64, initial bool) Object {
	var mark Object = &unstructured.Unstructured{Object: map[string]any{}}
	if l.metadata {
		mark = &metav1.PartialObjectMetadata{}
	} else if l.kind.Type != nil {
		mark = reflect.New(l.kind.Type.Elem()).Interface().(Object)
	}
	mark.SetResourceVersion(strconv.FormatUint(revision, 10))
	if initial {
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return mark
}
