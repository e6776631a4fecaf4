package reconcile

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// The functions below make what several events say of themselves sound the same.

func hashField(hash string) slog.Attr { return slog.String("hash", short(hash)) }

func resourceFields(r Resource) []slog.Attr {
	fields := []slog.Attr{slog.String("resource", r.String())}
	if r.Source != "" {
		fields = append(fields, slog.String("source", r.Source))
	}
	return fields
}

// outcomeOf says what a deployment did to HAProxy.
func outcomeOf(r *dataplane.Result) string {
	if r == nil {
		return "nothing known about it"
	}
	s := r.Plan.Summary()
	if r.Fallback != "" {
		s += "; reloaded because " + r.Fallback
	}
	return s
}

// inARow says how often something failed, if it was more than once.
func inARow(failures int) string {
	if failures < 2 {
		return ""
	}
	return fmt.Sprintf(" %d times in a row", failures)
}

// afterFailures says how often something failed that has succeeded now.
func afterFailures(n int) string {
	if n == 0 {
		return ""
	}
	return ", after " + count(n, "failure")
}

// becauseOf says why a reconciliation began.
func becauseOf(reasons []string) string {
	const most = 3 // a storm of changes has one line, too
	reasons = slices.Compact(slices.Sorted(slices.Values(reasons)))
	switch {
	case len(reasons) == 0:
		return ""
	case len(reasons) > most:
		return fmt.Sprintf(", after %s and %d more", strings.Join(reasons[:most], ", "), len(reasons)-most)
	}
	return ", after " + strings.Join(reasons, ", ")
}

// listed is a list behind its title, "" where it is empty.
func listed(title string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return title + strings.Join(names, " ")
}

// byKind reads "2 Ingress, 3 Service", sorted.
func byKind(resources map[string]int) string {
	if len(resources) == 0 {
		return "no resources"
	}
	parts := make([]string, 0, len(resources))
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		parts = append(parts, fmt.Sprintf("%d %s", resources[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// clock is a time of day: a log line carries its date itself.
func clock(t time.Time) string { return t.Format("15:04:05.000") }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func short(hash string) string { return hash[:min(len(hash), 8)] }
