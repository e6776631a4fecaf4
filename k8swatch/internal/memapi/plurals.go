package memapi

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Plurals returns the names that the resource of a kind may have: the likeliest first.
// Kubernetes lets the author of a kind choose any, but nearly all take the English plural.
func Plurals(kind string) []string {
	name := strings.ToLower(kind)
	ends := func(with ...string) bool {
		return slices.ContainsFunc(with, func(end string) bool { return strings.HasSuffix(name, end) })
	}
	switch {
	case name == "" || name == "endpoints":
		return []string{name}
	case ends("y") && !ends("ay", "ey", "iy", "oy", "uy"):
		return []string{strings.TrimSuffix(name, "y") + "ies"}
	case ends("ss"):
		return []string{name + "es"}
	case ends("s"): // the kind may be a plural itself
		return []string{name + "es", name}
	case ends("x", "z", "ch", "sh"):
		return []string{name + "es", name + "s"}
	case ends("o"):
		return []string{name + "s", name + "es"}
	}
	return []string{name + "s"}
}

// Stored returns the resources under which objects may be stored that a watcher of gvr
// wants. Objects whose plural nobody told are stored under the likeliest one.
func Stored(gvr schema.GroupVersionResource) []schema.GroupVersionResource {
	all, r := []schema.GroupVersionResource{gvr}, gvr.Resource
	for _, kind := range []string{r, strings.TrimSuffix(r, "s"), strings.TrimSuffix(r, "es")} {
		if plurals := Plurals(kind); slices.Contains(plurals, r) {
			if at := gvr.GroupVersion().WithResource(plurals[0]); !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}

// Serves reports whether a watcher of a resource gets what is stored under another.
func Serves(watched, stored schema.GroupVersionResource) bool {
	return watched == stored || watched.GroupVersion() == stored.GroupVersion() && slices.Contains(Stored(watched), stored)
}

// Near reports whether a resource looks like a wrong plural of a kind: both are equal but
// for their ends.
func Near(kind, resource string) bool {
	name := strings.ToLower(kind)
	n := 0
	for n < min(len(name), len(resource)) && name[n] == resource[n] {
		n++
	}
	return n >= 3 && len(name)-n <= 2 && len(resource)-n <= 4 && !slices.Contains(Plurals(kind), resource)
}

// Learn notes the plural that a CustomResourceDefinition gives to its kind. It does nothing
// for other objects.
func (t *Types) Learn(obj runtime.Object) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Group != "apiextensions.k8s.io" || gvk.Kind != "CustomResourceDefinition" {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return
	}
	group, _, _ := unstructured.NestedString(content, "spec", "group")
	kind, _, _ := unstructured.NestedString(content, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(content, "spec", "names", "plural")
	if group == "" || kind == "" || plural == "" {
		return
	}
	if t.Learned == nil {
		t.Learned = map[schema.GroupKind]string{}
	}
	t.Learned[schema.GroupKind{Group: group, Kind: kind}] = plural
}

// Resource returns the resource under which objects of a kind are stored.
func (t Types) Resource(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	if learned := t.Learned[gvk.GroupKind()]; learned != "" {
		return gvk.GroupVersion().WithResource(learned)
	}
	return gvk.GroupVersion().WithResource(Plurals(gvk.Kind)[0])
}

// names reports whether a resource may be that of a kind.
func (t Types) names(gvk schema.GroupVersionKind, resource string) bool {
	if learned := t.Learned[gvk.GroupKind()]; learned != "" {
		return learned == resource
	}
	return slices.Contains(Plurals(gvk.Kind), resource)
}

// Mistaken returns an error if a watched resource has no objects, and its name looks like a
// wrong plural of a kind that has some.
func (s *Server) Mistaken(watched schema.GroupVersionResource) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range Stored(watched) {
		if len(s.objects[at]) > 0 || KindFor(watched).Type != nil {
			return nil
		}
	}
	for at, objs := range s.objects {
		for _, obj := range objs {
			if err := mistaken(watched, at, obj); err != nil {
				return err
			}
			break // all are of one kind
		}
	}
	return nil
}

func mistaken(watched, stored schema.GroupVersionResource, obj Object) error {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if watched.GroupVersion() != stored.GroupVersion() || !Near(kind, watched.Resource) {
		return nil
	}
	return fmt.Errorf("there are objects of kind %s of %s, and their plural is %s, not %s: watch %[3]s, or add the CustomResourceDefinition that says %[4]s",
		kind, stored.GroupVersion(), stored.Resource, watched.Resource)
}

// Overlooked returns an error if the watched resources do not include that of an object,
// and one of them without objects looks like a wrong plural of its kind.
func (s *Server) Overlooked(watched []schema.GroupVersionResource, stored schema.GroupVersionResource, obj Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(watched, func(w schema.GroupVersionResource) bool { return Serves(w, stored) }) {
		return nil
	}
	for _, w := range watched {
		empty := !slices.ContainsFunc(Stored(w), func(at schema.GroupVersionResource) bool { return len(s.objects[at]) > 0 })
		if err := mistaken(w, stored, obj); err != nil && empty && KindFor(w).Type == nil {
			return err
		}
	}
	return nil
}
