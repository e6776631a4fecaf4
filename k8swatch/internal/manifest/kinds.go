package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// Kinds are the kinds of the objects of a folder.
type Kinds map[schema.GroupVersionKind]*seen

type seen struct {
	first    Object
	file     string
	count    int
	misnamed string // why there is no such kind, "" if it may exist
}

// FileError is an error in one of several files.
type FileError struct {
	File string
	Error
}

// See counts an object of a file, and reports whether its kind may exist.
func (k Kinds) See(o Object, file string, types memapi.Types) bool {
	gvk := o.GetObjectKind().GroupVersionKind()
	s := k[gvk]
	if s == nil {
		s = &seen{first: o, file: file, misnamed: misnamed(gvk, types)}
		k[gvk] = s
	}
	s.count++
	return s.misnamed == "" || memapi.KindFor(o.Resource).Type == nil
}

// Errors returns an error for each kind that does not exist, and for each unread kind
// that looks misspelt, by file and line. First come the watched resources that look
// misspelt, without a file.
func (k Kinds) Errors(read []schema.GroupVersionResource, types memapi.Types) (errs []FileError) {
	for _, r := range read {
		if near := k.misspelt(r, types); near != "" {
			errs = append(errs, FileError{Error: Error{Err: fmt.Errorf("no manifest has any of the %s of %s, which are watched; did you mean %s?",
				r.Resource, r.GroupVersion(), near)}})
		}
	}
	for gvk, s := range k {
		why := s.misnamed
		if why == "" {
			why = k.unread(gvk, read, types)
		} else if watched(read, s.first.Resource) && memapi.KindFor(s.first.Resource).Type == nil {
			continue // a newer version of Kubernetes than client-go's
		}
		if why == "" {
			continue
		}
		name := strings.TrimPrefix(s.first.GetNamespace()+"/"+s.first.GetName(), "/")
		if s.count > 1 {
			name = fmt.Sprintf("%s and %d more", name, s.count-1)
		}
		errs = append(errs, FileError{s.file, Error{s.first.Line, fmt.Errorf("%s %s: %s", gvk.Kind, name, why)}})
	}
	slices.SortFunc(errs, func(a, b FileError) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Err.Error(), b.Err.Error()))
	})
	return errs
}

// has reports whether the folder has objects of a resource.
func (k Kinds) has(gvr schema.GroupVersionResource) bool {
	for _, s := range k {
		if memapi.Serves(gvr, s.first.Resource) {
			return true
		}
	}
	return false
}

// misspelt returns the typed resource that a watched name was probably meant to be; ""
// for none. Only a watched resource without a type and without objects can be misspelt.
func (k Kinds) misspelt(read schema.GroupVersionResource, types memapi.Types) string {
	if types.KindFor(read).Type != nil || k.has(read) {
		return ""
	}
	for _, kind := range slices.Sorted(maps.Keys(types.Known(read.GroupVersion()))) {
		plural := types.Resource(read.GroupVersion().WithKind(kind))
		if (slip(plural.Resource, read.Resource) || memapi.Near(kind, read.Resource)) && types.KindFor(plural).Type != nil {
			return plural.Resource
		}
	}
	return ""
}

// watched reports whether one of the watched resources gets the objects of another.
func watched(read []schema.GroupVersionResource, stored schema.GroupVersionResource) bool {
	return slices.ContainsFunc(read, func(r schema.GroupVersionResource) bool { return memapi.Serves(r, stored) })
}

// slip reports whether two names differ by one letter, or by two swapped letters. Names
// with more differences may both be meant, such as tlsroutes and tcproutes.
func slip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// misnamed returns a message if a version of the Kubernetes API lacks a kind, with the
// probable right kind. It returns "" if the kind exists, and for versions without types.
func misnamed(gvk schema.GroupVersionKind, types memapi.Types) string {
	kinds := types.Known(gvk.GroupVersion())
	if _, known := kinds[gvk.Kind]; known || len(kinds) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s has no kind %s", gvk.GroupVersion(), gvk.Kind)
	if near := strictyaml.Nearest(gvk.Kind, slices.Sorted(maps.Keys(kinds))); near != "" {
		text += "; did you mean " + near + "?"
	} else if at := versionOf(gvk.Kind); at != "" {
		text += "; it has apiVersion " + at
	}
	return text
}

// unread returns a message if a kind is not watched but resembles a watched one. It
// returns "" for watched kinds and for unrelated ones, such as a Deployment.
func (k Kinds) unread(gvk schema.GroupVersionKind, read []schema.GroupVersionResource, types memapi.Types) string {
	_, known := types.Known(gvk.GroupVersion())[gvk.Kind]
	gvr := types.Resource(gvk)
	if watched(read, gvr) {
		return ""
	}
	for _, r := range read {
		near := strictyaml.Nearest(gvk.Group, []string{r.Group}) != ""
		switch {
		case r.Resource == gvr.Resource && (r.Group == gvk.Group || near || scheme.Scheme.IsGroupRegistered(gvk.Group)):
			return fmt.Sprintf("nothing reads %s of %s; did you mean apiVersion %s?", gvk.Kind, gvk.GroupVersion(), r.GroupVersion())
		case (r.Group == gvk.Group || near) && !known && slip(gvr.Resource, r.Resource):
			if r.GroupVersion() == gvr.GroupVersion() && !k.has(r) {
				return fmt.Sprintf(
					"nothing reads it; the %s of %s are watched, and no manifest has any: did you mean to watch %s?",
					r.Resource,
					r.GroupVersion(),
					gvr.Resource,
				)
			}
			return fmt.Sprintf("nothing reads %s of %s; did you mean one of the %s of %s?", gvk.Kind, gvk.GroupVersion(), r.Resource, r.GroupVersion())
		case r.GroupVersion() == gvr.GroupVersion() && !known && memapi.Near(gvk.Kind, r.Resource) && !k.has(r):
			return fmt.Sprintf("nothing reads it; the %s of %s are watched, and no manifest has any: did you mean to watch %s? "+
				"If %s is the plural of %s, put its CustomResourceDefinition into the folder", r.Resource, r.GroupVersion(), gvr.Resource, r.Resource, gvk.Kind)
		}
	}
	return ""
}

// retired says since when API servers no longer serve the version of an object, and
// which version to write. It returns "" if the version has no successor.
func retired(obj runtime.Object) string {
	old, ok := obj.(interface {
		APILifecycleRemoved() (major, minor int)
		APILifecycleReplacement() schema.GroupVersionKind
	})
	if !ok || !scheme.Scheme.Recognizes(old.APILifecycleReplacement()) {
		return ""
	}
	major, minor := old.APILifecycleRemoved()
	return fmt.Sprintf("is not served from Kubernetes v%d.%d on: write %s", major, minor, old.APILifecycleReplacement().GroupVersion())
}

// versionOf returns the apiVersion of a kind of Kubernetes, "" for none. If there are
// several, it returns the stable one.
func versionOf(kind string) string {
	best := ""
	for gvk := range scheme.Scheme.AllKnownTypes() {
		at := gvk.GroupVersion().String()
		if gvk.Kind == kind && (best == "" || rank(at) < rank(best)) {
			best = at
		}
	}
	return best
}

// rank sorts v1 before v1beta1, and the core group before others.
func rank(version string) string {
	stable := "1"
	if version == "v1" || strings.HasSuffix(version, "/v1") {
		stable = "0"
	}
	return fmt.Sprintf("%s%03d%s", stable, len(version), version)
}
