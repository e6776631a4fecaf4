package status

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
)

// stored is an object as the API server has it.
type stored struct {
	uid     types.UID
	version string
	status  map[string]any
}

// list reads the objects of a namespace, and notes those in some.
func (s *state) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, some map[types.UID]*object) error {
	found := map[types.UID]bool{}
	err := s.each(ctx, resource, namespace, metav1.ListOptions{}, func(is *stored) {
		if o := some[is.uid]; o != nil {
			found[is.uid], o.has = true, is
			if patch, err := s.patch(o); err == nil && patch == nil {
				s.isDone(o)
			}
		}
	})
	if err != nil {
		return err
	}
	for uid, o := range some {
		if !found[uid] && (namespace == metav1.NamespaceAll || namespace == o.Namespace) {
			delete(s.objects, uid)
		}
	}
	return nil
}

// readOne reads an object by its name, unless it is gone. The verb is list, which a controller
// has anyway.
func (s *state) readOne(ctx context.Context, o *object) error {
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Name).String()}
	return s.each(ctx, o.Resource, o.Namespace, named, func(is *stored) {
		if is.uid == o.UID {
			o.has = is
		}
	})
}

// each calls f with each object of a list.
func (s *state) each(ctx context.Context, resource schema.GroupVersionResource, namespace string, opts metav1.ListOptions, f func(*stored)) error {
	return pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return s.opts.Client.Resource(resource).Namespace(namespace).List(ctx, opts)
	}).EachListItem(ctx, opts, func(one runtime.Object) error {
		u, ok := one.(*unstructured.Unstructured)
		if !ok {
			return nil // a dynamic client has no others
		}
		status, _ := u.Object["status"].(map[string]any)
		f(&stored{uid: u.GetUID(), version: u.GetResourceVersion(), status: status})
		return nil
	})
}
