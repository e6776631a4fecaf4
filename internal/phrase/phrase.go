// Package phrase writes figures and lists as people read them, the same in all packages.
package phrase

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Count is a number of things: "1 file", "2 files".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// InARow says how often something failed, if it was more than once.
func InARow(failures int) string {
	if failures < 2 {
		return ""
	}
	return fmt.Sprintf(" %d times in a row", failures)
}

// Some names the first three, and counts the others: "a, b, c and 2 more".
func Some(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// ByKind reads "2 Ingress, 3 Service", sorted. What the controller itself watches, such
// as controller.haproxy_pods, is named where there is some.
func ByKind(resources map[string]int) string {
	parts := make([]string, 0, len(resources))
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		if resources[kind] > 0 || !strings.HasPrefix(kind, "controller.") {
			parts = append(parts, fmt.Sprintf("%d %s", resources[kind], kind))
		}
	}
	if len(parts) == 0 {
		return "no resources"
	}
	return strings.Join(parts, ", ")
}

// Clock is a time of day: a log line carries its date itself.
func Clock(t time.Time) string { return t.Format("15:04:05.000") }

// Short is the beginning of a hash, by which people know a revision.
func Short(hash string) string { return hash[:min(len(hash), 8)] }
