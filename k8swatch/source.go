package k8swatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	yamlnode "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/internal/printable"
	"github.com/hapticsdk/haptic/k8swatch/internal/manifest"
	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// Object is any Kubernetes object: a pointer to a type of k8s.io/api, or an
// *unstructured.Unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Source provides resources: a [Cluster], a [Folder] of manifests, or the in-memory
// source of package k8swatchtest.
type Source interface {
	// ListWatch returns the list-watch of one resource in a namespace, or in all if namespace
	// is empty. tweak, if not nil, sets the selectors of each request. Objects are typed if
	// [TypeOf] names a type, and *unstructured.Unstructured otherwise. The receiver owns them
	// and may change them. The methods of the list-watch take a context and end with it.
	ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error)
}

// isForeign reports whether other people than the user of this process write the
// objects of a source, as in a cluster.
func isForeign(src Source) bool {
	_, files := src.(interface{ namesFiles() })
	return !files
}

func (*Folder) namesFiles() {}
func (*Static) namesFiles() {}

// MetadataSource is a [Source] for a [Cached] and for [OnlyNamed]: it watches objects without
// their content, and fetches them one by one. All sources of this package are, and so is the
// in-memory source of package k8swatchtest.
type MetadataSource interface {
	Source

	// MetadataListWatch is like ListWatch; the objects are
	// *metav1.PartialObjectMetadata.
	MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error)

	// Fetch returns one object as it is now, of the type that ListWatch returns. The
	// receiver owns it. The namespace of cluster-scoped objects is "".
	Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error)
}

// TypedSource is a [Source] with Go types besides those of client-go, such as those of
// custom resources. These are a [Cluster] or [Folder] with a Scheme in its options, a
// [Static], and the in-memory source of package k8swatchtest. The name of a resource is
// the English plural of its kind: routes of a Route, policies of a Policy, gateways of a Gateway.
type TypedSource interface {
	Source

	// Scheme has the types. They embed metav1.TypeMeta and metav1.ObjectMeta, and need no
	// list type. The source sends their objects typed or as *unstructured.Unstructured, and
	// the watcher decodes the latter. If nil, there are no such types.
	Scheme() *runtime.Scheme
}

func (f *Folder) Scheme() *runtime.Scheme { return f.types.Own }

// typesOf returns the Go types for the objects of a source.
func typesOf(src Source) memapi.Types {
	switch s := src.(type) {
	case *Folder:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.types
	case *Static:
		return s.types
	}
	if typed, ok := src.(TypedSource); ok {
		return memapi.Types{Own: typed.Scheme()}
	}
	return memapi.Types{}
}

// given checks the arguments that every watcher needs.
func given(src Source, gvr schema.GroupVersionResource) error {
	missing := isNil(src)
	if !missing {
		switch s := src.(type) {
		case *Cluster:
			missing = s.dynamic == nil
		case *Folder:
			missing = s.server == nil
		case *Static:
			missing = s.server == nil
		}
	}
	switch {
	case gvr.Resource == "" || gvr.Version == "":
		return &OptionError{
			Resource: gvr,
			Err:      fmt.Errorf(`Resource %q, Version %q: want both, such as corev1.SchemeGroupVersion.WithResource("services")`, gvr.Resource, gvr.Version),
		}
	case missing:
		return &OptionError{Resource: gvr, Err: errors.New("the source is missing: want one of NewCluster, NewFolder or NewStatic")}
	}
	return nil
}

// isNil also finds a nil pointer in an interface, such as a constructor returns with an
// error.
func isNil(v any) bool {
	return v == nil || reflect.ValueOf(v).Kind() == reflect.Pointer && reflect.ValueOf(v).IsNil()
}

// unmade is the error for a zero value that no constructor made.
func unmade(what, by string) error {
	return fmt.Errorf("k8swatch: a %s that %s did not make", what, by)
}

// TypeOf returns the Go type of the objects of a resource, such as *networkingv1.Ingress. It
// returns nil if client-go's scheme does not know the resource. Then objects are
// *unstructured.Unstructured, unless a [TypedSource] has a type.
func TypeOf(gvr schema.GroupVersionResource) reflect.Type { return memapi.KindFor(gvr).Type }

// Static is a [Source] of objects that never change, such as the fixtures of a test. Its
// watchers sync at once, and it needs no goroutine. All methods may be called concurrently.
type Static struct {
	server  *memapi.Server
	types   memapi.Types
	objects []Object
}

// NewStatic returns a source of copies of these objects, typed or unstructured. It
// returns an error for objects that no cluster can have: an unknown kind, no name, or a
// name that occurs twice. The error names all of them.
//
// An object without a namespace keeps none. An object without a uid gets one that
// depends only on its resource, namespace and name.
func NewStatic(objs ...runtime.Object) (*Static, error) {
	s := &Static{server: memapi.New()}
	seen := map[objectKey]string{}
	var errs []error
	for _, obj := range objs {
		if !isNil(obj) {
			s.types.Learn(obj)
		}
	}
	for i, obj := range objs {
		if isNil(obj) {
			errs = append(errs, fmt.Errorf("k8swatch: object %d is nil", i))
			continue
		}
		o, gvr, err := s.types.Normalize(obj.DeepCopyObject())
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

// Objects returns copies of the objects, in the order of NewStatic.
func (s *Static) Objects() []Object {
	objs := make([]Object, len(s.objects))
	for i, o := range s.objects {
		objs[i] = o.DeepCopyObject().(Object)
	}
	return objs
}

// SetScheme adds Go types besides those of client-go. Call it before the first watcher
// is made.
func (s *Static) SetScheme(scheme *runtime.Scheme) { s.types.Own = scheme }
func (s *Static) Scheme() *runtime.Scheme          { return s.types.Own }

func (s *Static) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	if err := s.server.Mistaken(gvr); err != nil {
		return nil, err
	}
	return s.server.ListWatch(gvr, namespace, tweak), nil
}

func (s *Static) MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	if err := s.server.Mistaken(gvr); err != nil {
		return nil, err
	}
	return s.server.MetadataListWatch(gvr, namespace, tweak), nil
}

