package k8swatch

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// Object is any Kubernetes object: a pointer to a type of k8s.io/api, or an
// *unstructured.Unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Source is where resources come from: a [Cluster], a [Folder] of manifests, or
// the in-memory source of package k8swatchtest.
type Source interface {
	// ListWatch returns the list-watch of one resource in a namespace, or in all
	// of them where namespace is empty. tweak, when not nil, sets the selectors
	// of each request. Objects are typed where [TypeOf] names a type, and
	// *unstructured.Unstructured otherwise; the receiver owns them and may change
	// them. The methods of the list-watch take a context and end with it.
	ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error)
}

// MetadataSource is a [Source] whose objects can be watched without their
// content and fetched one by one: what a [Cached] needs. A [Cluster] is one, and
// the in-memory source of package k8swatchtest.
type MetadataSource interface {
	Source

	// MetadataListWatch is like ListWatch; the objects are
	// *metav1.PartialObjectMetadata.
	MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error)

	// Fetch returns one object as it is now, of the type that ListWatch gives. The
	// receiver owns it. The namespace of cluster-scoped objects is "".
	Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error)
}

// TypeOf returns the Go type of the objects of a resource, such as
// *networkingv1.Ingress, or nil where client-go's scheme does not know it and
// objects are *unstructured.Unstructured.
func TypeOf(gvr schema.GroupVersionResource) reflect.Type { return memapi.KindFor(gvr).Type }
