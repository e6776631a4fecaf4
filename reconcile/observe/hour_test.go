package observe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// plant is a controller in which a test plants a fault, and takes it out.
type plant struct {
	broken atomic.Bool
	loop   *reconcile.Loop
	opts   reconcile.Options
	about  observe.Subject
	run    func(context.Context) error // besides

	idle          bool   // nothing changes
	broke, mended func() // where broken is not all
}

var errPlanted = errors.New("planted")

// err is the fault, while there is one.
func (p *plant) err() error {
	if p.broken.Load() {
		return errPlanted
	}
	return nil
}

// Name and the methods below make it a target.
func (p *plant) Name() string { return "one" }

func (p *plant) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) { return nil, nil }

func (p *plant) Sync(context.Context, *dataplane.Config, ...dataplane.SyncOption) (*dataplane.Result, error) {
	return &dataplane.Result{Plan: &dataplane.Plan{}}, nil
}

// failing is a target that fails to deploy.
type failing struct{ *plant }

func (f failing) Sync(ctx context.Context, c *dataplane.Config, _ ...dataplane.SyncOption) (*dataplane.Result, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.plant.Sync(ctx, c)
}

// render makes a configuration of its own each time.
func (p *plant) render(refused ...reconcile.Refusal) reconcile.Renderer {
	var n int
	return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		n++
		cfg, err := dataplane.NewConfig(fmt.Sprintf("global\n  maxconn %d\n", 100+n))
		return &reconcile.Rendered{Config: cfg, Refused: refused}, err
	})
}

// play runs the controller, a trigger each second included unless it is idle, and breaks it
// for an hour.
// It returns the lines from the fault on.
func (p *plant) play(t *testing.T) []string {
	var log bytes.Buffer
	bus := eventbus.New(nil)
	p.opts.Bus = bus
	if p.opts.Renderer == nil {
		p.opts.Renderer = p.render()
	}
	if p.opts.Targets == nil {
		p.opts.Targets = []reconcile.Target{p}
	}
	loop, err := reconcile.New(p.opts)
	require.NoError(t, err)
	p.about.Loop = loop
	o := newObserver(t, bus, p.about, logTo(&log))
	bus.Start()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	go func() { ended <- loop.Run(ctx) }()
	go func() { ended <- o.Run(ctx) }()
	if p.run == nil {
		p.run = func(context.Context) error { return nil }
	}
	go func() { ended <- p.run(ctx) }()
	loop.Trigger("start")
	time.Sleep(10 * time.Second)
	synctest.Wait()
	log.Reset()
	p.broken.Store(true)
	p.broke()
	for range 3600 {
		if !p.idle {
			loop.Trigger("a change")
		}
		time.Sleep(time.Second)
	}
	p.broken.Store(false)
	p.mended()
	time.Sleep(3 * time.Minute)
	if !p.idle {
		loop.Trigger("mended")
	}
	time.Sleep(3 * time.Minute)
	cancel()
	for range 3 {
		require.NoError(t, <-ended)
	}
	require.NoError(t, bus.Close(context.Background()))
	var lines []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, " failures") || !strings.Contains(line, "level=DEBUG") && !strings.Contains(line, "new valid configuration") && !strings.Contains(line, `"deployed: `) {
			lines = append(lines, line) // what a change of each second has to say is not counted
		}
	}
	return lines
}

