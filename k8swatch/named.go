package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch/internal/store"
)

// OnlyNamed makes a watcher hold only the objects that others name, such as the Secrets of
// Ingresses among all Secrets of a cluster. It watches metadata. It fetches what [Options.Names]
// of other watchers, Always or [Watcher.Fetch] name, and again when the metadata of that changes.
// The source must be a [MetadataSource]. The account needs the verb get, too. A fetch takes about a
// millisecond of a server: the first sync of 10,000 named objects takes seconds longer than a list.
//
// An object that nothing names any longer stays until its room is needed: an earlier version of
// another object, which is still served, may name it.
type OnlyNamed struct {
	Always []types.NamespacedName // held even if no object names them

	// BytesPerNamespace bounds what the watcher holds of one namespace: in bytes of the encoding
	// for transport, and 1 KiB for each object. The first ones are held. Those beyond the bound
	// are [Withheld]. If an object grows beyond it, the version from before stays. Zero means
	// 16 MiB.
	BytesPerNamespace int64

	Bytes    int64 // the bound of all namespaces together; zero means 8 times BytesPerNamespace
	Parallel int   // fetches at a time, in turn for each namespace; zero means 16
}

const (
	defaultNamedBytes    = 16 << 20
	defaultNamedSum      = 8 // namespaces with all that one can have
	defaultNamedParallel = 16
)

func (o *OnlyNamed) check() error {
	if o.BytesPerNamespace < 0 || o.Bytes < 0 || o.Parallel < 0 {
		return fmt.Errorf("OnlyNamed: BytesPerNamespace %d, Bytes %d, Parallel %d: want 0 or more", o.BytesPerNamespace, o.Bytes, o.Parallel)
	}
	return nil
}

// orUsual returns the options with defaults in place of zeros.
func (o OnlyNamed) orUsual() OnlyNamed {
	if o.BytesPerNamespace == 0 {
		o.BytesPerNamespace = defaultNamedBytes
	}
	if o.Bytes == 0 {
		o.Bytes = defaultNamedSum * o.BytesPerNamespace
	}
	if o.Parallel == 0 {
		o.Parallel = defaultNamedParallel
	}
	return o
}

// withheldAnnotation holds the reason of [Withheld]. Watchers drop it from objects of a source.
const withheldAnnotation = "haptic.hapticsdk.dev/withheld"

// Withheld returns why a watcher with [OnlyNamed] does not hold an object, for example that its
// namespace or all together have no room for it. The object then has its names, uid and age alone. Withheld is "" for all other
// objects.
func Withheld(o Object) string { return o.GetAnnotations()[withheldAnnotation] }

// stub returns what stands for an object that is withheld. It has no resource version: the store
// takes two objects of one version for the same.
func (in *intake) stub(of Object, reason string) (*store.Entry, error) {
	var o Object = &unstructured.Unstructured{Object: map[string]any{}}
	if in.typ != reflect.TypeOf(o) {
		o = reflect.New(in.typ.Elem()).Interface().(Object)
	}
	o.GetObjectKind().SetGroupVersionKind(of.GetObjectKind().GroupVersionKind())
	o.SetNamespace(of.GetNamespace())
	o.SetName(of.GetName())
	o.SetUID(of.GetUID())
	o.SetCreationTimestamp(of.GetCreationTimestamp())
	annotations := map[string]string{withheldAnnotation: reason}
	if source := of.GetAnnotations()[SourceAnnotation]; source != "" {
		annotations[SourceAnnotation] = source
	}
	o.SetAnnotations(annotations)
	keys, err := in.paths.keys(o)
	if err != nil {
		return nil, err
	}
	return store.NewEntry(o, keys), nil
}

// Fetch makes a watcher with [OnlyNamed] hold these objects, without an object that names them,
// and waits until it does. It holds them as long as there is room. Objects that do not exist are
// no error. If ctx ends first, the error is a [*FetchError] with the first that is missing.
func (w *Watcher) Fetch(ctx context.Context, names ...types.NamespacedName) error {
	if w.intake == nil {
		return unmade("Watcher", "New")
	}
	n := w.named
	if n == nil {
		return &OptionError{Resource: w.resource, Err: errors.New("Fetch: the watcher holds all objects: it has no Options.OnlyNamed")}
	}
	for _, of := range names {
		if n.name(of) {
			defer n.release(of)
		}
	}
	for _, of := range names {
		if !n.await(ctx, of) {
			return &FetchError{Resource: w.resource, Namespace: of.Namespace, Name: of.Name, Err: ctx.Err()}
		}
	}
	return nil
}
