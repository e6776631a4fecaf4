package settings

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

var (
	services = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

const liveManifests = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: default, name: one}
data: {k: v}
---
apiVersion: v1
kind: Service
metadata: {namespace: default, name: web}
`

// liveSettings watch ConfigMaps and print a greeting for each.
const liveSettings = `
watchedResources:
  configs: {apiVersion: v1, resources: configmaps}
haproxyConfig:
  template: |
    # hello
    {% for c in resources.configs.List() %}
    # {{ c.Name }}
    {% end %}
`

// liveTest is a Live with a loop and a fake HAProxy, in a bubble of time.
type liveTest struct {
	source   *k8swatchtest.Source
	live     *Live
	loop     *reconcile.Loop
	target   *fakeTarget
	bus      *eventbus.Bus
	validate func(context.Context, *dataplane.Config) error
	check    func(ctx context.Context, name string) error

	renders atomic.Int64 // of templates that count()

	mu     sync.Mutex
	made   []string // what made() was called with
	events []string
	lists  map[string]int // LISTs and streams that began, by resource
}

// runLive runs f with everything running.
func runLive(t *testing.T, f func(ctx context.Context, t *testing.T, l *liveTest)) {
	synctest.Test(t, func(t *testing.T) {
		l := &liveTest{source: k8swatchtest.NewSource(k8swatchtest.Objects(liveManifests)...), bus: eventbus.New(nil),
			target: &fakeTarget{name: "a"}, lists: map[string]int{}}
		l.source.OnRequest(func(_ context.Context, r k8swatchtest.Request) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lists[r.Resource.Resource]++
			return nil
		})
		var err error
		check := func(ctx context.Context, name string, _ *Settings) error {
			if l.check == nil {
				return nil
			}
			return l.check(ctx, name)
		}
		l.live, err = NewLive(LiveOptions{Source: l.source, Bus: l.bus, Check: check, CheckTimeout: 10 * time.Second, Program: ProgramOptions{Namespace: "edge",
			Globals: map[string]any{"count": func() int64 { return l.renders.Add(1) }, "made": l.makes}}})
		require.NoError(t, err)
		l.loop, err = l.live.NewLoop(reconcile.Options{Targets: []reconcile.Target{l.target}, Validator: reconcile.ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
			if l.validate != nil {
				return l.validate(ctx, cfg)
			}
			return nil
		})})
		require.NoError(t, err)
		eventbus.Subscribe(l.bus, func(_ context.Context, d eventbus.Delivery[Applied]) {
			l.note("applied, started %v, stopped %v", d.Event.Started, d.Event.Stopped)
		})
		eventbus.Subscribe(l.bus, func(_ context.Context, d eventbus.Delivery[Invalid]) {
			l.note("invalid: %v", d.Event.Err)
		})
		eventbus.Subscribe(l.bus, func(context.Context, eventbus.Delivery[Restored]) { l.note("restored") })
		l.bus.Start()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.live.Run(ctx) })
		wg.Go(func() { _ = l.loop.Run(ctx) })
		defer func() {
			stop()
			wg.Wait()
			require.NoError(t, l.bus.Close(context.Background()))
		}()
		f(ctx, t, l)
	})
}

// makes is a function of templates that notes that they are rendered.
func (l *liveTest) makes(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = append(l.made, name)
	return name
}

func (l *liveTest) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, fmt.Sprintf(format, args...))
}

// happened waits until nothing happens any more, and returns the events since.
func (l *liveTest) happened() []string {
	time.Sleep(5 * time.Second)
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	return events
}

func (l *liveTest) listed(resource string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists[resource]
}

func (l *liveTest) deployed() string {
	texts := l.target.texts()
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

func TestLiveSwap(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		_, err := l.live.Render(ctx)
		require.ErrorIs(t, err, ErrNoSettings)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
		require.Equal(t, []string{"applied, started [configs], stopped []"}, l.happened())
		require.Contains(t, l.deployed(), "# hello\n")
		require.Contains(t, l.deployed(), "# one\n")
		watcher := l.live.current.watchers["configs"].full
		require.Equal(t, 1, len(l.target.texts()))
		requests := l.listed("configmaps")

		// Another template and one more resource: the watcher that was goes on.
		next := strings.Replace(liveSettings, "hello", "welcome {{ len(resources.services.List()) }}", 1)
		next = strings.Replace(next, "haproxyConfig", "  services: {apiVersion: v1, resources: services}\nhaproxyConfig", 1)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(next)))
		require.Equal(t, []string{"applied, started [services], stopped []"}, l.happened())
		require.Contains(t, l.deployed(), "# welcome 1\n")
		require.Same(t, watcher, l.live.current.watchers["configs"].full)
		require.Equal(t, requests, l.listed("configmaps"), "nothing was listed again")
		require.Equal(t, 2, len(l.target.texts()))

		// What changes is rendered with the program in use.
		l.source.Apply(k8swatchtest.Objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: two}\n")...)
		require.Empty(t, l.happened())
		require.Contains(t, l.deployed(), "# two\n")

		// What nobody needs ends; the same again is nothing new.
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
		require.Equal(t, []string{"applied, started [], stopped [services]"}, l.happened())
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte("# written otherwise\n"+liveSettings)))
		require.Empty(t, l.happened())
		state := l.live.State()
		require.Equal(t, "", state.Error)
		require.Equal(t, 2, state.Watched["configs"].Objects)
	})
}

// TestLiveRefuses: whatever is wrong, what was in use stays, and it is said once.
func TestLiveRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *liveTest, settings string) string
		want   string
	}{
		"structure, JSONPath and templates": {func(_ *liveTest, s string) string {
			return strings.NewReplacer("c.Name", "c.Nmae", "configmaps}", `configmaps, indexBy: ["a..b"], stor: full}`).Replace(s)
		}, "s.yaml:3:62: watchedResources.configs.indexBy[0]"},
		"nothing to read": {func(_ *liveTest, s string) string { return "a: [" }, "s.yaml:1:1: not YAML"},
		"render": {func(_ *liveTest, s string) string {
			return strings.Replace(s, "# hello", `# {{ fail("not with me") }}`, 1)
		}, "render with the new settings: s.yaml:6:10: haproxyConfig.template: not with me"},
		"validation": {func(l *liveTest, s string) string {
			l.validate = func(_ context.Context, cfg *dataplane.Config) error {
				if strings.Contains(cfg.Main(), "bad") {
					return errors.New("haproxy does not like it")
				}
				return nil
			}
			return strings.Replace(s, "hello", "bad", 1)
		}, "validate with the new settings: haproxy does not like it"},
		"permission": {func(l *liveTest, s string) string {
			l.source.Forbid(services)
			return strings.Replace(s, "haproxyConfig", "  services: {apiVersion: v1, resources: services}\nhaproxyConfig", 1)
		}, "services in all namespaces: forbidden"},
		"cases": {func(_ *liveTest, s string) string {
			return strings.Replace(s, "hello", "hullo", 1) + `
validationTests:
- name: it greets by name
  fixtures: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: somebody}}]
  assertions: [{type: contains, pattern: "# somebody"}, {type: contains, pattern: "# hello"}]
`
		}, "s.yaml:12:1: validationTests: "},
		"a rule of the host": {func(l *liveTest, s string) string {
			l.check = func(context.Context, string) error { return errors.New("say please") }
			return strings.Replace(s, "hello", "give me", 1)
		}, "s.yaml:2:1: say please"},
		"a rule that panics": {func(l *liveTest, s string) string {
			l.check = func(context.Context, string) error { panic("ouch") }
			return strings.Replace(s, "hello", "other", 1)
		}, "s.yaml:2:1: panic: ouch"},
	} {
		t.Run(name, func(t *testing.T) {
			runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
				l.happened()
				before, watcher := l.deployed(), l.live.current.watchers["configs"].full
				version := l.live.State().Version
				bad := c.change(l, liveSettings)
				for range 2 {
					err := l.live.ApplyYAML(ctx, "s.yaml", []byte(bad))
					require.ErrorContains(t, err, c.want)
				}
				events := l.happened()
				require.Len(t, events, 1)
				require.Contains(t, events[0], "invalid: ")
				state := l.live.State()
				require.Equal(t, version, state.Version)
				require.Contains(t, state.Error, c.want)
				require.Equal(t, before, l.deployed())
				require.Same(t, watcher, l.live.current.watchers["configs"].full)
				require.Len(t, l.live.current.watchers, 1)

				// The old ones again are in order, which is said once.
				for range 2 {
					require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
				}
				require.Equal(t, []string{"restored"}, l.happened())
				require.Empty(t, l.live.State().Error)

				// The old ones go on.
				l.source.Apply(k8swatchtest.Objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: two}\n")...)
				l.happened()
				require.Contains(t, l.deployed(), "# two\n")
			})
		})
	}
}

