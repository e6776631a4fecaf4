package reconcile_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// TestSharedByEntries computes a value in one entry and uses it in the others,
// once a reconciliation.
func TestSharedByEntries(t *testing.T) {
	const value = "{{ shared.ComputeIfAbsent(`n`, func() any { return count() }) }}"
	n := 0
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":       {Data: []byte("# " + value + "\n")},
		"haproxy.d/a.cfg":   {Data: []byte("# " + value + "\n")},
		"general/count.lua": {Data: []byte("-- " + value + "\n")},
	}, &templating.Options{Globals: map[string]any{"count": func() int { n++; return n }}})
	if err != nil {
		t.Fatal(err)
	}
	templates := &reconcile.Templates{Engine: engine, Input: func(context.Context) (*reconcile.Input, error) { return &reconcile.Input{}, nil }}
	for _, want := range []string{"1", "2"} {
		rendered, err := templates.Render(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := rendered.Config.Main(); strings.Count(got, "# "+want+"\n") != 2 {
			t.Errorf("got %q, want %s in both files", got, want)
		}
	}
}
