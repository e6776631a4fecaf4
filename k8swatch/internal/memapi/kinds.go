package memapi

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Object is what every Kubernetes object, typed or unstructured, can do.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind says how the objects of a resource are represented.
type Kind struct {
	GVK  schema.GroupVersionKind
	Type reflect.Type // pointer type; nil where objects are unstructured
}

// KindFor finds the Go type of a resource in client-go's scheme. Resources that
// it does not know have no GVK and no type: their objects are unstructured.
func KindFor(gvr schema.GroupVersionResource) Kind {
	for kind, t := range scheme.Scheme.KnownTypes(gvr.GroupVersion()) {
		if !reflect.PointerTo(t).Implements(reflect.TypeFor[Object]()) {
			continue // lists, options
		}
		gvk := gvr.GroupVersion().WithKind(kind)
		if plural, _ := meta.UnsafeGuessKindToResource(gvk); plural == gvr {
			return Kind{GVK: gvk, Type: reflect.PointerTo(t)}
		}
	}
	return Kind{}
}

// Normalize returns the object in the representation that a watcher of its
// resource expects: typed where client-go's scheme knows the kind, with its kind
// and apiVersion set. The result may be the argument, changed.
func Normalize(obj runtime.Object) (Object, schema.GroupVersionResource, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		kinds, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil {
			return nil, schema.GroupVersionResource{}, err
		}
		gvk = kinds[0]
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && scheme.Scheme.Recognizes(gvk) {
		typed, err := scheme.Scheme.New(gvk)
		if err != nil {
			return nil, schema.GroupVersionResource{}, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
			return nil, schema.GroupVersionResource{}, err
		}
		obj = typed
	}
	o, ok := obj.(Object)
	if !ok {
		return nil, schema.GroupVersionResource{}, fmt.Errorf("%s is not an object with metadata", gvk.Kind)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return o, gvr, nil
}

// clusterScoped lists the kinds that live outside namespaces. The scheme does
// not know; the list is that of `kubectl api-resources --namespaced=false`, and
// the Gateway API's.
const clusterScoped = " Namespace Node PersistentVolume ComponentStatus" +
	" ClusterRole ClusterRoleBinding IngressClass IPAddress ServiceCIDR StorageClass VolumeAttachment CSIDriver CSINode" +
	" VolumeAttributesClass PriorityClass RuntimeClass FlowSchema PriorityLevelConfiguration DeviceClass ResourceSlice" +
	" DeviceTaintRule MutatingWebhookConfiguration ValidatingWebhookConfiguration MutatingAdmissionPolicy" +
	" MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding" +
	" CustomResourceDefinition APIService CertificateSigningRequest ClusterTrustBundle TokenReview" +
	" SelfSubjectReview SubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview" +
	" StorageVersion StorageVersionMigration GatewayClass ClusterIssuer "

// Namespaced reports whether objects of the kind live in a namespace. Kinds that
// nothing is known about do.
func Namespaced(kind string) bool {
	return !strings.Contains(clusterScoped, " "+kind+" ")
}
