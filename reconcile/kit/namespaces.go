package kit

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/k8swatch"
)

// Namespaces is a flag for the watched namespaces; none means all. It may be repeated, and
// takes several with commas between.
type Namespaces []string

// Declare declares -namespace.
func (n *Namespaces) Declare(f *Flags) {
	f.Var(n, "namespace", "watch this `namespace` only; may be repeated, or name several with commas between; empty: all")
}

// String returns the namespaces with commas between.
func (n *Namespaces) String() string { return strings.Join(*n, ",") }

// Get implements [flag.Getter].
func (n *Namespaces) Get() any { return n.String() }

// Set implements [flag.Value]. Check refuses bad names.
func (n *Namespaces) Set(text string) error {
	*n = append(*n, strings.Split(text, ",")...)
	slices.Sort(*n)
	*n = slices.Compact(*n)
	return nil
}

// Has reports whether the objects of a namespace are watched.
func (n Namespaces) Has(name string) bool { return len(n) == 0 || slices.Contains(n, name) }

// Check checks the names.
func (n Namespaces) Check(f *Flags) {
	if len(n) < 2 {
		f.CheckNamespaces("namespace")
		return
	}
	f.Check("namespace", !slices.ContainsFunc(n, func(name string) bool { return !isLabel(name) }), "names of namespaces, with commas between")
}

// Watch calls add for each namespace, or once with "" for all of them. It returns the watchers.
func (n Namespaces) Watch(add func(namespace string) *k8swatch.Watcher) (all []*k8swatch.Watcher) {
	if len(n) == 0 {
		return []*k8swatch.Watcher{add("")}
	}
	for _, name := range n {
		all = append(all, add(name))
	}
	return all
}
