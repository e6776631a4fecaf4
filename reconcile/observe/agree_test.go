package observe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// world is what goes on around a controller. A test changes it.
type world struct {
	mu          sync.Mutex
	refused     []reconcile.Refusal
	render      error
	deploy      error
	quarantined []reconcile.Quarantined
	waits       string
	watch       k8swatch.State
	url         fetch.Resource
	settings    settings.State
	credentials discover.CredentialsInfo
	missing     error // instances
	haproxy     error
	hangs       chan struct{} // nil: nothing does

	loop *reconcile.Loop
	bus  *eventbus.Bus
}

// change changes the world, with a trigger as of a resource that changed.
func (w *world) change(f func(w *world)) {
	w.mu.Lock()
	f(w)
	w.mu.Unlock()
	w.loop.Trigger("a change")
}

// seen is what the world has now.
func seen[T any](w *world, f func(w *world) T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f(w)
}

// State has what takes a real HAProxy to happen, besides what the loop says.
func (w *world) State() reconcile.State {
	s := w.loop.State()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Quarantined = append(s.Quarantined, w.quarantined...)
	s.StallTime = time.Second / 2
	for i := range s.Instances {
		s.Instances[i].Waits = w.waits
	}
	return s
}

func (w *world) Validated() *dataplane.Config { return w.loop.Validated() }

// Name, DryRun and Sync are an instance.
func (w *world) Name() string { return "one" }

func (w *world) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) { return nil, nil }

func (w *world) Sync(context.Context, *dataplane.Config, ...dataplane.SyncOption) (*dataplane.Result, error) {
	return &dataplane.Result{Plan: &dataplane.Plan{}}, seen(w, func(w *world) error { return w.deploy })
}

// observed is a world with all that looks at it.
type observed struct {
	*world
	server *observe.Server
	o      *observe.Observer
	log    bytes.Buffer
}

// found is the discovery of a world.
type found struct{ w *world }

func (f found) Credentials() discover.CredentialsInfo {
	return seen(f.w, func(w *world) discover.CredentialsInfo { return w.credentials })
}

func (f found) Check() error { return seen(f.w, func(w *world) error { return w.missing }) }

func (found) Watches() map[string]k8swatch.State { return nil }

func observeWorld(t *testing.T, f func(o *observed)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{bus: eventbus.New(nil), watch: k8swatch.State{Phase: k8swatch.PhaseSynced, Synced: true}, url: fetch.Resource{URL: "http://h/list"}}
		o := &observed{world: w}
		good := (&plant{}).render()
		var err error
		w.loop, err = reconcile.New(reconcile.Options{Bus: w.bus, Targets: []reconcile.Target{w},
			Renderer: reconcile.RendererFunc(func(ctx context.Context) (*reconcile.Rendered, error) {
				if err := seen(w, func(w *world) error { return w.render }); err != nil {
					return nil, err
				}
				r, err := good.Render(ctx)
				r.Refused = seen(w, func(w *world) []reconcile.Refusal { return w.refused })
				return r, err
			})})
		require.NoError(t, err)
		o.o = newObserver(t, w.bus, observe.Subject{
			Loop: w, Settings: func() settings.State { return seen(w, func(w *world) settings.State { return w.settings }) },
			HTTP: func() []fetch.Resource {
				return []fetch.Resource{seen(w, func(w *world) fetch.Resource { return w.url })}
			},
			Discovery: found{w},
			Watched: []func() map[schema.GroupVersionResource]k8swatch.State{func() map[schema.GroupVersionResource]k8swatch.State {
				return map[schema.GroupVersionResource]k8swatch.State{{Version: "v1", Resource: "secrets"}: seen(w, func(w *world) k8swatch.State { return w.watch })}
			}},
		}, slog.New(slog.NewTextHandler(&o.log, nil)))
		o.o.Health.Check("haproxy", observe.ReadyToServe, func() error { return seen(w, func(w *world) error { return w.haproxy }) })
		o.o.Health.Check("disk", observe.Reported, func() error {
			if hangs := seen(w, func(w *world) chan struct{} { return w.hangs }); hangs != nil {
				<-hangs
			}
			return nil
		})
		o.server = o.o.Server()
		w.bus.Start()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.loop.Run(ctx) })
		wg.Go(func() { _ = o.o.Run(ctx) })
		defer func() {
			cancel()
			wg.Wait()
			require.NoError(t, w.bus.Close(context.Background()))
		}()
		w.loop.Trigger("start")
		time.Sleep(10 * time.Second)
		f(o)
	})
}

// says is what the page says, its verdict without the rest; metrics; and /readyz.
func (o *observed) says(t *testing.T) (page, verdict string, metrics []string, ready int) {
	page = pageOf(t, o.server, "/")
	_, verdict, _ = strings.Cut(page, "</i>")
	verdict, _, _ = strings.Cut(verdict, "</h1>")
	return page, verdict, exposed(t, o.o.Metrics), ask(t, o.server, "/readyz").Code
}

