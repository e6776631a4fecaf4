package k8swatchtest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/k8swatch"
)

// Objects reads YAML manifests, separated by lines of ---, as a folder of manifests
// does. Give them to [NewSource], [Source.Apply] or [Snapshot]. It panics on any
// mistake in a manifest, even on a field that the kind does not have.
func Objects(manifests string) []runtime.Object {
	found, err := k8swatch.ParseManifests("manifests", []byte(manifests))
	if err != nil {
		panic(fmt.Sprintf("k8swatchtest: %v", err))
	}
	objs := make([]runtime.Object, len(found))
	for i, o := range found {
		annotations := o.GetAnnotations()
		if delete(annotations, k8swatch.SourceAnnotation); len(annotations) == 0 {
			annotations = nil
		}
		o.SetAnnotations(annotations)
		objs[i] = o
	}
	return objs
}
