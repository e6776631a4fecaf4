package k8swatch

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// lastApplied is a copy of the manifest that kubectl apply leaves on objects.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// intake stands between the reflector and the store: it trims objects, computes
// their index keys, and keeps out those that cannot be stored. The reflector
// calls it from one goroutine at a time.
type intake struct {
	store     *store
	paths     *compiled
	gvk       schema.GroupVersionKind // of typed objects
	log       *slog.Logger
	committed func(c Changes, initial bool)
	replaced  func() // a full list is in the store

	shared  sync.Mutex // guards what objects share
	strings *interner
	symbols *symbols

	mu       sync.Mutex
	synced   bool
	bad      map[string]string // namespace/name -> reason
	progress time.Time         // when the last object of a streaming list came
}

var _ cache.TransformingStore = (*intake)(nil)

func newIntake(s *store, paths *compiled, log *slog.Logger, committed func(Changes, bool)) *intake {
	return &intake{
		store: s, paths: paths, gvk: memapi.KindFor(s.meta.resource).GVK, log: log,
		committed: committed, bad: map[string]string{}, strings: newInterner(), symbols: newSymbols(),
	}
}

// Transformer makes the entries of a streaming list as its objects come, so that
// the whole list never stands in memory as it was sent.
func (in *intake) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		in.mu.Lock()
		in.progress = time.Now()
		in.mu.Unlock()
		return in.early(obj), nil
	}
}

// early does what can be done with an object of a list that is not complete. The
// result stands for the object in Replace.
func (in *intake) early(obj any) *early {
	e, err := in.entry(obj)
	if err != nil {
		return &early{obj: obj, err: err}
	}
	return &early{entry: e}
}

func (in *intake) lastProgress() time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.progress
}

// guard turns a panic over one object into an error about it.
func (in *intake) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

func (in *intake) trim(obj Object) {
	trimCopies(obj)
	for _, p := range in.paths.ignore {
		p.Delete(content(obj))
	}
}

// trimCopies drops what is never stored; see the documentation of the package.
func trimCopies(obj Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		trimUntyped(u.Object)
		return
	}
	obj.SetManagedFields(nil)
	if a := obj.GetAnnotations(); a[lastApplied] != "" {
		delete(a, lastApplied)
		if len(a) == 0 {
			a = nil
		}
		obj.SetAnnotations(a)
	}
}

// trimUntyped is trimCopies without the copies that the methods of
// Unstructured make.
func trimUntyped(obj map[string]any) {
	metadata, _ := obj["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	a, _ := metadata["annotations"].(map[string]any)
	if text, ok := a[lastApplied].(string); ok && text != "" {
		delete(a, lastApplied)
		if len(a) == 0 {
			delete(metadata, "annotations")
		}
	}
}

// content is what paths are read from.
func content(obj Object) any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return obj
}

// entry makes what the store files.
func (in *intake) entry(obj any) (e *entry, err error) {
	if early, ok := obj.(*early); ok {
		return early.entry, early.err
	}
	o, ok := obj.(Object)
	if !ok {
		return nil, fmt.Errorf("%T is not a Kubernetes object", obj)
	}
	u, untyped := obj.(*unstructured.Unstructured)
	if have, want := reflect.TypeOf(obj), in.store.meta.typ; want != nil && have != want {
		return nil, fmt.Errorf("the source sent a %s, not a %s", have, want)
	} else if want == nil && !untyped {
		return nil, fmt.Errorf("the source sent a %s, not an unstructured object", have)
	}
	if o.GetName() == "" {
		return nil, errors.New("an object without a name")
	}
	err = in.guard(func() error {
		if !untyped {
			o.GetObjectKind().SetGroupVersionKind(in.gvk) // the API leaves it out of lists
		}
		in.trim(o)
		e = &entry{place: &place{objectName: objectName{"", o.GetName()}}, uid: o.GetUID(), version: o.GetResourceVersion()}
		var err error
		if e.keys, err = in.keys(o); err != nil {
			return err
		}
		in.shared.Lock()
		defer in.shared.Unlock()
		e.place.namespace = in.strings.text(o.GetNamespace())
		old := in.store.current(e.place.objectName)
		if old != nil && slices.Equal(old.keys, e.keys) {
			e.keys = old.keys
		}
		if untyped {
			e.dense, ok = in.symbols.encode(u.Object)
		}
		if !untyped || !ok {
			if old != nil && old.obj != nil {
				in.strings.reuse(old.obj)
			}
			in.strings.object(o)
			e.obj = o
		}
		return nil
	})
	return e, err
}

