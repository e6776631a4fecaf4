package observe_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

const canary = "canary-Q7x2"

// offline is a target that plans for real and deploys to nowhere.
type offline struct {
	mu  sync.Mutex
	has *dataplane.Config
}

func (o *offline) Name() string { return "offline" }

func (o *offline) DryRun(_ context.Context, cfg *dataplane.Config) (*dataplane.Plan, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return dataplane.Diff(o.has, cfg)
}

func (o *offline) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	plan, err := o.DryRun(ctx, cfg)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.has = cfg
	return &dataplane.Result{Plan: plan, Hash: cfg.Hash(), Reloads: 1}, nil
}

// A loop whose configuration is full of secrets: none of them may show in the
// log, the metrics or on any page.
func TestSecretsDoNotShow(t *testing.T) {
	var log, log2 bytes.Buffer
	bus := eventbus.New(nil)
	observe.Comment(bus, logTo(&log))
	target := &offline{}
	spans := tracetest.NewSpanRecorder()
	observe.Trace(bus, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	observed := &lateLoop{}
	o := newObserver(t, bus, observe.Subject{Loop: observed}, logTo(&log2))
	var err error
	if target.has, err = dataplane.NewConfig("global\n  maxconn 10\n"); err != nil {
		t.Fatal(err)
	}
	render := 0
	loop, err := reconcile.New(reconcile.Options{
		Bus:     bus,
		Targets: []reconcile.Target{target},
		Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
			render++
			cfg, err := dataplane.NewConfig(
				fmt.Sprintf("global\n  maxconn 10\n\nuserlist admins\n  user root insecure-password %s%d\n", canary, render),
				dataplane.File{Kind: dataplane.Certificate, Name: "shop.pem", Content: fmt.Appendf(nil, "%s%d", canary, render)})
			return &reconcile.Rendered{Config: cfg}, err
		}),
	})
	require.NoError(t, err)
	observed.Loop = loop
	m := observe.NewMetrics(bus, observe.Subject{Loop: loop})
	bus.Start()
	outcomes, err := loop.Once(t.Context())
	require.NoError(t, err)
	require.False(t, outcomes[0].Plan.Empty(), "nothing was compared")
	outcomes, err = loop.Once(t.Context()) // the secrets change: old and new values in one plan
	require.NoError(t, err)
	require.False(t, outcomes[0].Plan.Empty(), "nothing was compared")
	require.NoError(t, bus.Close(t.Context()))

	const token = canary + "-token"
	s := &observe.Server{Addr: "127.0.0.1:0", Token: token, Metrics: m}
	s.Register("state", func() any { return loop.State() })
	s.Register("config", func() any { return loop.Validated() })
	s.Register("files", func() any { return loop.Validated().Files() })
	s.Register("plan", func() any { return outcomes[0].Plan })
	s.Register("outcomes", func() any { return outcomes })
	s.Register("server", func() any { return fmt.Sprintf("%+v", s.Token) })
	for _, path := range []string{"/metrics", "/debug/vars/", "/debug/vars/state", "/debug/vars/config",
		"/debug/vars/files", "/debug/vars/plan", "/debug/vars/outcomes", "/debug/vars/server", "/debug/pprof/", "/healthz", "/readyz"} {
		w := get(t, s.Handler(), "http://127.0.0.1"+path, "Bearer "+token)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.NotContains(t, w.Body.String(), canary, path)
	}
	require.Contains(t, get(t, s.Handler(), "http://127.0.0.1/debug/vars/files", "Bearer "+token).Body.String(), "shop.pem")
	require.NotContains(t, log.String(), canary)
	require.Contains(t, log.String(), "new valid configuration")
	require.Contains(t, log.String(), "deployed")

	all := o.Server()
	all.Token = token
	pages := []string{"/", "/metrics", "/healthz?verbose", "/readyz?verbose"}
	for _, name := range []string{"rendered", "auxfiles", "state", "quarantine", "refused", "plan", "events", "errors", "health", "bus", "uptime", "build"} {
		pages = append(pages, "/debug/vars/"+name, "/debug/vars/"+name+"?field={.*}")
	}
	for _, path := range pages {
		w := get(t, all.Handler(), "http://127.0.0.1"+path, "Bearer "+token)
		require.NotEqual(t, http.StatusNotFound, w.Code, path)
		require.NotContains(t, w.Body.String(), canary, path)
	}
	require.Contains(t, get(t, all.Handler(), "http://127.0.0.1/debug/vars/rendered", "Bearer "+token).Body.String(), "user root insecure-password (secret)")
	require.NotContains(t, log2.String(), canary)
	require.NotEmpty(t, spans.Ended())
	for _, span := range spans.Ended() {
		require.NotContains(t, fmt.Sprint(span.Name(), span.Attributes(), span.Events(), span.Status()), canary)
	}
}

// lateLoop is a loop that is made after what observes it.
type lateLoop struct{ *reconcile.Loop }
