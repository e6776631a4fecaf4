package memapi

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Object is any Kubernetes object, typed or unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind says how the objects of a resource are represented.
type Kind struct {
	GVK  schema.GroupVersionKind
	Type reflect.Type // pointer type; nil where objects are unstructured
}

// Types are the Go types of objects: those of the program's own scheme, which may be
// nil, and those of client-go.
type Types struct {
	Own     *runtime.Scheme
	Learned map[schema.GroupKind]string // plurals; see Learn
}

func (t Types) schemes() []*runtime.Scheme {
	if t.Own == nil {
		return []*runtime.Scheme{scheme.Scheme}
	}
	return []*runtime.Scheme{t.Own, scheme.Scheme}
}

// New returns an empty object of a kind, or nil if no type is known.
func (t Types) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	for _, s := range t.schemes() {
		if s.Recognizes(gvk) {
			return s.New(gvk)
		}
	}
	return nil, nil
}

// Known returns the kinds of a version of the API.
func (t Types) Known(gv schema.GroupVersion) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, s := range t.schemes() {
		maps.Copy(all, s.KnownTypes(gv))
	}
	return all
}

// KindFor finds the Go type of a resource. Without a type there is no GVK either, and
// the objects are unstructured.
func (t Types) KindFor(gvr schema.GroupVersionResource) (likely Kind) {
	for _, s := range t.schemes() {
		for kind, typ := range s.KnownTypes(gvr.GroupVersion()) {
			if !reflect.PointerTo(typ).Implements(reflect.TypeFor[Object]()) {
				continue // lists, options
			}
			gvk := gvr.GroupVersion().WithKind(kind)
			switch {
			case t.Resource(gvk) == gvr:
				return Kind{GVK: gvk, Type: reflect.PointerTo(typ)}
			case s != scheme.Scheme && t.names(gvk, gvr.Resource):
				likely = Kind{GVK: gvk, Type: reflect.PointerTo(typ)}
			}
		}
	}
	return likely
}

// KindFor finds the Go type of a resource that client-go knows.
func KindFor(gvr schema.GroupVersionResource) Kind { return Types{}.KindFor(gvr) }

// Normalize returns the object as a watcher of its resource expects it: typed if a type
// is known, with its kind and apiVersion set. The result may be the changed argument.
func (t Types) Normalize(obj runtime.Object) (Object, schema.GroupVersionResource, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	for _, s := range t.schemes() {
		if kinds, _, err := s.ObjectKinds(obj); gvk.Empty() && err == nil {
			gvk = kinds[0]
		}
	}
	if gvk.Empty() {
		return nil, schema.GroupVersionResource{}, fmt.Errorf("the kind of a %T is not known: set its TypeMeta, or register it in a scheme", obj)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		typed, err := t.New(gvk)
		if err == nil && typed != nil {
			err, obj = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed), typed
		}
		if err != nil {
			return nil, schema.GroupVersionResource{}, err
		}
	}
	o, ok := obj.(Object)
	if !ok {
		return nil, schema.GroupVersionResource{}, fmt.Errorf("%s is not an object with metadata", gvk.Kind)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return o, t.Resource(gvk), nil
}

// clusterScoped lists the kinds outside namespaces. The scheme does not know them. The
// list is from `kubectl api-resources --namespaced=false` and from the Gateway API.
const clusterScoped = " Namespace Node PersistentVolume ComponentStatus" +
	" ClusterRole ClusterRoleBinding IngressClass IPAddress ServiceCIDR StorageClass VolumeAttachment CSIDriver CSINode" +
	" VolumeAttributesClass PriorityClass RuntimeClass FlowSchema PriorityLevelConfiguration DeviceClass ResourceSlice" +
	" DeviceTaintRule MutatingWebhookConfiguration ValidatingWebhookConfiguration MutatingAdmissionPolicy" +
	" MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding" +
	" CustomResourceDefinition APIService CertificateSigningRequest ClusterTrustBundle TokenReview" +
	" SelfSubjectReview SubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview" +
	" StorageVersion StorageVersionMigration GatewayClass ClusterIssuer "

// Namespaced reports whether objects of the kind live in a namespace. Unknown kinds do.
func Namespaced(kind string) bool {
	return !strings.Contains(clusterScoped, " "+kind+" ")
}
