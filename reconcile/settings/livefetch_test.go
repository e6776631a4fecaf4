package settings

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// TestTemplatesFetch: templates of a Live fetch without anything else being set, and
// what changes at a URL is deployed. So it is with a store of the host.
func TestTemplatesFetch(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]*fetch.Store{"its own": nil, "of the host": {Retries: -1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answer atomic.Value
			answer.Store("first")
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer.Load()) }))
			defer server.Close()
			bus := eventbus.New(nil)
			accepted := make(chan string, 10)
			eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[fetch.Accepted]) { accepted <- d.Event.URL })
			bus.Start()
			live, err := NewLive(LiveOptions{Source: k8swatchtest.NewSource(), Bus: bus, Program: ProgramOptions{HTTP: store}})
			require.NoError(t, err)
			target := &fakeTarget{name: "a"}
			loop, err := live.NewLoop(reconcile.Options{Targets: []reconcile.Target{target}, MinInterval: time.Millisecond})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 2)
			go func() { done <- live.Run(ctx) }()
			go func() { done <- loop.Run(ctx) }()
			defer func() {
				stop()
				require.NoError(t, <-done)
				require.NoError(t, <-done)
				require.NoError(t, bus.Close(context.Background()))
			}()
			require.NoError(t, live.ApplyYAML(ctx, "s.yaml", fmt.Appendf(nil, `
haproxyConfig:
  template: |
    # {{ http.FetchWith(%q, map[string]any{"interval": "1s"}) }}
`, server.URL+"/x?key=c4nary")))
			require.Equal(t, server.URL+"/x?...", <-accepted)
			answer.Store("second")
			<-accepted
			texts := target.texts()
			require.Equal(t, "# first", strings.TrimSpace(texts[0]))
			require.Equal(t, "# second", strings.TrimSpace(texts[len(texts)-1]))
			require.Len(t, live.HTTP().Resources(), 1)
		})
	}
}

// TestURLsOfBeforeAreDropped: what no template of the settings in use fetches is not
// fetched any more, also where they fetch nothing at all or make the same text.
func TestURLsOfBeforeAreDropped(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]string{
		"nothing":            `{template: "# other\n"}`,
		"nothing, same text": `{template: "# x\n"}`,
		"another":            `{template: "# other {{ http.Fetch(\"URL/other\") }}\n"}`,
		"another, same text": `{template: "# {{ http.Fetch(\"URL/other\") }}\n"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }))
			defer server.Close()
			live, err := NewLive(LiveOptions{Source: k8swatchtest.NewSource()})
			require.NoError(t, err)
			loop, err := live.NewLoop(reconcile.Options{Targets: []reconcile.Target{&fakeTarget{name: "a"}}, MinInterval: time.Millisecond})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 2)
			go func() { done <- live.Run(ctx) }()
			go func() { done <- loop.Run(ctx) }()
			defer func() {
				stop()
				require.NoError(t, <-done)
				require.NoError(t, <-done)
			}()
			fetches := func(url string) bool {
				all := live.HTTP().Resources()
				return len(all) == 1 && all[0].URL == url && !all[0].AcceptedAt.IsZero() || url == "" && len(all) == 0
			}
			require.NoError(t, live.ApplyYAML(ctx, "s.yaml", fmt.Appendf(nil, `haproxyConfig: {template: "# {{ http.Fetch(\"%s/first\") }}\n"}`, server.URL)))
			require.Eventually(t, func() bool { return fetches(server.URL + "/first") }, 5*time.Second, time.Millisecond)
			require.NoError(t, live.ApplyYAML(ctx, "s.yaml", []byte("haproxyConfig: "+strings.ReplaceAll(next, "URL", server.URL))))
			want := ""
			if strings.Contains(next, "other\\\"") {
				want = server.URL + "/other"
			}
			require.Eventually(t, func() bool { return fetches(want) }, 5*time.Second, time.Millisecond, "%+v", live.HTTP().Resources())
		})
	}
}
