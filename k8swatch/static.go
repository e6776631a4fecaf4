package k8swatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// Static is a [Source] of objects that never change, such as the fixtures of a
// test. Watchers of it sync at once, as they would with a cluster. Nothing runs
// behind it. All methods may be called concurrently.
type Static struct {
	server  *memapi.Server
	objects []Object
}

var _ MetadataSource = (*Static)(nil)

// NewStatic returns a source of these objects, typed or unstructured, which it
// copies. What cannot be in a cluster is an error: a kind that nobody named, an
// object without a name, two of one name; all of them at once.
//
// An object without a namespace is taken as it is. One without a uid gets one
// that depends on its kind and name alone.
func NewStatic(objs ...runtime.Object) (*Static, error) {
	s := &Static{server: memapi.New()}
	seen := map[objectKey]string{}
	var errs []error
	for i, obj := range objs {
		if obj == nil {
			errs = append(errs, fmt.Errorf("k8swatch: object %d is nil", i))
			continue
		}
		o, gvr, err := memapi.Normalize(obj.DeepCopyObject())
		if err == nil && o.GetName() == "" {
			err = fmt.Errorf("a %s without a name", o.GetObjectKind().GroupVersionKind().Kind)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("k8swatch: object %d: %w", i, err))
			continue
		}
		key, where := objectKey{gvr, o.GetNamespace(), o.GetName()}, fmt.Sprintf("object %d", i)
		if source := o.GetAnnotations()[SourceAnnotation]; source != "" {
			where = source
		}
		if first, ok := seen[key]; ok {
			errs = append(errs, fmt.Errorf("k8swatch: %s: %s is defined at %s already", where, describe(o), first))
			continue
		}
		seen[key] = where
		if o.GetUID() == "" {
			o.SetUID(uidOf("static-", key))
		}
		s.server.Apply(gvr, o)
		s.objects = append(s.objects, o)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

func uidOf(prefix string, k objectKey) types.UID {
	sum := sha256.Sum256([]byte(k.gvr.String() + "\x00" + k.namespace + "\x00" + k.name))
	return types.UID(prefix + hex.EncodeToString(sum[:8]))
}

// Objects returns copies of the objects, in the order in which they were given.
func (s *Static) Objects() []Object {
	objs := make([]Object, len(s.objects))
	for i, o := range s.objects {
		objs[i] = o.DeepCopyObject().(Object)
	}
	return objs
}

// ListWatch implements [Source].
func (s *Static) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	return s.server.ListWatch(gvr, namespace, tweak), nil
}

// MetadataListWatch implements [MetadataSource].
func (s *Static) MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	return s.server.MetadataListWatch(gvr, namespace, tweak), nil
}

// Fetch implements [MetadataSource].
func (s *Static) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error) {
	return s.server.Fetch(ctx, gvr, namespace, name)
}
