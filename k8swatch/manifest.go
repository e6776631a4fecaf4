package k8swatch

import (
	"errors"
	"fmt"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/hapticsdk/haptic/k8swatch/internal/manifest"
)

// SourceAnnotation is set on the objects of a [Folder] to "file:line", so that a
// later error about an object can name its manifest.
const SourceAnnotation = manifest.SourceAnnotation

// ManifestError is an error in a file of a [Folder]. The last good objects of
// that file stay in use.
type ManifestError struct {
	File string // path, as the folder was given
	Line int    // 1-based; 0 where the whole file is meant
	Err  error
}

// Error implements error.
func (e *ManifestError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap implements errors.Is and errors.As.
func (e *ManifestError) Unwrap() error { return e.Err }

func manifestErrors(file string, errs []manifest.Error) []error {
	var all []error
	for _, e := range errs {
		all = append(all, &ManifestError{File: file, Line: e.Line, Err: e.Err})
	}
	return all
}

// ParseManifests decodes the manifests in a text as a [Folder] does: several
// documents, Lists, strictly, each object with [SourceAnnotation]. name is that
// of the file. The error joins a [*ManifestError] for each mistake; there are no
// objects then.
func ParseManifests(name string, data []byte) ([]Object, error) {
	found, errs := manifest.Parse(name, data)
	return objectsOf(name, found, errs)
}

// DecodeManifest decodes one manifest, or a List of them, that stands within a
// YAML file of another kind, as [ParseManifests] does; node says where.
func DecodeManifest(name string, node *yamlnode.Node) ([]Object, error) {
	found, errs := manifest.Decode(name, node)
	return objectsOf(name, found, errs)
}

func objectsOf(file string, found []manifest.Object, errs []manifest.Error) ([]Object, error) {
	if len(errs) > 0 {
		return nil, errors.Join(manifestErrors(file, errs)...)
	}
	objs := make([]Object, len(found))
	for i, m := range found {
		objs[i] = m.Object
	}
	return objs, nil
}

// describe names an object as messages do: Service shop/web.
func describe(o Object) string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.GetObjectKind().GroupVersionKind().Kind + " " + name
}
