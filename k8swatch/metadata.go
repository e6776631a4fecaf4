package k8swatch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

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

var _ MetadataSource = (*Cluster)(nil)

// MetadataListWatch implements [MetadataSource]. Only the metadata of objects
// travels, as protobuf.
func (c *Cluster) MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	if tweak == nil {
		tweak = func(*metav1.ListOptions) {}
	}
	client := metadata.ResourceInterface(c.metadata.Resource(gvr))
	if namespace != "" {
		client = c.metadata.Resource(gvr).Namespace(namespace)
	}
	return listWatchOf(client.List, client.Watch, tweak), nil
}

// Fetch implements [MetadataSource].
func (c *Cluster) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error) {
	if TypeOf(gvr) == nil {
		client := dynamic.ResourceInterface(c.dynamic.Resource(gvr))
		if namespace != "" {
			client = c.dynamic.Resource(gvr).Namespace(namespace)
		}
		return client.Get(ctx, name, metav1.GetOptions{})
	}
	client, err := c.typed(gvr)
	if err != nil {
		return nil, err
	}
	obj, err := client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(gvr.Resource).Name(name).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	o, ok := obj.(Object)
	if !ok {
		return nil, fmt.Errorf("k8swatch: the server sent a %T", obj)
	}
	o.GetObjectKind().SetGroupVersionKind(memapi.KindFor(gvr).GVK)
	return o, nil
}
