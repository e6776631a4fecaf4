package observe_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/printable"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// hostile clears a terminal, forges a line, and turns the direction of writing, each
// in all ways that there are.
const hostile = "web\x1b[2J\x9b\u009b2J\x7f\r\u202e\u2066\u2028\u2029\x00end"

func mustPrint(t *testing.T, what, text string) {
	t.Helper()
	require.Contains(t, text, "end", what)
	for i, r := range text {
		if !printable.Is(r) && r != '\n' && r != '\t' {
			t.Errorf("%s has %U: %q", what, r, text[max(0, i-40):min(len(text), i+40)])
		}
	}
}

// TestNothingHostileIsPrinted: no control character of a resource or an instance
// gets into a log, whatever its handler, or into any page.
func TestNothingHostileIsPrinted(t *testing.T) {
	resource := reconcile.Resource{Kind: "Ingress", Namespace: "evil", Name: hostile, Source: hostile + ".yaml:1"}
	fault := reconcile.Fault{Message: hostile, Template: reconcile.TemplateLine{File: "haproxy.cfg", Line: 1, Text: hostile}, Resources: []reconcile.Resource{resource}}
	refusal := reconcile.Refusal{Resource: "Ingress evil/" + hostile, Source: hostile, Field: hostile, Reason: hostile}
	wrong := &reconcile.ConfigError{Stage: "render", Err: errors.New(hostile)}
	state := goodDay()
	state.LastError = hostile
	state.Refused = []reconcile.Refusal{refusal}
	state.Quarantined = []reconcile.Quarantined{{Resource: resource, Fault: fault, Since: time.Now()}}
	state.Instances[0].Error, state.Instances[0].Failures = hostile, 3
	events := []any{
		reconcile.ReconciliationFailed{ID: 1, Err: wrong, Reasons: []string{hostile}},
		reconcile.ResourceRefused{ID: 1, Refusal: refusal},
		reconcile.ResourceQuarantined{ID: 1, Quarantined: state.Quarantined[0]},
		reconcile.InstanceDeploymentFailed{Instance: hostile, Err: errors.New(hostile)},
	}
	server := scene(t, state, events...)
	for _, path := range []string{"/", "/debug/vars/state", "/debug/vars/events", "/debug/vars/quarantine", "/readyz?verbose", "/debug/vars/state?field={.lastError}"} {
		mustPrint(t, path, ask(t, server, path).Body.String())
	}
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var log bytes.Buffer
		bus := eventbus.New(nil)
		observe.Comment(bus, slog.New(handler(&log)))
		publish(bus, events...)
		deliver(t, bus)
		mustPrint(t, name, log.String())
		require.Equal(t, len(events), strings.Count(log.String(), "\n"), "a line each")
	}
	for _, text := range []string{fault.String(), refusal.String(), state.Quarantined[0].String(), wrong.Error()} {
		mustPrint(t, "String", text)
	}
	forged := reconcile.Fault{Message: "a\nin quarantine: Ingress good/web", Resources: []reconcile.Resource{resource}}
	require.NotContains(t, forged.String(), "\n")
}
