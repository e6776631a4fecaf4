package memapi

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// ListWatch returns a list-watch of one resource in one namespace, or in all if
// namespace is empty. tweak, if not nil, changes the options of each call.
func (s *Server) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) *ListWatch {
	return &ListWatch{server: s, gvr: gvr, stored: Stored(gvr), kind: KindFor(gvr), namespace: namespace, tweak: tweak}
}

// MetadataListWatch is ListWatch for metadata alone: it sends *metav1.PartialObjectMetadata.
func (s *Server) MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) *ListWatch {
	l := s.ListWatch(gvr, namespace, tweak)
	l.metadata = true
	return l
}

// ListWatch implements cache.ListerWatcherWithContext.
type ListWatch struct {
	server    *Server
	gvr       schema.GroupVersionResource
	stored    []schema.GroupVersionResource // where its objects may be
	kind      Kind
	namespace string
	tweak     func(*metav1.ListOptions)
	metadata  bool
}

// copy returns the copy of an object to send.
func (l *ListWatch) copy(obj Object) Object {
	if l.metadata {
		p := meta.AsPartialObjectMetadata(obj).DeepCopy()
		p.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		return p
	}
	return obj.DeepCopyObject().(Object)
}

// ListWithContext returns sorted copies of the matching objects, in pages if a limit is set.
// Like the cache of the real server it returns a list from resource version 0 as a whole.
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
		all.rest = l.server.matching(l.stored, m)
	} else {
		var ok bool
		all, ok = l.server.pages[opts.Continue]
		if !ok {
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

// page is the unsent rest of a list. Stored objects never change, so it stays as it was
// at its revision.
type page struct {
	revision uint64
	rest     []Object
}

// maxPages bounds the pages that are kept for unfinished lists.
const maxPages = 1000

// keep returns the token for fetching a page. The page can be fetched again, because an
// answer may get lost.
func (s *Server) keep(p page) string {
	if len(s.pages) >= maxPages {
		clear(s.pages)
	}
	s.tokens++
	token := strconv.FormatUint(s.tokens, 10)
	s.pages[token] = p
	return token
}

func (s *Server) matching(stored []schema.GroupVersionResource, m matcher) []Object {
	var found []Object
	for _, at := range stored {
		for _, obj := range s.objects[at] {
			if m(obj) {
				found = append(found, obj)
			}
		}
	}
	slices.SortFunc(found, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return found
}

// matcher reports whether an object belongs to a list or watch.
type matcher func(Object) bool

func (l *ListWatch) matcher(opts *metav1.ListOptions) (matcher, error) {
	if l.tweak != nil {
		l.tweak(opts)
	}
	byLabels, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	paths := map[string]*jsonpath.Bound{}
	for _, r := range byFields.Requirements() {
		path, err := jsonpath.CompileField(r.Field)
		if err == nil {
			paths[r.Field], err = path.Bind(l.kind.Type)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	return func(obj Object) bool {
		if l.namespace != "" && l.namespace != obj.GetNamespace() || !byLabels.Matches(labels.Set(obj.GetLabels())) {
			return false
		}
		var data any = obj
		if u, ok := obj.(*unstructured.Unstructured); ok {
			data = u.Object
		} else if l.kind.Type == nil && len(paths) > 0 { // client-go does not know its type
			data, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		}
		values := fields.Set{}
		for field, path := range paths {
			found, _ := path.Values(nil, data) // a path of fields alone never fails
			values[field] = strings.Join(found, ",")
		}
		return byFields.Matches(values)
	}, nil
}