// TestAnHourOfFailure: one thing that fails for an hour, while something changes each
// second, has a few lines, and one more when it is mended.
func TestAnHourOfFailure(t *testing.T) {
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	for _, c := range []struct {
		name  string
		plant func(t *testing.T, p *plant)
		most  int
		first string
		last  string
	}{
		{"an instance refuses", func(_ *testing.T, p *plant) {
			p.opts.Targets = []reconcile.Target{failing{p}}
		}, 14, "deployment failed", "deployed, after "},
		{"an idle instance refuses", func(_ *testing.T, p *plant) {
			p.opts.Targets, p.idle = []reconcile.Target{failing{p}}, true
		}, 9, "deployment failed", "deployed, after "},
		{"a render fails", func(_ *testing.T, p *plant) {
			good := p.render()
			p.opts.Renderer = reconcile.RendererFunc(func(ctx context.Context) (*reconcile.Rendered, error) {
				if err := p.err(); err != nil {
					return nil, err
				}
				return good.Render(ctx)
			})
		}, 14, "the new configuration is not deployed", " failures"},
		{"200 Ingresses of one namespace are refused", func(_ *testing.T, p *plant) {
			var refused []reconcile.Refusal
			for i := range 200 {
				refused = append(refused, reconcile.Refusal{Resource: fmt.Sprintf("Ingress shop/web-%d", i), Field: "spec.rules[0]", Reason: fmt.Sprintf("Service shop/web-%d does not exist", i)})
			}
			good, bad := p.render(), p.render(refused...)
			p.opts.Renderer = reconcile.RendererFunc(func(ctx context.Context) (*reconcile.Rendered, error) {
				if p.err() != nil {
					return bad.Render(ctx)
				}
				return good.Render(ctx)
			})
		}, 2, "refused: 100 resources, such as Ingress shop/web-0, Ingress shop/web-1 and Ingress shop/web-2: spec.rules[0]: Service shop/web-0 does not exist; 100 more refusals",
			"no longer refused: 100 resources"},
		{"a URL is not served", func(_ *testing.T, p *plant) {
			store := &fetch.Store{Client: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
				if err := p.err(); err != nil {
					return nil, err
				}
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("content"))}, nil
			})}}
			good := p.render()
			p.opts.Renderer = reconcile.RendererFunc(func(ctx context.Context) (*reconcile.Rendered, error) {
				f := store.Begin(ctx, nil)
				if f.Fetch("http://h/list") != "content" {
					return nil, errors.New("no content")
				}
				store.Settle(f, nil)
				return good.Render(ctx)
			})
			p.about.HTTP, p.run = store.Resources, store.Run
		}, 2, "http: http://h/list: planted; failures in a row: 1", "http: in order again after 1h"},
		{"a watch", func(t *testing.T, p *plant) {
			source := k8swatchtest.NewSource()
			group := k8swatch.NewGroup(nil)
			w, err := k8swatch.New(source, secrets, nil)
			require.NoError(t, err)
			require.NoError(t, group.Add(w))
			p.about.Watched = []func() map[schema.GroupVersionResource]k8swatch.State{group.States}
			p.run, p.broke, p.mended = group.Run, source.Partition, source.Restore
		}, 3, "watches: secrets: Stale: cannot", "watches: in order again after "},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &plant{broke: func() {}, mended: func() {}}
				c.plant(t, p)
				lines := p.play(t)
				t.Logf("%d lines:\n%s", len(lines), strings.Join(lines, ""))
				require.NotEmpty(t, lines)
				require.LessOrEqual(t, len(lines), c.most)
				require.Contains(t, lines[0], c.first)
				require.Contains(t, lines[len(lines)-1], c.last)
			})
		})
	}
}

// TestAnHourOfEnds: a HAProxy that ends each two seconds has a line for each of the
// first ends and starts, and then at each doubling.
func TestAnHourOfEnds(t *testing.T) {
	var log bytes.Buffer
	bus := eventbus.New(nil)
	observe.Comment(bus, logTo(&log))
	for n := range 1800 {
		publish(bus, reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessEnded, PID: 100 + n, Err: fmt.Errorf("HAProxy (process %d) ended: signal: killed", 100+n), Times: n + 1}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessStarted, PID: 101 + n, Times: n + 1}})
	}
	deliver(t, bus)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 2*(3+11), "%s", &log)
	require.Contains(t, lines[len(lines)-2], "(1027 times in a short time)")
	require.Equal(t, 4, strings.Count(strings.Join(lines[:8], "\n"), "ended: signal: killed"), "four kills in a row leave a trace")
}

// TestTheEndOfAnOutageIsSaid: that HAProxy fell often before takes no line from the end of
// what was said, and gives none to the end of what was not.
func TestTheEndOfAnOutageIsSaid(t *testing.T) {
	taken := errors.New("the address is in use")
	for name, c := range map[string]struct {
		between []dataplane.ProcessEvent
		end     dataplane.ProcessEvent
		line    string
	}{
		"it did not start":     {[]dataplane.ProcessEvent{{Kind: dataplane.ProcessStartFailed, Err: taken, Tries: 1}, {Kind: dataplane.ProcessStartFailed, Err: taken, Tries: 2}, {Kind: dataplane.ProcessStartFailed, Err: taken, Tries: 3}}, dataplane.ProcessEvent{Kind: dataplane.ProcessStarted, PID: 7, Tries: 3}, "HAProxy started, as process 7, after 3 failures"},
		"it was silent":        {[]dataplane.ProcessEvent{{Kind: dataplane.ProcessSilent, Err: taken, Times: 10}}, dataplane.ProcessEvent{Kind: dataplane.ProcessAnswers, Times: 10}, "HAProxy answers again"},
		"it ended once more":   {nil, dataplane.ProcessEvent{Kind: dataplane.ProcessStarted, PID: 7}, ""},
		"it ended another way": {[]dataplane.ProcessEvent{{Kind: dataplane.ProcessEnded, Err: errors.New("HAProxy (process 1) ended: exit status 9"), Times: 10}}, dataplane.ProcessEvent{Kind: dataplane.ProcessStarted, PID: 7}, "HAProxy started, as process 7"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			bus := eventbus.New(nil)
			observe.Comment(bus, logTo(&log))
			for n := range 9 {
				publish(bus, reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessEnded, Err: errors.New("HAProxy (process 1) ended: signal: killed"), Times: n + 1}})
				if n < 8 {
					publish(bus, reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessStarted, PID: 2, Times: n + 1}})
				}
			}
			for _, e := range append(c.between, c.end) {
				e.Times = max(e.Times, 9)
				publish(bus, reconcile.HAProxyChanged{Instance: "local", ProcessEvent: e})
			}
			deliver(t, bus)
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if c.line == "" {
				require.Equal(t, 6, strings.Count(log.String(), "HAProxy started"), "%s", &log)
			} else {
				require.Contains(t, lines[len(lines)-1], c.line, "%s", &log)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