// TestAllAgree: within two seconds of each fault, and of its end, the page, its
// variables, the metrics, the log and /readyz say the same of it.
func TestAllAgree(t *testing.T) {
	const well = "All is well"
	boom := errors.New("boom-7b")
	refusal := reconcile.Refusal{Resource: "Ingress shop/web", Field: "spec.rules[0].host", Reason: "boom-7b"}
	warning := refusal
	warning.Warning = true
	resource := reconcile.Resource{Kind: "Ingress", Namespace: "shop", Name: "web"}
	quarantined := reconcile.Quarantined{Resource: resource, Fault: reconcile.Fault{Message: "boom-7b"}, RetryAt: noon}
	unhealthy := func(c string) string { return `haptic_component_healthy{component="` + c + `"} 0` }
	for _, c := range []struct {
		name             string
		plant, mend      func(w *world)
		verdict          string
		variable         string // that names it, too
		metric           string // that there is while it lasts
		ready            int
		begins, ends     string // lines
		section, without string // a heading that the page has, and one that it has not
	}{
		{"a resource is refused", func(w *world) { w.refused = []reconcile.Refusal{refusal} }, func(w *world) { w.refused = nil },
			"Serving", "refused", `haptic_refused_resources{kind="Ingress"} 1`, 200, "refused: Ingress shop/web", "no longer refused: Ingress shop/web", "<h2>Refused</h2>", "<h2>Warnings</h2>"},
		{"a resource is warned of", func(w *world) { w.refused = []reconcile.Refusal{warning} }, func(w *world) { w.refused = nil },
			"Serving", "refused", `haptic_warned_resources{kind="Ingress"} 1`, 200, "warning: Ingress shop/web", "in order again: Ingress shop/web", "<h2>Warnings</h2>", "<h2>Refused</h2>"},
		{"a resource is quarantined", func(w *world) {
			w.quarantined = []reconcile.Quarantined{quarantined}
			eventbus.Publish(w.bus, reconcile.ResourceQuarantined{ID: 1, Quarantined: quarantined})
		}, func(w *world) {
			w.quarantined = nil
			eventbus.Publish(w.bus, reconcile.ResourceReleased{ID: 1, Resource: resource, Reason: "it changed"})
		}, "Serving", "quarantine", `haptic_quarantined_resources{kind="Ingress"} 1`, 200, "in quarantine, all others are served: Ingress shop/web: boom-7b", "released from quarantine: Ingress shop/web", "<h2>In quarantine</h2>", "<h2>Warnings</h2>"},
		{"a render fails", func(w *world) { w.render = boom }, func(w *world) { w.render = nil },
			"Last good configuration", "state", unhealthy("newest"), 200, "the new configuration is not deployed, as it failed", " failure", "last reconciliation", "<h2>Refused</h2>"},
		{"an instance refuses", func(w *world) { w.deploy = boom }, func(w *world) { w.deploy = nil },
			"Serving", "state", unhealthy("instances"), 200, "deployment failed", "deployed, after ", "failed once", "<h2>Refused</h2>"},
		{"a reload waits", func(w *world) {
			w.waits = "boom-7b"
			eventbus.Publish(w.bus, reconcile.DeploymentScheduled{ID: 1, Instance: "one", Waits: boom})
		}, func(w *world) {
			w.waits = ""
			eventbus.Publish(w.bus, reconcile.InstanceDeployed{ID: 1, Instance: "one"})
		}, "Serving", "state", "haptic_leading 1", 200, "waits: boom-7b", "deployed", "a reload waits", "<h2>Refused</h2>"},
		{"HAProxy is down", func(w *world) { w.haproxy = boom }, func(w *world) { w.haproxy = nil },
			"Not ready", "health", unhealthy("haproxy"), 503, "level=ERROR msg=\"haproxy: boom-7b", "haproxy: in order again after ", "something is not there: haproxy", "<h2>Refused</h2>"},
		{"a watch is away", func(w *world) { w.watch.Phase, w.watch.Err = k8swatch.PhaseStale, boom }, func(w *world) { w.watch.Phase, w.watch.Err = k8swatch.PhaseSynced, nil },
			"Serving", "resources", unhealthy("watches"), 200, "watches: secrets: Stale: boom-7b", "watches: in order again after ", "to look at: watches", "<h2>Refused</h2>"},
		{"a URL is not served", func(w *world) { w.url.Error, w.url.Failures = "boom-7b", 3 }, func(w *world) { w.url.Error = "" },
			"Serving", "http", unhealthy("http"), 200, "http: http://h/list: boom-7b; failures in a row: 3", "http: in order again after ", "to look at: http", "<h2>Refused</h2>"},
		{"a content is not used", func(w *world) {
			w.url.Refused = "boom-7b"
			eventbus.Publish(w.bus, fetch.Rejected{URL: "http://h/list", Err: boom})
		}, func(w *world) {
			w.url.Refused = ""
			eventbus.Publish(w.bus, fetch.Withdrawn{URL: "http://h/list"})
		}, "Serving", "http", unhealthy("contents"), 200, "the new content of http://h/list is not used", "http://h/list is in order again", "to look at: contents", "<h2>Refused</h2>"},
		{"settings are wrong", func(w *world) {
			w.settings.Error = "boom-7b"
			eventbus.Publish(w.bus, settings.Invalid{Name: "s.yaml", Version: "v2", Before: "v1", Err: boom})
		}, func(w *world) {
			w.settings.Error = ""
			eventbus.Publish(w.bus, settings.Restored{Name: "s.yaml", Version: "v1"})
		}, "Serving", "settings", "haptic_settings_valid 0", 200, "the settings stay as they are", "the settings are in order again", "to look at: settings", "<h2>Refused</h2>"},
		{"credentials are wrong", func(w *world) {
			w.credentials.Error = "boom-7b"
			eventbus.Publish(w.bus, discover.CredentialsInvalid{Err: boom})
		}, func(w *world) {
			w.credentials.Error = ""
			eventbus.Publish(w.bus, discover.CredentialsUpdated{Secret: "a/b"})
		}, "Serving", "credentials", unhealthy("credentials"), 200, "no HAProxy can be reached", "credentials are in use", "to look at: credentials", "<h2>Refused</h2>"},
		{"no instance is found", func(w *world) { w.missing = boom }, func(w *world) { w.missing = nil },
			"Serving", "health", unhealthy("discovery"), 200, "discovery: boom-7b", "discovery: in order again after ", "to look at: discovery", "<h2>Refused</h2>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			observeWorld(t, func(o *observed) {
				page, verdict, metrics, ready := o.says(t)
				require.Equal(t, []any{well, 200}, []any{verdict, ready}, page)
				require.NotContains(t, page, "boom-7b")
				require.NotRegexp(t, "level=(WARN|ERROR)", o.log.String())
				if !strings.HasPrefix(c.metric, "haptic_leading") {
					require.NotContains(t, metrics, c.metric)
				}

				o.change(c.plant)
				time.Sleep(askLatency)
				page, verdict, metrics, ready = o.says(t)
				require.Equal(t, []any{c.verdict, c.ready}, []any{verdict, ready})
				require.Contains(t, page, "boom-7b")
				require.Contains(t, page, c.section)
				require.NotContains(t, page, c.without)
				require.Contains(t, pageOf(t, o.server, "/debug/vars/"+c.variable), "boom-7b")
				require.Contains(t, metrics, c.metric)
				require.Contains(t, o.log.String(), c.begins)
				begins := slices.DeleteFunc(strings.Split(o.log.String(), "\n"), func(line string) bool {
					return strings.Contains(line, "level=INFO") || strings.Contains(line, " 2 times in a row") || line == ""
				})
				require.Len(t, begins, 1, "it is said once, and where it is tried again at each doubling")

				o.log.Reset()
				o.change(c.mend)
				time.Sleep(askLatency)
				page, verdict, metrics, ready = o.says(t)
				require.Equal(t, []any{well, 200}, []any{verdict, ready}, page)
				if !strings.HasPrefix(c.metric, "haptic_leading") {
					require.NotContains(t, metrics, c.metric)
				}
				require.Contains(t, o.log.String(), c.ends)
				require.NotRegexp(t, "level=(WARN|ERROR)", o.log.String())
			})
		})
	}
}

// A check that hangs is stalled, on the page and in the log, and does not make the
// process unready.
func TestAllAgreeOnACheckThatHangs(t *testing.T) {
	observeWorld(t, func(o *observed) {
		hangs := make(chan struct{})
		o.change(func(w *world) { w.hangs = hangs })
		time.Sleep(5 * time.Second)
		page, verdict, metrics, ready := o.says(t)
		require.Equal(t, []any{"Serving", http.StatusOK}, []any{verdict, ready})
		require.Contains(t, page, "to look at: disk")
		require.Contains(t, metrics, `haptic_component_healthy{component="disk"} 0`)
		require.Equal(t, 1, strings.Count(o.log.String(), "disk: no answer for 1s"))
		o.change(func(w *world) { w.hangs = nil })
		close(hangs)
		time.Sleep(askLatency)
		_, verdict, _, _ = o.says(t)
		require.Equal(t, "All is well", verdict)
		require.Contains(t, o.log.String(), "disk: in order again")
	})
}
