package socket

import (
	"context"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// inProcess returns a server as the process knows it.
func (w *Worker) inProcess(ref change.ServerRef) change.ServerRef {
	return change.ServerRef{Backend: w.names.InProcess(ref.Backend), Server: ref.Server}
}

// mapOf reads a map as the process needs it.
func (w *Worker) mapOf(content []byte) []config.MapEntry {
	entries := config.ParseMap(content)
	for i := range entries {
		entries[i].Value = w.names.Value(entries[i].Value)
	}
	return entries
}

// mapFrom reads a map of the process as the configuration has it.
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

// backends asks for the names of all backends. A spare that was taken counts under its
// own name, and under that of the backend that took it. It returns nil where backends
// come only at a reload: for a configuration without spares, of a HAProxy that makes none.
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
		if name = strings.TrimSpace(name); name != "" && !strings.HasPrefix(name, "#") {
			backends[name], backends[w.names.Backend(name)] = true, true
		}
	}
	return backends, nil
}