func (s *Static) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error) {
	return s.server.Fetch(ctx, gvr, namespace, name)
}

// SourceAnnotation is "file:line" on the objects of a [Folder], so that a later error
// about an object can name its manifest. Watchers drop it from objects of a cluster:
// their authors could name any file there.
const SourceAnnotation = manifest.SourceAnnotation

// ManifestError is an error in a file of a [Folder], or in the folder itself.
type ManifestError struct {
	File   string // path, below the folder as given
	Line   int    // 1-based; 0 means the whole file
	Err    error
	Effect Effect // "" from [ParseManifests] and [DecodeManifest]
}

// Effect says which objects are in use in spite of a [ManifestError].
type Effect string

// The effects.
const (
	LastGood     Effect = "its last good version stays in use"
	NeverGood    Effect = "it was not good before: none of it is in use"
	NoneKnown    Effect = "no earlier version of it is known: none of it is in use"
	FirstServed  Effect = "that one is in use"
	OthersServed Effect = "everything else in the file is in use"
	Served       Effect = "the file is in use"
	AllKept      Effect = "all that was read before stays in use"
)

func (e *ManifestError) Error() string {
	text := e.File
	if e.Line > 0 {
		text = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	text += ": " + e.Err.Error()
	if e.Effect != "" {
		text += "; " + string(e.Effect)
	}
	return printable.Line(text)
}

func (e *ManifestError) Unwrap() error { return e.Err }

// Errors returns the current errors of the folder: [*ManifestError] values by file and
// line. It is empty once all files are good again.
func (f *Folder) Errors() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := slices.Clone(f.errors)
	for _, e := range f.kinds.Errors(f.read, f.types) {
		if e.File == "" {
			errs = append(errs, &ManifestError{File: f.dir, Err: e.Err})
			continue
		}
		errs = append(errs, &ManifestError{File: e.File, Line: e.Line, Err: e.Err, Effect: OthersServed})
	}
	return errs
}

// notify calls OnError for new errors.
func (f *Folder) notify() {
	all, reported := f.Errors(), f.reported
	f.reported = all
	for _, err := range all {
		if !slices.ContainsFunc(reported, func(old error) bool { return old.Error() == err.Error() }) {
			f.onError(err)
		}
	}
}

// WaitForKnown blocks while a broken file has no known earlier version ([NoneKnown]), or
// until ctx ends. Until then, objects that an earlier process deployed may be missing. When
// it returns nil, the next snapshots of all running, synced watchers show the files. With
// FolderOptions.LastGood, later processes wait for the same files.
func (f *Folder) WaitForKnown(ctx context.Context) error {
	if f.server == nil {
		return unmade("Folder", "NewFolder")
	}
	for {
		f.mu.Lock()
		looked := f.looked
		unknown := false
		for _, err := range f.errors {
			var m *ManifestError
			if !errors.As(err, &m) || m.Effect != NoneKnown {
				continue
			}
			unknown = true
			if f.copies != nil {
				f.copies.Mark(filepath.Base(m.File))
			}
		}
		f.mu.Unlock()
		if !unknown {
			return f.server.WaitForWatches(ctx)
		}
		select {
		case <-looked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func manifestErrors(file string, errs []manifest.Error, effect Effect) []error {
	var all []error
	for _, e := range errs {
		all = append(all, &ManifestError{File: file, Line: e.Line, Err: e.Err, Effect: effect})
	}
	return all
}

// ParseManifests decodes a text of manifests as a [Folder] does: several documents,
// Lists, strictly, each object with [SourceAnnotation]. name is the name of the file.
// The error joins a [*ManifestError] for each mistake; then there are no objects.
func ParseManifests(name string, data []byte) ([]Object, error) {
	found, errs := manifest.Parse(name, data, memapi.Types{})
	return objectsOf(name, found, errs)
}

// DecodeManifest decodes one manifest, or a List, inside another YAML file, as
// [ParseManifests] does. node is its place in that file.
func DecodeManifest(name string, node *yamlnode.Node) ([]Object, error) {
	if node == nil {
		node = &yamlnode.Node{}
	}
	found, errs := manifest.Decode(name, node, memapi.Types{})
	return objectsOf(name, found, errs)
}

func objectsOf(file string, found []manifest.Object, errs []manifest.Error) ([]Object, error) {
	if len(errs) > 0 {
		return nil, errors.Join(manifestErrors(file, errs, "")...)
	}
	objs := make([]Object, len(found))
	for i, m := range found {
		objs[i] = m.Object
	}
	return objs, nil
}

// describe names an object as messages do, such as Service shop/web.
func describe(o Object) string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.GetObjectKind().GroupVersionKind().Kind + " " + name
}
