package k8swatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
	"github.com/hapticsdk/haptic/k8swatch/internal/store"
)

// lastApplied is a copy of the manifest that kubectl apply leaves on objects.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// maxKeys bounds the keys of one object: expressions with [*] multiply, and a
// single object with a few hundred values in each of three would be filed under
// millions of keys.
const maxKeys = 1000

// intake stands between the reflector and the store: it trims objects, computes
// their index keys, and keeps out those that cannot be stored. The reflector
// calls it from one goroutine at a time.
type intake struct {
	store     *store.Store
	resource  schema.GroupVersionResource
	typ       reflect.Type            // of the objects
	gvk       schema.GroupVersionKind // of typed objects
	paths     *compiled
	log       *slog.Logger
	prepared  func()            // an object of a list that is not complete
	replaced  func()            // a full list is in the store
	committed func(batch)       // while the store is locked
	initially func()            // the initial objects are in the store
	shared    map[string]string // strings that came lately
	foreign   bool              // nothing but the API says where objects come from

	synced  bool // of the goroutine of the reflector, as initial
	initial bool // what the store commits are the initial objects

	mu      sync.Mutex
	refused map[string]string // namespace/name -> reason
}

var _ cache.TransformingStore = (*intake)(nil)

// newIntake makes an intake of objects of a kind, zero for unstructured ones, with a
// store of its own.
func newIntake(gvr schema.GroupVersionResource, kind memapi.Kind, opts *Options) (*intake, error) {
	paths, err := opts.compile(kind.Type)
	if err != nil {
		return nil, &OptionError{Resource: gvr, Err: err}
	}
	in := &intake{
		store: store.New(len(paths.index) > 0), resource: gvr, typ: goType(kind.Type), gvk: kind.GVK,
		paths: paths, log: logger(opts.Logger).With("resource", gvr.Resource), refused: map[string]string{}, shared: map[string]string{},
		prepared: func() {}, replaced: func() {}, committed: func(batch) {}, initially: func() {},
	}
	in.store.OnCommit = in.commit
	return in, nil
}

func (in *intake) snapshot(held *store.Snapshot) *Snapshot {
	return &Snapshot{resource: in.resource, typ: in.typ, paths: in.paths, held: held}
}

// prepared is an object as the store will hold it, or the reason why it cannot.
// It stands for the object in a list: an object is trimmed once.
type prepared struct {
	types.NamespacedName
	entry *store.Entry
	err   error
}

// GetObjectKind implements runtime.Object, so that a list can hold it.
func (*prepared) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Nothing of it ever changes.
func (p *prepared) DeepCopyObject() runtime.Object { return p }

// Transformer prepares the objects of a streaming list as they come, so that the
// whole list never stands in memory as it was sent.
func (in *intake) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		in.prepared()
		return in.prepare(obj), nil
	}
}

func (in *intake) prepare(obj any) *prepared {
	if p, ok := obj.(*prepared); ok {
		return p
	}
	o, ok := obj.(Object)
	if !ok {
		return &prepared{err: fmt.Errorf("%T is not a Kubernetes object", obj)}
	}
	p := &prepared{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
	p.err = guard(func() (err error) { p.entry, err = in.entry(o); return err })
	return p
}

func (in *intake) entry(o Object) (*store.Entry, error) {
	o, err := decoded(o, in.typ)
	if err != nil {
		return nil, err
	}
	if have := reflect.TypeOf(o); have != in.typ {
		return nil, fmt.Errorf("the source sent a %s, not a %s", have, in.typ)
	}
	if o.GetName() == "" {
		return nil, errors.New("an object without a name")
	}
	trim(o, in.foreign)
	if _, untyped := o.(*unstructured.Unstructured); !untyped {
		o.GetObjectKind().SetGroupVersionKind(in.gvk) // the API leaves it out of lists
		o.SetLabels(in.share(o.GetLabels()))
		o.SetAnnotations(in.share(o.GetAnnotations()))
	}
	for _, p := range in.paths.ignore {
		p.Delete(content(o))
	}
	keys, err := in.paths.keys(o)
	if err != nil {
		return nil, err
	}
	return store.NewEntry(o, keys), nil
}

// decoded is an object of the type of a [TypedSource], which may have sent JSON.
func decoded(o Object, typ reflect.Type) (Object, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || typ == reflect.TypeOf(o) || typ.Kind() != reflect.Pointer {
		return o, nil
	}
	typed := reflect.New(typ.Elem()).Interface().(Object)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed) == nil {
		return typed, nil
	}
	text, err := json.Marshal(u.Object)
	if err == nil { // the converter names no field
		typed = reflect.New(typ.Elem()).Interface().(Object)
		err = json.Unmarshal(text, typed)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no %s: %w", typ.Elem(), err)
	}
	return typed, nil
}

