package observe_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
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

// TestSecretsOfDiscoveryDoNotShow: a Secret that is used, one that is partly filled and
// one that the Dataplane API refuses are told by key and by instance.
func TestSecretsOfDiscoveryDoNotShow(t *testing.T) {
	var log bytes.Buffer
	bus := eventbus.New(nil)
	source := k8swatchtest.NewSource(k8swatchtest.Objects(`
apiVersion: v1
kind: Pod
metadata: {name: haproxy-0, namespace: edge, labels: {app: haproxy}}
status: {podIP: 127.0.0.1, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
`)...)
	secret := func(password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: discover.DefaultSecret}, Data: map[string][]byte{
			discover.KeyDataplaneUsername: []byte(canary), discover.KeyDataplanePassword: []byte(password)}}
	}
	api := dataplanetest.New(t, &dataplanetest.Options{Password: canary + "-other"})
	at, err := url.Parse(api.URL())
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	loop, err := reconcile.New(reconcile.Options{Bus: bus, Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig("global\n    maxconn 10\n")
		return &reconcile.Rendered{Config: cfg}, err
	})})
	require.NoError(t, err)
	follower, err := discover.NewFollower(discover.FollowerOptions{Source: source, SetTargets: loop.SetTargets, Bus: bus})
	require.NoError(t, err)
	require.NoError(t, follower.Set(discover.Wanted{Selector: "app=haproxy", Secret: "edge/" + discover.DefaultSecret,
		Pods: discover.PodOptions{Namespace: "edge", Scheme: "http", Port: port}}))
	o, err := observe.New(bus, observe.Subject{Loop: loop, Discovery: follower}, logTo(&log))
	require.NoError(t, err)
	bus.Start()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = follower.Run(ctx) })
	wg.Go(func() { _ = loop.Run(ctx) })
	loop.Trigger("start")
	server := o.Server()
	server.Token = canary + "-token"
	names := func(path, what string) {
		t.Helper()
		require.Eventually(t, func() bool {
			for _, path := range []string{"/", "/metrics", "/readyz", "/readyz?verbose", "/debug/vars/credentials", "/debug/vars/events", "/debug/vars/errors", "/debug/vars/health", "/debug/vars/resources", "/debug/vars/state"} {
				require.NotContains(t, get(t, server.Handler(), "http://127.0.0.1"+path, "Bearer "+canary+"-token").Body.String(), canary, path)
			}
			return strings.Contains(get(t, server.Handler(), "http://127.0.0.1"+path, "Bearer "+canary+"-token").Body.String(), what)
		}, time.Minute, 10*time.Millisecond, what)
	}
	names("/readyz", "Secret edge/haptic-credentials: it does not exist")
	source.Apply(secret(""))
	names("/readyz", "missing or empty: dataplane_password")
	source.Apply(secret(canary))
	names("/readyz", "instance edge/haproxy-0 has no configuration yet: edge/haproxy-0: probe: not authorised (status 401)")
	names("/debug/vars/credentials", "dataplane_password")
	source.Delete(secret(""))
	names("/debug/vars/errors", "the credentials from before stay in use")
	cancel()
	wg.Wait()
	require.NoError(t, bus.Close(context.Background()))
	require.NotContains(t, log.String(), canary)
	require.Contains(t, log.String(), "missing or empty: dataplane_password")
}

// lateLoop is a loop that is made after what observes it.
type lateLoop struct{ *reconcile.Loop }
