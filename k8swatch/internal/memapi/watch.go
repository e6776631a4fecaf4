package memapi

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

func uid(n uint64) types.UID { return types.UID("memapi-" + strconv.FormatUint(n, 10)) }

// watching is one open watch: a cursor over the log.
type watching struct {
	server   *Server
	list     *ListWatch
	match    matcher
	initial  []Object
	bookmark Object
	marks    bool   // bookmarks are welcome
	next     uint64 // absolute number of the next event of the log
	dropped  uint64
	events   chan watch.Event
	end      chan struct{}
	once     sync.Once
}

// ResultChan implements watch.Interface.
func (w *watching) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *watching) Stop() { w.once.Do(func() { close(w.end) }) }

func (w *watching) run(ctx context.Context) {
	defer close(w.events)
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
		batch, changed, err := w.batch()
		if err != nil {
			status := apierrors.NewResourceExpired(err.Error()).Status()
			w.sendEvent(ctx, watch.Event{Type: watch.Error, Object: &status})
			return
		}
		if changed == nil {
			return
		}
		for _, e := range batch {
			if !w.deliver(ctx, e) {
				return
			}
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

// batch takes the events that are new to this watch; changed is nil when the
// watch was dropped.
func (w *watching) batch() (batch []event, changed <-chan struct{}, err error) {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped != w.dropped {
		return nil, nil, nil
	}
	if w.next < s.logBase {
		return nil, nil, fmt.Errorf("the watch fell behind the compacted log")
	}
	batch = append(batch, s.log[w.next-s.logBase:]...)
	w.next = s.logBase + uint64(len(s.log))
	return batch, s.changed, nil
}

// deliver translates an event as the API server does: an object that starts to
// match a selector is added, one that no longer does is deleted.
func (w *watching) deliver(ctx context.Context, e event) bool {
	if e.bookmark && w.marks {
		return w.send(ctx, watch.Bookmark, w.list.mark(e.revision))
	}
	if e.gvr != w.list.gvr {
		return true
	}
	if e.removed {
		return false
	}
	before, after := e.old != nil && w.match.match(e.old), e.new != nil && w.match.match(e.new)
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

func (w *watching) send(ctx context.Context, t watch.EventType, obj Object) bool {
	return w.sendEvent(ctx, watch.Event{Type: t, Object: obj})
}

func (w *watching) sendEvent(ctx context.Context, e watch.Event) bool {
	select {
	case w.events <- e:
		return true
	case <-w.end:
	case <-ctx.Done():
	}
	return false
}

// matcher is the namespace and the selectors of one list or watch.
type matcher struct {
	namespace string
	labels    labels.Selector
	fields    []fieldMatch
}

type fieldMatch struct {
	path  *jsonpath.Bound
	value string
	not   bool
}

func (l *ListWatch) matcher(opts *metav1.ListOptions) (matcher, error) {
	if l.tweak != nil {
		l.tweak(opts)
	}
	m := matcher{namespace: l.namespace}
	var err error
	if m.labels, err = labels.Parse(opts.LabelSelector); err != nil {
		return m, apierrors.NewBadRequest(err.Error())
	}
	selector, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return m, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range selector.Requirements() {
		path, err := jsonpath.Compile(r.Field)
		if err != nil {
			return m, apierrors.NewBadRequest(err.Error())
		}
		bound, err := path.Bind(l.kind.Type)
		if err != nil {
			return m, apierrors.NewBadRequest(err.Error())
		}
		m.fields = append(m.fields, fieldMatch{path: bound, value: r.Value, not: r.Operator == "!="})
	}
	return m, nil
}

func (m matcher) match(obj Object) bool {
	if m.namespace != "" && m.namespace != obj.GetNamespace() {
		return false
	}
	if !m.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	var data any = obj
	if u, ok := obj.(*unstructured.Unstructured); ok {
		data = u.Object
	}
	for _, f := range m.fields {
		values := f.path.Values(nil, data)
		value := ""
		if len(values) > 0 {
			value = values[0]
		}
		if (value == f.value) == f.not {
			return false
		}
	}
	return true
}
