package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// TestADataplaneAPIThatRefusesALine: the same over HTTP, with an API that says
// the line in its own words, and one beside it that takes everything.
func TestADataplaneAPIThatRefusesALine(t *testing.T) {
	const template = "global\n    maxconn 100\n{% for ing in ingresses %}\nbackend {{ ing.Name }}\n    {{ raw(ing.Annotations[\"text\"]) }}\n{% end %}\n"
	w := newWard(t, map[string]string{"haproxy.cfg": template})
	w.put("a=mode http", "b=http-request too-new", "c=mode http")
	refuse := func(text string) string {
		n := 0
		for line := range strings.Lines(text) {
			if n++; strings.Contains(line, "too-new") {
				return fmt.Sprintf("line %d: 'http-request' expects a rule, but got 'too-new'", n)
			}
		}
		return ""
	}
	older := dataplanetest.New(t, &dataplanetest.Options{Validate: refuse})
	newer := dataplanetest.New(t, nil)
	var targets []Target
	for i, api := range []*dataplanetest.Server{older, newer} {
		instance := api.Endpoint()
		instance.Name = []string{"older", "newer"}[i]
		client, err := dataplane.NewClient(instance, nil)
		require.NoError(t, err)
		defer client.Close()
		targets = append(targets, client)
	}
	opts := w.options()
	opts.Validator, opts.Recorder, opts.Targets = nil, nil, targets
	opts.Debounce, opts.MinInterval = 10*time.Millisecond, 10*time.Millisecond
	l, err := New(opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(ctx) })
	defer wg.Wait()
	defer cancel()

	sorted := func(api *dataplanetest.Server) string {
		found := strings.Fields(names(api.Raw()))
		slices.Sort(found)
		return strings.Join(found, " ")
	}
	eventually := func(what, want string) {
		t.Helper()
		require.Eventually(t, func() bool {
			for _, api := range []*dataplanetest.Server{older, newer} {
				if sorted(api) != want {
					return false
				}
			}
			return l.State().Ready()
		}, time.Minute, 5*time.Millisecond, "%s: older has %q, newer %q: %+v", what, sorted(older), sorted(newer), l.State())
	}
	l.Trigger("start")
	eventually("without what one of them refuses", "a c")
	require.Equal(t, "b", held(l))
	require.Regexp(t, `haproxy.cfg:5: older: configuration: .*; rendered as line \d+ of haproxy.cfg for Ingress ns/b \(b.yaml:1\)`, l.State().Quarantined[0].String())
	w.put("d=mode http")
	l.Trigger("another")
	eventually("what comes later", "a c d")
	w.put("b=mode http")
	l.Trigger("it is mended")
	eventually("all", "a b c d")
	require.Empty(t, held(l))
}