// TestLiveRendersOnce: what settings rendered to prove themselves is what is
// deployed, unless something changed in between.
func TestLiveRendersOnce(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		counting := strings.Replace(liveSettings, "hello", "hello {{ count() }}", 1)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(counting)))
		l.happened()
		require.Contains(t, l.deployed(), "# hello 1\n")

		l.validate = func(_ context.Context, cfg *dataplane.Config) error {
			if strings.Contains(cfg.Main(), "# again 2\n") { // while it is being tried
				l.source.Apply(k8swatchtest.Objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: two}\n")...)
				synctest.Wait()
			}
			return nil
		}
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(strings.Replace(counting, "hello", "again", 1))))
		l.happened()
		require.Contains(t, l.deployed(), "# two\n")
		require.NotContains(t, strings.Join(l.target.texts(), ""), "# again 2\n")
	})
}

// TestLiveCases: settings whose cases pass take effect.
func TestLiveCases(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings+`
validationTests:
- name: it greets by name
  fixtures: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: somebody}}]
  assertions: [{type: contains, pattern: "# somebody"}, {type: not_contains, pattern: "# one"}]
`)))
		l.happened()
		require.Contains(t, l.deployed(), "# one\n")
	})
}

// TestLiveSupersedes: newer settings end the check of older ones, and the older
// never take effect.
func TestLiveSupersedes(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		asked := 0
		l.check = func(ctx context.Context, _ string) error {
			if asked++; asked == 1 {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		put := func(text string) {
			l.source.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "settings"}, Data: map[string]string{ConfigMapKey: text}})
			synctest.Wait()
		}
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- l.live.FollowConfigMap(ctx, "edge", "settings") }()
		put(strings.Replace(liveSettings, "hello", "old", 1))
		require.Equal(t, 1, asked)
		put(liveSettings)
		require.Equal(t, 2, asked)
		require.Equal(t, []string{"applied, started [configs], stopped []"}, l.happened())
		require.Contains(t, l.deployed(), "# hello")
		require.NotContains(t, strings.Join(l.target.texts(), ""), "# old")
		stop()
		require.NoError(t, <-ended)
	})
}

