package settings

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// Stores reads watched resources at one instant. The key is the name in the settings.
type Stores map[string]Store

// Store reads one watched resource.
type Store struct {
	// Get returns the objects whose index keys begin with the given ones. Do not change the
	// slice.
	Get func(ctx context.Context, keys []string) ([]k8swatch.Object, error)
	Len int // number of objects

	// Revision changes whenever Get would answer differently. Zero means unknown: then each
	// render renders again what it read from the store.
	Revision k8swatch.Revision

	snapshot *k8swatch.Snapshot // that Get reads, or that of the metadata; nil: not known
}

func (s Stores) counts() map[string]int {
	counts := make(map[string]int, len(s))
	for name, store := range s {
		counts[name] = store.Len
	}
	return counts
}

// vars returns the variables of one render.
func (p *Program) vars(from *reads) map[string]any {
	var fields []reflect.StructField
	var values []reflect.Value
	pods := storeValue(reflect.TypeFor[*corev1.Pod](), from, haproxyPods)
	for _, r := range p.resources {
		if r.name == haproxyPods {
			continue
		}
		v := storeValue(r.elem, from, r.name)
		fields = append(fields, reflect.StructField{Name: strings.ToUpper(r.name[:1]) + r.name[1:], Type: v.Type()})
		values = append(values, v)
	}
	resources := reflect.New(reflect.StructOf(fields)).Elem()
	for i, v := range values {
		resources.Field(i).Set(v)
	}
	controller := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[string](), pods.Type()))
	controller.SetMapIndex(reflect.ValueOf("haproxy_pods"), pods)
	vars := render.HostVars()
	vars["resources"], vars["controller"] = resources.Interface(), controller.Interface()
	for _, each := range p.each {
		if elem := p.elem(each.Resource); elem != nil {
			vars[each.As] = reflect.Zero(elem).Interface()
		}
	}
	return vars
}

// elem returns the type of the objects of a resource, or nil if it is not watched.
func (p *Program) elem(resource string) reflect.Type {
	i := slices.IndexFunc(p.resources, func(r programResource) bool { return r.name == resource })
	if i < 0 {
		return nil
	}
	return p.resources[i].elem
}

// storeValue returns a resource as templates see it: a struct of functions that return its
// type.
func storeValue(elem reflect.Type, from *reads, name string) reflect.Value {
	list, keys := reflect.SliceOf(elem), reflect.TypeFor[[]string]()
	get := func(keys []string) reflect.Value {
		objs, err := from.get(name, keys)
		if err != nil {
			panic(err) // the engine adds the position of the call
		}
		return typedList(list, objs)
	}
	funcs := []reflect.Value{
		reflect.MakeFunc(reflect.FuncOf(nil, []reflect.Type{list}, false), func([]reflect.Value) []reflect.Value {
			return []reflect.Value{get(nil)}
		}),
		reflect.MakeFunc(reflect.FuncOf([]reflect.Type{keys}, []reflect.Type{list}, true), func(args []reflect.Value) []reflect.Value {
			return []reflect.Value{get(args[0].Interface().([]string))}
		}),
		reflect.MakeFunc(reflect.FuncOf([]reflect.Type{keys}, []reflect.Type{elem}, true), func(args []reflect.Value) []reflect.Value {
			if found := get(args[0].Interface().([]string)); found.Len() > 0 {
				return []reflect.Value{found.Index(0)}
			}
			return []reflect.Value{reflect.Zero(elem)}
		}),
	}
	var fields []reflect.StructField
	for i, name := range []string{"List", "Get", "GetSingle"} {
		fields = append(fields, reflect.StructField{Name: name, Type: funcs[i].Type()})
	}
	v := reflect.New(reflect.StructOf(fields)).Elem()
	for i, f := range funcs {
		v.Field(i).Set(f)
	}
	return v
}

// typedList converts objects to the type that templates see.
func typedList(typ reflect.Type, objs []k8swatch.Object) reflect.Value {
	out := reflect.MakeSlice(typ, 0, len(objs))
	for _, o := range objs {
		v := reflect.ValueOf(o)
		if u, ok := o.(*unstructured.Unstructured); ok {
			v = reflect.ValueOf(u.Object)
		} else if typ.Elem().Kind() == reflect.Map { // a Go type of the source
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				panic(err)
			}
			v = reflect.ValueOf(content)
		}
		out = reflect.Append(out, v)
	}
	return out
}

// storeOf returns the store of a snapshot.
func storeOf(s *k8swatch.Snapshot) Store {
	return Store{Len: s.Len(), Revision: s.Revision() + 1, snapshot: s, Get: func(_ context.Context, keys []string) ([]k8swatch.Object, error) {
		return s.Get(keys...), nil
	}}
}

// reads reads the stores for the templates in one render. It notes every call with the
// revision of its answer. A text is rendered again only if one of its calls would be answered
// differently, so the cost of a render follows the change.
//
// The revision is that of the answer, not of the whole store. If the endpoints of one Service
// change, the backends of the others stay as they are.
type reads struct {
	render.Reads
	stores Stores
	ctx    context.Context
	items  eachItems
}

// newReads returns the reads of one render. The origins of its lines also use them afterwards.
func newReads(ctx context.Context, stores Stores, items eachItems) *reads {
	r := &reads{stores: stores, ctx: ctx, items: items}
	r.Vars, r.Same, r.Changed, r.State = []string{"resources", "controller"}, r.same, r.changed, stores
	return r
}

// lookupTimeout bounds fetches for the origin of a line, after the render.
const lookupTimeout = 10 * time.Second

// call is one call of List, Get or GetSingle.
type call struct{ store, keys string }

func callOf(store string, keys []string) call {
	return call{store, fmt.Sprintf("%q", keys)} // %q tells no key from an empty one
}

// answer is the answer to a call.
type answer struct {
	keys     []string
	revision k8swatch.Revision // of the store
	objs     []k8swatch.Object // of Get; for List the revision suffices
}

// Owners returns the objects of the answer: a line that asked for them was made of them.
func (a *answer) Owners() (all []any) {
	for _, o := range a.objs {
		all = append(all, o)
	}
	return all
}

// get answers a call and notes it.
func (r *reads) get(name string, keys []string) ([]k8swatch.Object, error) {
	if r == nil {
		return nil, nil
	}
	a, err := r.answer(name, slices.Clone(keys)) // a template may change its own slice
	if err != nil {
		return nil, err
	}
	objs := a.objs
	if len(keys) == 0 {
		a.objs = nil
	}
	r.Note(callOf(name, keys), a)
	return objs, nil
}

func (r *reads) answer(name string, keys []string) (*answer, error) {
	store, ctx := r.stores[name], r.ctx
	if ctx.Err() != nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer stop()
	}
	a := &answer{keys: keys, revision: store.Revision}
	if store.Get == nil {
		return a, nil
	}
	var err error
	a.objs, err = store.Get(ctx, keys)
	return a, err
}

// same reports whether a call would have the same answer as before.
func (r *reads) same(key, revision any) bool {
	c, before := key.(call), revision.(*answer)
	store := r.stores[c.store]
	switch {
	case store.Revision == 0:
		return false
	case store.Revision == before.revision:
		return true
	case len(before.keys) == 0:
		return false
	}
	now, err := r.answer(c.store, before.keys)
	return err == nil && slices.EqualFunc(now.objs, before.objs, sameObject)
}

// sameObject reports whether two reads returned the same version of the same object.
func sameObject(a, b k8swatch.Object) bool {
	return a == b || a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() &&
		a.GetUID() == b.GetUID() && a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}
