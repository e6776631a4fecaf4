package render

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// page answers requests without a network with a content that can be changed, or
// with a status.
type page struct {
	mu      sync.Mutex
	content string
	status  int
	asked   int
}

func (p *page) set(content string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.content = content
}

func (p *page) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *page) RoundTrip(*http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return &http.Response{StatusCode: max(p.status, 200), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(p.content))}, nil
}

// TestHTTPThroughTheLoop is what a user sees: a changed content is deployed, one
// with which the configuration is not valid is not, and costs one render more;
// one that the template itself refuses neither.
func TestHTTPThroughTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &page{content: "192.0.2.1"}
		bus := eventbus.New(nil)
		var mu sync.Mutex
		var events []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, s)
		}
		eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[fetch.Updated]) { note("updated") })
		eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[fetch.Accepted]) { note("accepted") })
		eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[fetch.Rejected]) {
			note("rejected: " + d.Event.Err.Error())
		})
		bus.Start()
		took := func() string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(events) // each type of event has a queue of its own
			s := strings.Join(events, ", ")
			events = nil
			return s
		}

		templates := site(t, map[string]string{"haproxy.cfg": `{% for _, a := range split(http.Fetch("http://a.test/list"), "\n") %}{% if a == "fail" %}{{ fail("no address") }}{% end %}acl {{ a }}
{% end %}`}, nil, nil)
		templates.Pure = true
		store := &fetch.Store{Client: &http.Client{Transport: p}, Bus: bus}
		templates.HTTP = store
		target := &fakeTarget{name: "one"}
		var validations atomic.Int32
		loop, err := reconcile.New(reconcile.Options{Renderer: templates, Targets: []reconcile.Target{target}, Validator: reconcile.ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
			validations.Add(1)
			if strings.Contains(cfg.Main(), "bad") {
				return fmt.Errorf("%w: bad address", dataplane.ErrInvalid)
			}
			return nil
		})})
		require.NoError(t, err)
		store.OnChange = loop.Trigger
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = store.Run(ctx) })
		wg.Go(func() { _ = loop.Run(ctx) })
		newest := func() string {
			texts := target.texts()
			return texts[len(texts)-1]
		}

		loop.Trigger("start")
		require.Equal(t, "accepted, updated", took())
		require.Equal(t, "acl 192.0.2.1\n", newest())
		require.EqualValues(t, 1, validations.Load())

		p.set("192.0.2.2\n192.0.2.3")
		time.Sleep(time.Minute + 2*time.Second)
		require.Equal(t, "accepted, updated", took())
		require.Equal(t, "acl 192.0.2.2\nacl 192.0.2.3\n", newest())

		for _, content := range []string{"bad", "fail"} {
			before := validations.Load()
			p.set(content)
			time.Sleep(time.Minute + 2*time.Second)
			what := took()
			require.True(t, strings.HasPrefix(what, "rejected: ") && strings.HasSuffix(what, ", updated"), what)
			require.Contains(t, what, map[string]string{"bad": "bad address", "fail": "no address"}[content])
			require.Equal(t, "acl 192.0.2.2\nacl 192.0.2.3\n", newest())
			require.LessOrEqual(t, validations.Load(), before+3)
			before, asked := validations.Load(), p.count()
			time.Sleep(10 * time.Minute)
			require.Empty(t, took(), "a content is rejected once")
			require.LessOrEqual(t, validations.Load(), before+3*10, "it is tried again at each interval, and no more often")
			require.Equal(t, asked+10, p.count())
			require.Equal(t, "acl 192.0.2.2\nacl 192.0.2.3\n", newest())
			require.Empty(t, loop.State().LastError)
		}
		p.set("192.0.2.4")
		time.Sleep(time.Minute + 2*time.Second)
		require.Equal(t, "accepted, updated", took())
		require.Equal(t, "acl 192.0.2.4\n", newest())

		cancel()
		wg.Wait()
		require.NoError(t, bus.Close(context.Background()))
	})
}

func TestHTTPNotThere(t *testing.T) {
	templates := site(t, map[string]string{"haproxy.cfg": "global\n  # {{ http.Fetch(\"http://a.test/list?key=s3cret\") }}\n"}, nil, nil)
	_, err := templates.Render(t.Context())
	require.ErrorContains(t, err, "this controller fetches nothing")
	templates.HTTP = &fetch.Store{Client: &http.Client{Transport: &page{status: 404}}}
	_, err = templates.Render(t.Context())
	require.ErrorContains(t, err, "haproxy.cfg:2:")
	require.ErrorContains(t, err, "http.Fetch http://a.test/list?...: status 404 Not Found")
	var failed *fetch.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 404, failed.Status)
}

// TestHTTPWithoutLeading: where another process deploys, what is valid counts,
// and what nobody uses is forgotten.
func TestHTTPWithoutLeading(t *testing.T) {
	p := &page{content: "192.0.2.1"}
	templates := site(t, map[string]string{"haproxy.cfg": "global\n  # {{ http.Fetch(\"http://a.test/\") }}\n"}, nil, nil)
	templates.HTTP = &fetch.Store{Client: &http.Client{Transport: p}}
	templates.HTTP.Begin(t.Context(), nil).Fetch("http://b.test/")
	loop, err := reconcile.New(reconcile.Options{Renderer: templates, Leader: follower{}})
	require.NoError(t, err)
	_, err = loop.Once(t.Context())
	require.NoError(t, err)
	require.Len(t, templates.HTTP.Resources(), 1)
	require.False(t, templates.HTTP.Resources()[0].Pending)
}

// TestHTTPRefusedByAnInstance: what validates may still be refused by a HAProxy.
func TestHTTPRefusedByAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &page{content: "one"}
		templates := site(t, map[string]string{"haproxy.cfg": "global\n  # {{ http.Fetch(\"http://a.test/\") }}\n"}, nil, nil)
		s := &fetch.Store{Client: &http.Client{Transport: p}}
		templates.HTTP = s
		first := mustRender(t, templates)
		templates.Settle(first, nil)
		p.set("two")
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		second := mustRender(t, templates)
		require.Contains(t, second.Main(), "two")
		require.True(t, templates.Settle(second, dataplane.ErrInvalid))
		require.Equal(t, first.Hash(), mustRender(t, templates).Hash())
		require.Equal(t, 1, s.Resources()[0].Rejected)
		require.False(t, templates.Settle(second, nil), "an answer that comes late")
		require.Equal(t, first.Hash(), mustRender(t, templates).Hash())
	})
}