// TestLiveGivenUp: settings that nobody waits for any more are not wrong.
func TestLiveGivenUp(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		asked := make(chan struct{})
		l.check = func(ctx context.Context, name string) error {
			if name == "slow" {
				close(asked)
				<-ctx.Done()
			}
			return ctx.Err()
		}
		given, giveUp := context.WithCancel(ctx)
		applied := make(chan error)
		go func() { applied <- l.live.ApplyYAML(given, "slow", []byte(liveSettings)) }()
		<-asked
		giveUp()
		require.ErrorIs(t, <-applied, context.Canceled)
		require.Empty(t, l.happened())
		require.Empty(t, l.live.State().Error)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
		require.Equal(t, []string{"applied, started [configs], stopped []"}, l.happened())
	})
}

// TestLiveIntervals: intervals are those of the settings in use.
func TestLiveIntervals(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings+"reconcile: {driftPreventionInterval: 10s, debounceInterval: 1s}\n")))
		l.happened()
		count := len(l.target.texts())
		time.Sleep(30 * time.Second)
		require.GreaterOrEqual(t, len(l.target.texts()), count+2, "drift is checked every 10 s from now on")
	})
}

// TestLiveOnDemand: objects are fetched when a template asks for them.
func TestLiveOnDemand(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		text := strings.Replace(liveSettings, "resources: configmaps", "resources: configmaps, store: on-demand", 1)
		text = strings.Replace(text, "c.Name", `c.Data["k"]`, 1)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(text)))
		l.happened()
		require.Contains(t, l.deployed(), "# v\n")
	})
}

// TestLiveAfterRun: settings that come too late are an error, and nothing is
// left running (goleak).
func TestLiveAfterRun(t *testing.T) {
	live, err := NewLive(LiveOptions{Source: k8swatchtest.NewSource()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)), "Run has not begun")
	require.NoError(t, live.Run(ctx))
	for range 20 {
		require.ErrorIs(t, live.ApplyYAML(t.Context(), "s.yaml", []byte(liveSettings)), context.Canceled)
		require.Empty(t, live.State().Candidate, "nothing is checked any more")
	}
	require.ErrorIs(t, live.Run(ctx), k8swatch.ErrStarted)
}

