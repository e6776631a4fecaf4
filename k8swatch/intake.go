package k8swatch

import (
	"context"
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

// lastApplied is the annotation in which kubectl apply leaves a copy of the manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// maxKeys bounds the keys of one object. Expressions with [*] multiply: three of them
// with a few hundred values each would file one object under millions of keys.
const maxKeys = 1000

// intake stands between the reflector and the store. It trims objects, computes their
// index keys, and refuses objects that cannot be stored. The reflector calls it from
// one goroutine at a time.
type intake struct {
	store     *store.Store
	resource  schema.GroupVersionResource
	typ       reflect.Type            // of the objects
	gvk       schema.GroupVersionKind // of typed objects
	paths     *compiled
	log       *slog.Logger
	prepared  func()            // called for an object of an incomplete list
	replaced  func()            // called when a full list is in the store
	committed func(batch)       // called while the store is locked
	initially func()            // called when the initial objects are in the store
	shared    map[string]string // recent strings
	foreign   bool              // others than the user write the objects; see isForeign
	namer     *namer            // nil: the objects name none
	rooms     *rooms            // nil: there is no bound
	round     func() context.Context
	block     func(*SyncError) // tells what keeps a watcher of what the objects name

	synced  bool // used by one goroutine at a time, as initial
	initial bool // the store is committing the initial objects

	mu      sync.Mutex
	refused map[string]string // namespace/name -> reason
}

var _ cache.TransformingStore = (*intake)(nil)

// newIntake makes an intake with its own store. The zero kind means unstructured objects.
func newIntake(gvr schema.GroupVersionResource, kind memapi.Kind, opts *Options) (*intake, error) {
	paths, err := opts.compile(kind.Type)
	if err != nil {
		return nil, &OptionError{Resource: gvr, Err: err}
	}
	in := &intake{
		store: store.New(len(paths.index) > 0), resource: gvr, typ: goType(kind.Type), gvk: kind.GVK,
		paths: paths, log: logger(opts.Logger).With("resource", gvr.Resource), refused: map[string]string{}, shared: map[string]string{},
		prepared: func() {}, replaced: func() {}, committed: func(batch) {}, initially: func() {}, block: func(*SyncError) {},
	}
	in.store.OnCommit = in.commit
	in.rooms = newRooms(opts.BytesPerNamespace)
	if opts.Names != nil {
		in.namer = newNamer(in, opts.Names)
	}
	return in, nil
}

func (in *intake) snapshot(held *store.Snapshot) *Snapshot {
	return &Snapshot{resource: in.resource, typ: in.typ, paths: in.paths, held: held}
}

// prepared is an object as the store will hold it, or the reason why it cannot. It
// replaces the object in a list, so that an object is trimmed once.
type prepared struct {
	types.NamespacedName
	entry   *store.Entry
	err     error
	names   []reference // what it names
	edition edition     // of metadata, which has no entry
}

// GetObjectKind implements runtime.Object, so that a list can hold it.
func (*prepared) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. A prepared object never changes.
func (p *prepared) DeepCopyObject() runtime.Object { return p }

// Transformer prepares the objects of a streaming list as they arrive, so that the
// untrimmed list never stands in memory as a whole.
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
	p.err = guard(func() (err error) {
		if p.entry, err = in.entry(o); err == nil && in.namer != nil {
			p.names = in.namer.read(p.entry.Object())
		}
		return err
	})
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
		o.GetObjectKind().SetGroupVersionKind(in.gvk) // lists of the API omit it
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

// decoded converts an unstructured object into the type of a [TypedSource], if there is one.
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
	if err == nil { // the converter does not name the field; the JSON decoder does
		typed = reflect.New(typ.Elem()).Interface().(Object)
		err = json.Unmarshal(text, typed)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no %s: %w", typ.Elem(), err)
	}
	return typed, nil
}

// trim drops the fields that are never stored; see the documentation of the package.
// From a foreign object it also drops [SourceAnnotation], which any author could set.
func trim(obj Object, foreign bool) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", lastApplied)
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", withheldAnnotation)
		if foreign {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", SourceAnnotation)
		}
		return
	}
	obj.SetManagedFields(nil)
	if a := obj.GetAnnotations(); a != nil {
		delete(a, lastApplied)
		delete(a, withheldAnnotation)
		if foreign {
			delete(a, SourceAnnotation)
		}
		if len(a) == 0 {
			obj.SetAnnotations(nil)
		}
	}
}

// maxShared bounds how many strings are remembered at a time, maxSharedLen their length.
const (
	maxShared    = 1 << 13
	maxSharedLen = 128
)

// share makes the typed objects of a watcher share the strings of their labels and
// annotations. That saves a sixth of the memory of typical objects.
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
			clear(in.shared) // common strings come again soon
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

// content returns the value that paths read from.
func content(obj Object) any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return obj
}

// keys returns all combinations of the values of the index paths; nil without paths.
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

// accept reports whether an object can be stored. If not, it counts and logs the
// object, and the last good version stays.
func (in *intake) accept(p *prepared) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	name := p.String()
	if p.err == nil {
		delete(in.refused, name)
		return true
	}
	if in.refused[name] != p.err.Error() {
		in.log.Error("object refused", "object", name, "error", p.err)
	}
	in.refused[name] = p.err.Error()
	return false
}

func (in *intake) refusals() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.refused)
}

// commit receives each change of the store.
func (in *intake) commit(c store.Change, objects []store.Changed, more int) {
	in.committed(batch{objects: objects, Changes: Changes{Created: c.Created, Modified: c.Modified, Deleted: c.Deleted, More: more,
		InitialSync: in.initial, From: Revision(c.Revision) - 1, To: Revision(c.Revision)}})
}

func (in *intake) Add(obj any) error {
	p := in.prepare(obj)
	in.rooms.take(p)
	switch {
	case !in.accept(p):
	case in.namer != nil:
		in.namer.add(p)
	default:
		in.store.Put(p.entry)
	}
	return nil
}

func (in *intake) Update(obj any) error { return in.Add(obj) }

func (in *intake) Delete(obj any) error {
	if of, ok := nameOfDeleted(obj); ok && in.namer != nil {
		in.namer.remove(of)
	} else if ok {
		in.remove(of)
	}
	return nil
}

// nameOfDeleted returns the name of an object, or of what stands for one that is gone.
func nameOfDeleted(obj any) (of types.NamespacedName, ok bool) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return of, false // nothing is stored under it
	}
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, true
}

// remove takes an object out of the store, and what is known of it.
func (in *intake) remove(of types.NamespacedName) {
	in.mu.Lock()
	delete(in.refused, of.String())
	in.mu.Unlock()
	in.rooms.set(of, 0)
	in.store.Remove(of.Namespace, of.Name)
}

// Replace implements cache.ReflectorStore. The store then holds exactly the listed
// objects, and counts the differences.
func (in *intake) Replace(objs []any, _ string) error {
	all := make([]*prepared, len(objs))
	for i, obj := range objs {
		all[i] = in.prepare(obj)
	}
	in.rooms.list(all)
	if in.namer != nil {
		if err := in.namer.replace(all, !in.synced); err != nil {
			return err
		}
	}
	in.mu.Lock()
	in.refused = map[string]string{}
	in.mu.Unlock()
	entries := make([]*store.Entry, 0, len(objs))
	for _, p := range all {
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

// Resync implements cache.ReflectorStore. It does nothing.
func (in *intake) Resync() error { return nil }
