package reconcile

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/hapticsdk/haptic/internal/rendering"
)

// sourceAnnotation says where an object was read. k8swatch sets it on objects of a folder.
const sourceAnnotation = "haptic.hapticsdk.dev/source"

// Resource names one Kubernetes object as it was at one time. It is comparable.
type Resource struct {
	APIVersion string    `json:"apiVersion,omitempty"` // "" if a typed object does not say it
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	Version    string    `json:"version,omitempty"` // metadata.resourceVersion
	Source     string    `json:"source,omitempty"`  // file and line, if known: "web.yaml:12"
}

// String returns kind and name, as in "Ingress shop/web".
func (r Resource) String() string {
	if r.Namespace == "" {
		return strings.TrimSpace(r.Kind + " " + r.Name)
	}
	return strings.TrimSpace(r.Kind + " " + r.Namespace + "/" + r.Name)
}

// ResourceOf names an object: a typed one of client-go, an unstructured one, or the map
// inside of one. It returns false for anything else.
//
// A typed object of a watch does not say its own kind. It gets the kind that client-go knows
// for its Go type, or else the name of the type.
func ResourceOf(v any) (Resource, bool) {
	if r, ok := v.(Resource); ok {
		return r, true
	}
	if m, ok := v.(map[string]any); ok {
		v = &unstructured.Unstructured{Object: m}
	}
	o, ok := v.(metav1.Object)
	if !ok || reflect.ValueOf(v).Kind() == reflect.Pointer && reflect.ValueOf(v).IsNil() || o.GetName() == "" {
		return Resource{}, false
	}
	r := Resource{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Version: o.GetResourceVersion(),
		Source: o.GetAnnotations()[sourceAnnotation],
	}
	if ro, ok := v.(runtime.Object); ok {
		gvk := ro.GetObjectKind().GroupVersionKind()
		r.APIVersion, r.Kind = gvk.ToAPIVersionAndKind()
	}
	if ro, ok := v.(runtime.Object); ok && r.Kind == "" {
		if kinds, _, err := scheme.Scheme.ObjectKinds(ro); err == nil && len(kinds) == 1 {
			r.APIVersion, r.Kind = kinds[0].ToAPIVersionAndKind()
		}
	}
	if r.Kind == "" {
		r.Kind = reflect.Indirect(reflect.ValueOf(v)).Type().Name()
	}
	return r, true
}

// ObjectKey names an object, whatever its version.
type ObjectKey = rendering.Key

// Key returns the key of the object.
func (r Resource) Key() ObjectKey {
	return ObjectKey{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// keyOf names an object, whatever its version.
func keyOf(obj any) (ObjectKey, bool) {
	r, ok := ResourceOf(obj)
	return r.Key(), ok
}