// TestLivePods: the pods of HAProxy are watched, templates see them, and they make
// instances as the settings of the Dataplane API say.
func TestLivePods(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		l.source.Apply(k8swatchtest.Objects(`
apiVersion: v1
kind: Pod
metadata: {namespace: edge, name: haproxy-0, labels: {app: haproxy}}
status:
  podIP: 192.0.2.7
  containerStatuses: [{name: api, ready: true, state: {running: {}}}]
---
apiVersion: v1
kind: Pod
metadata: {namespace: edge, name: other, labels: {app: other}}
`)...)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(`
haproxyConfig:
  template: |
    {% for pod in controller.haproxy_pods.List() %}
    # {{ pod.Name }}
    {% end %}
dataplane: {podSelector: {matchLabels: {app: haproxy}}, container: api, port: 7777, scheme: https, strategy: shared, baseDir: /srv}
`)))
		l.happened()
		require.Contains(t, l.deployed(), "# haproxy-0\n")
		require.NotContains(t, l.deployed(), "other")
		wanted := l.live.wanted(l.live.current)
		pods, err := wanted.List(ctx)
		require.NoError(t, err)
		instances, err := discover.Pods(pods, discover.Credentials{DataplaneUsername: "u", DataplanePassword: "p"}, wanted.Pods)
		require.NoError(t, err)
		require.Len(t, instances, 1)
		require.Equal(t, "https://192.0.2.7:7777", instances[0].URL)
		opts := wanted.Client
		require.True(t, opts.Shared)
		require.Equal(t, "/srv/haproxy.cfg", opts.Layout.ConfigPath())
		require.Equal(t, "/srv/ssl/x.pem", opts.Layout.Path(dataplane.Certificate, "x.pem"))
	})
}

// TestLivePodsOfAllNamespaces: only where that is said do pods of other namespaces count.
func TestLivePodsOfAllNamespaces(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		for _, namespace := range []string{"edge", "evil"} {
			l.source.Apply(k8swatchtest.Objects(`
apiVersion: v1
kind: Pod
metadata: {namespace: ` + namespace + `, name: haproxy-0, labels: {app: haproxy}}
status: {podIP: 192.0.2.7, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
`)...)
		}
		for said, want := range map[string]int{"": 1, ", namespace: edge": 1, ", namespace: own": 1, `, namespace: "*"`: 2} {
			require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte("haproxyConfig: {template: \"# x\\n\"}\ndataplane: {podSelector: {matchLabels: {app: haproxy}"+said+"}}\n")))
			wanted := l.live.wanted(l.live.current)
			pods, err := wanted.List(ctx)
			require.NoError(t, err)
			instances, err := discover.Pods(pods, discover.Credentials{}, wanted.Pods)
			require.NoError(t, err)
			require.Len(t, instances, want, said)
		}
		require.ErrorContains(t, l.live.ApplyYAML(ctx, "s.yaml", []byte("haproxyConfig: {template: \"# x\\n\"}\ndataplane: {podSelector: {matchLabels: {app: haproxy}, namespace: 'x*'}}\n")), "podSelector.namespace")
	})
}

// TestLiveEndsWhileChecking: Run does not wait for a resource that does not come.
func TestLiveEndsWhileChecking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := k8swatchtest.NewSource()
		source.Partition()
		live, err := NewLive(LiveOptions{Source: source, CheckTimeout: time.Hour})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended, applied := make(chan error), make(chan error)
		go func() { ended <- live.Run(ctx) }()
		go func() { applied <- live.ApplyYAML(t.Context(), "s.yaml", []byte(liveSettings)) }()
		time.Sleep(5 * time.Second)
		start := time.Now()
		stop()
		require.ErrorIs(t, <-applied, context.Canceled)
		require.NoError(t, <-ended)
		require.Less(t, time.Since(start), time.Second)
	})
}

// stores reads what the settings in use watch, at one instant; nil before the
// first.
func (l *Live) stores() Stores {
	l.mu.Lock()
	use := l.current
	l.mu.Unlock()
	if use == nil {
		return nil
	}
	return l.read(use)
}