// maxKeys bounds the keys of one object: expressions with [*] multiply, and a
// single object with a few hundred values in each of three would be filed under
// millions of keys.
const maxKeys = 1000

// keys are all combinations of the values of the index paths.
func (in *intake) keys(o Object) ([]string, error) {
	paths := in.paths.index
	if len(paths) == 0 {
		return []string{encodeKey([]string{o.GetNamespace(), o.GetName()})}, nil
	}
	values := make([][]string, len(paths))
	combinations := 1
	for i, p := range paths {
		values[i] = p.Values(nil, content(o))
		if len(values[i]) == 0 {
			values[i] = []string{""}
		}
		if combinations *= len(values[i]); combinations > maxKeys {
			return nil, fmt.Errorf("IndexBy: with the %d values of %q the object has %d index keys; at most %d are possible",
				len(values[i]), p, combinations, maxKeys)
		}
	}
	keys := make([]string, 0, combinations)
	parts := make([]string, len(paths))
	for n := range combinations {
		for i := len(values) - 1; i >= 0; i-- {
			parts[i] = values[i][n%len(values[i])]
			n /= len(values[i])
		}
		keys = append(keys, encodeKey(parts))
	}
	if combinations > 1 {
		slices.Sort(keys)
		keys = slices.Clip(slices.Compact(keys))
	}
	return keys, nil
}

// accept makes an entry or, failing that, quarantines the object: it is counted
// and logged, its last good version stays, and everything else goes on.
func (in *intake) accept(obj any) *entry {
	e, err := in.entry(obj)
	name := nameOf(obj)
	in.mu.Lock()
	defer in.mu.Unlock()
	if err == nil {
		delete(in.bad, name)
		return e
	}
	if in.bad[name] != err.Error() {
		in.log.Error("object left out", "object", name, "error", err)
	}
	in.bad[name] = err.Error()
	return nil
}

func nameOf(obj any) string {
	if early, ok := obj.(*early); ok {
		if early.entry != nil {
			return early.entry.place.namespace + "/" + early.entry.place.name
		}
		obj = early.obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Sprintf("(%T)", obj)
	}
	return m.GetNamespace() + "/" + m.GetName()
}

func (in *intake) quarantined() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.bad)
}

// Add implements cache.ReflectorStore.
func (in *intake) Add(obj any) error {
	if e := in.accept(obj); e != nil {
		in.committed(in.store.change(func(c *Changes) { in.store.put(e, c) }), false)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (in *intake) Update(obj any) error { return in.Add(obj) }

// Delete implements cache.ReflectorStore.
func (in *intake) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil //nolint:nilerr // nothing is stored under it
	}
	in.mu.Lock()
	delete(in.bad, nameOf(obj))
	in.mu.Unlock()
	gone := objectName{m.GetNamespace(), m.GetName()}
	in.committed(in.store.change(func(c *Changes) { in.store.remove(gone, c) }), false)
	return nil
}

// Replace implements cache.ReflectorStore: the store gets exactly the listed
// objects, and what differs is counted.
func (in *intake) Replace(objs []any, _ string) error {
	in.mu.Lock()
	in.bad = map[string]string{}
	initial := !in.synced
	in.synced = true
	in.mu.Unlock()
	entries := make([]*entry, 0, len(objs))
	for _, obj := range objs {
		e := in.accept(obj)
		if e == nil {
			e = in.lastGood(obj)
		}
		if e != nil {
			entries = append(entries, e)
		}
	}
	c := in.store.change(func(c *Changes) { in.store.replace(entries, c) })
	in.replaced()
	in.committed(c, initial)
	return nil
}

func (in *intake) lastGood(obj any) *entry {
	if early, ok := obj.(*early); ok {
		obj = early.obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return in.store.current(objectName{m.GetNamespace(), m.GetName()})
}

// Resync implements cache.ReflectorStore; there is nothing to do again.
func (in *intake) Resync() error { return nil }
