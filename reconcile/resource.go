package reconcile

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// sourceAnnotation says where an object was read: k8swatch sets it on objects of a
// folder.
const sourceAnnotation = "haptic.hapticsdk.dev/source"

// Resource names one Kubernetes object as it was at one time. It is comparable.
type Resource struct {
	APIVersion string    `json:"apiVersion,omitempty"` // "" where a typed object does not say
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	Version    string    `json:"version,omitempty"` // metadata.resourceVersion
	Source     string    `json:"source,omitempty"`  // where it was read, if that is known: "web.yaml:12"
}

// String gives kind and name, as in "Ingress shop/web".
func (r Resource) String() string {
	if r.Namespace == "" {
		return strings.TrimSpace(r.Kind + " " + r.Name)
	}
	return strings.TrimSpace(r.Kind + " " + r.Namespace + "/" + r.Name)
}

// Same reports whether two resources are the same object, in whatever version.
func (r Resource) Same(o Resource) bool {
	return r.Kind == o.Kind && r.Namespace == o.Namespace && r.Name == o.Name &&
		(r.APIVersion == o.APIVersion || r.APIVersion == "" || o.APIVersion == "")
}

// ResourceOf names an object: a typed one of client-go, an unstructured one, or
// the map inside of such a one. It reports false for anything else.
//
// The kind of a typed object that does not say its own, as those of a watch, is
// that under which client-go knows its Go type, or else the type's name.
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

// Recorder speaks of a resource to its owner. The EventRecorder of client-go's
// tools/record is one, so that what is wrong stands in "kubectl describe". It
// must not block.
type Recorder interface {
	// Event gets a [corev1.ObjectReference] for object, "Warning" or "Normal",
	// and a reason of one word.
	Event(object runtime.Object, eventtype, reason, message string)
}

const (
	eventWarning = corev1.EventTypeWarning
	eventNormal  = corev1.EventTypeNormal
)

// maxMessage is how long the message of a Kubernetes Event may be, in bytes.
const maxMessage = 1024

// record tells the owner of a resource something, if there is a Recorder. It reports
// false where another process leads, which does so.
func (l *Loop) record(r Resource, eventtype, reason, message string) bool {
	if l.opts.Recorder == nil || r.Kind == "" || r.Name == "" || !l.leading() {
		return false
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
	}
	ref := &corev1.ObjectReference{
		APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.Version,
	}
	// One that panics only goes unheard.
	return Guard(func() error { l.opts.Recorder.Event(ref, eventtype, reason, message); return nil }) == nil
}
