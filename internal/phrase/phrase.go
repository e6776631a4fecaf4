// Package phrase writes figures and lists for people, in the same way in all packages.
package phrase

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Count returns "1 file", "2 files".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// InARow returns " 3 times in a row", "" below two failures.
func InARow(failures int) string {
	if failures < 2 {
		return ""
	}
	return fmt.Sprintf(" %d times in a row", failures)
}

// Some lists the first three names, and counts the others: "a, b, c and 2 more".
func Some(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// ByKind returns "2 Ingress, 3 Service", sorted. It leaves out the controller's own kinds,
// such as controller.haproxy_pods, if there are none of them.
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

// Clock returns a time of day: a log line has its own date.
func Clock(t time.Time) string { return t.Format("15:04:05.000") }

// Short returns the start of a hash, the short name of a revision.
func Short(hash string) string { return hash[:min(len(hash), 8)] }
