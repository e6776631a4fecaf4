package observe

import (
	"maps"
	"slices"
	"strings"
)

// Bounds of the labels of metrics.
const (
	maxValues    = 100  // of a label, besides other
	maxInstances = 1000 // labels with the name of an instance
	maxLabel     = 128  // bytes of one value
	other        = "other"
)

// label makes a text fit for the value of a label: Prometheus takes UTF-8 only.
func label(s string) string {
	if len(s) > maxLabel {
		s = strings.ToValidUTF8(s[:maxLabel-3], "") + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

// labels are the values of a label that have been used. The first maxValues have
// a series of their own, for ever; all later ones share "other".
type labels map[string]bool

// of returns the label for a name.
func (l labels) of(name string) string {
	name = label(name)
	if !l[name] {
		if len(l) >= maxValues {
			name = other
		}
		l[name] = true
	}
	return name
}

// bounded sums numbers by label, for series that are made anew at each scrape:
// the first names in alphabetical order have one of their own.
func bounded(counts map[string]int) map[string]int {
	seen, shown := labels{}, make(map[string]int, min(len(counts), maxValues+1))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		shown[seen.of(name)] += counts[name]
	}
	return shown
}