// trim drops what is never stored; see the documentation of the package. Of a foreign
// object that is [SourceAnnotation], too: anybody may write it there.
func trim(obj Object, foreign bool) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", lastApplied)
		if foreign {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", SourceAnnotation)
		}
		return
	}
	obj.SetManagedFields(nil)
	if a := obj.GetAnnotations(); a != nil {
		delete(a, lastApplied)
		if foreign {
			delete(a, SourceAnnotation)
		}
		if len(a) == 0 {
			obj.SetAnnotations(nil)
		}
	}
}

// maxShared bounds how many strings are remembered at a time, and maxSharedLen
// which are.
const (
	maxShared    = 1 << 13
	maxSharedLen = 128
)

// share makes the typed objects of a watcher share the strings of their labels
// and annotations: a sixth of the memory of typical objects.
func (in *intake) share(texts map[string]string) map[string]string {
	if len(texts) == 0 {
		return nil
	}
	one := func(text string) string {
		if len(text) > maxSharedLen {
			return text
		}
		if known, ok := in.shared[text]; ok {
			return known
		}
		if len(in.shared) >= maxShared {
			clear(in.shared) // what is in use by many comes again
		}
		in.shared[text] = text
		return text
	}
	all := make(map[string]string, len(texts))
	for k, v := range texts {
		all[one(k)] = one(v)
	}
	return all
}

// content is what paths are read from.
func content(obj Object) any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return obj
}

// keys are all combinations of the values of the index paths, none without paths.
func (c *compiled) keys(o Object) ([]string, error) {
	if len(c.index) == 0 {
		return nil, nil
	}
	keys := []string{""}
	for _, p := range c.index {
		values, err := p.Values(nil, content(o))
		if err != nil {
			return nil, fmt.Errorf("IndexBy: %w", err)
		}
		if len(values) == 0 {
			values = []string{""}
		}
		n := len(keys) * len(values)
		if n > maxKeys {
			return nil, fmt.Errorf("IndexBy: with the %d values of %q the object has %d index keys; at most %d are possible",
				len(values), p, n, maxKeys)
		}
		combined := make([]string, 0, n)
		for _, v := range values {
			part := store.Key(v)
			for _, k := range keys {
				combined = append(combined, k+part)
			}
		}
		keys = combined
	}
	return keys, nil
}

// accept refuses an object that cannot be stored: it is counted and logged, its
// last good version stays, and everything else goes on.
func (in *intake) accept(p *prepared) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	name := p.String()
	if p.err == nil {
		delete(in.refused, name)
		return true
	}
	if in.refused[name] != p.err.Error() {
		in.log.Error("object left out", "object", name, "error", p.err)
	}
	in.refused[name] = p.err.Error()
	return false
}

func (in *intake) refusals() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.refused)
}

// commit is called by the store.
func (in *intake) commit(c store.Change, objects []store.Changed, more int) {
	in.committed(batch{objects: objects, Changes: Changes{Created: c.Created, Modified: c.Modified, Deleted: c.Deleted, More: more,
		InitialSync: in.initial, From: Revision(c.Revision) - 1, To: Revision(c.Revision)}})
}

func (in *intake) Add(obj any) error {
	if p := in.prepare(obj); in.accept(p) {
		in.store.Put(p.entry)
	}
	return nil
}

func (in *intake) Update(obj any) error { return in.Add(obj) }

func (in *intake) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil //nolint:nilerr // nothing is stored under it
	}
	in.mu.Lock()
	delete(in.refused, types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}.String())
	in.mu.Unlock()
	in.store.Remove(m.GetNamespace(), m.GetName())
	return nil
}

// Replace implements cache.ReflectorStore: the store gets exactly the listed
// objects, and what differs is counted.
func (in *intake) Replace(objs []any, _ string) error {
	in.mu.Lock()
	in.refused = map[string]string{}
	in.mu.Unlock()
	entries := make([]*store.Entry, 0, len(objs))
	for _, obj := range objs {
		p := in.prepare(obj)
		if e := p.entry; in.accept(p) {
			entries = append(entries, e)
		} else if e := in.store.Get(p.Namespace, p.Name); e != nil {
			entries = append(entries, e)
		}
	}
	initial := !in.synced
	in.initial, in.synced = initial, true
	in.store.Replace(entries)
	in.initial = false
	in.replaced()
	if initial {
		in.initially()
	}
	return nil
}

// Resync implements cache.ReflectorStore; there is nothing to do again.
func (in *intake) Resync() error { return nil }
