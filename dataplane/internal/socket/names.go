package socket

import (
	"context"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// inProcess returns a server with the name of its backend in the process.
func (w *Worker) inProcess(ref change.ServerRef) change.ServerRef {
	return change.ServerRef{Backend: w.names.InProcess(ref.Backend), Server: ref.Server}
}

// mapOf reads a map of the configuration, with the names of backends in the process.
func (w *Worker) mapOf(content []byte) []config.MapEntry {
	entries := config.ParseMap(content)
	for i := range entries {
		entries[i].Value = w.names.Value(entries[i].Value)
	}
	return entries
}

// mapFrom reads a map of the process, with the names of backends in the configuration.
func (w *Worker) mapFrom(content string) string {
	if w.names == nil {
		return content
	}
	var b strings.Builder
	for line := range strings.Lines(content) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		b.WriteString(strings.TrimSuffix(key+" "+w.names.Backend(value), " ") + "\n")
	}
	return b.String()
}

// backends asks for the names of all backends. A taken spare counts under its own name, and
// under the name of the backend that took it. backends returns nil if new backends always
// need a reload. That is so without spares, if HAProxy cannot make backends.
func (w *Worker) backends(ctx context.Context, cfg *config.Config) (map[string]bool, error) {
	isSpare := func(s *config.Section) bool { return change.IsSpare(s.Name) }
	makes := change.Target{Version: w.version}.WhyNot(change.BackendFromDefaults, change.Create, "") == ""
	if !makes && !slices.ContainsFunc(cfg.Index().List, isSpare) {
		return nil, nil
	}
	answer, err := w.conn.Exec(ctx, "show backend")
	if err != nil {
		return nil, err
	}
	backends := make(map[string]bool)
	for name := range strings.Lines(answer) {
		name = strings.TrimSpace(name)
		if name != "" && !strings.HasPrefix(name, "#") {
			backends[name], backends[w.names.Backend(name)] = true, true
		}
	}
	return backends, nil
}
