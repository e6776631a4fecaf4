package observe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// checked is a component that a test breaks and mends.
type checked struct {
	mu  sync.Mutex
	err error
}

func (c *checked) set(errs ...error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(errs...)
}

func (c *checked) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// told runs an observer with a check, and returns the lines of the log.
func told(t *testing.T, add func(h *observe.Health, f func() error), during func(c *checked)) []string {
	t.Helper()
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		bus, c := eventbus.New(nil), &checked{}
		o := newObserver(t, bus, observe.Subject{}, logTo(&log))
		add(o.Health, c.check)
		bus.Start()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Run(ctx) }()
		time.Sleep(askLatency)
		during(c)
		time.Sleep(askLatency)
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, bus.Close(context.Background()))
	})
	if log.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSpace(eventAttr.ReplaceAllString(log.String(), "")), "\n")
}

// askLatency is within what the log may lag behind the truth.
const askLatency = 2*time.Second - time.Millisecond

func reported(h *observe.Health, f func() error) { h.Check("manifests", observe.Reported, f) }

// What begins or stops to fail is a line each, and what goes on is none.
func TestComponentsAreTold(t *testing.T) {
	shop, blog := errors.New("shop.yaml:3: no such field"), errors.New("blog.yaml:1: no kind")
	for _, c := range []struct {
		name   string
		add    func(h *observe.Health, f func() error)
		during func(c *checked)
		want   []string
	}{
		{"in order", reported, func(*checked) { time.Sleep(time.Hour) }, nil},
		{"one, mended", reported, func(c *checked) {
			c.set(shop)
			time.Sleep(3*time.Minute + 12*time.Second)
			c.set()
		}, []string{`level=WARN msg="manifests: shop.yaml:3: no such field" component=manifests`,
			`level=INFO msg="manifests: in order again after 3m12s" component=manifests`}},
		{"its figures change", func(h *observe.Health, f func() error) { h.Check("http", observe.Live, f) }, func(c *checked) {
			for n := range 600 {
				c.set(fmt.Errorf("http://h/: failed %d times, for %s (%d in a row)", n, time.Duration(n)*time.Second, n))
				time.Sleep(time.Second)
			}
		}, []string{`level=ERROR msg="http: http://h/: failed 0 times, for 0s (0 in a row)" component=http`}},
		{"one after the other", reported, func(c *checked) {
			c.set(shop)
			time.Sleep(time.Minute)
			c.set(shop, blog)
			time.Sleep(time.Minute)
			c.set(blog)
			time.Sleep(time.Minute)
			c.set()
		}, []string{`level=WARN msg="manifests: shop.yaml:3: no such field" component=manifests`,
			`level=WARN msg="manifests: blog.yaml:1: no kind" component=manifests`,
			`level=INFO msg="manifests: in order again after 2m0s: shop.yaml" component=manifests`,
			`level=INFO msg="manifests: in order again after 2m0s" component=manifests`}},
		{"the same file is wrong in another way", reported, func(c *checked) {
			c.set(shop)
			time.Sleep(time.Minute)
			c.set(errors.New("shop.yaml:9: no kind"))
		}, []string{`level=WARN msg="manifests: shop.yaml:3: no such field" component=manifests`,
			`level=WARN msg="manifests: shop.yaml:9: no kind" component=manifests`}},
		{"words that take turns", reported, func(c *checked) {
			for n := range 600 {
				c.set(errors.New([]string{"ingresses: connection refused", "ingresses: no answer"}[n%2]))
				time.Sleep(time.Second)
			}
		}, []string{`level=WARN msg="manifests: ingresses: connection refused" component=manifests`,
			`level=WARN msg="manifests: ingresses: no answer" component=manifests`}},
		{"two hundred with one cause", reported, func(c *checked) {
			var all []error
			for n := range 200 {
				all = append(all, fmt.Errorf("shop-%d.yaml: permission denied", n))
			}
			c.set(all...)
			time.Sleep(time.Minute)
			c.set()
		}, []string{`level=WARN msg="manifests: shop-0.yaml: permission denied; shop-1.yaml: permission denied; shop-2.yaml: permission denied; and 197 more" component=manifests`,
			`level=INFO msg="manifests: in order again after 1m0s" component=manifests`}},
		{"names that begin with a digit", reported, func(c *checked) {
			c.set(errors.New("10-shop.yaml:3: no such field"))
			time.Sleep(time.Minute)
			c.set(errors.New("10-shop.yaml:3: no such field"), errors.New("20-blog.yaml:7: no such field"))
			time.Sleep(time.Minute)
			c.set(errors.New("20-blog.yaml:9: no such field"))
			time.Sleep(time.Minute)
			c.set()
		}, []string{`level=WARN msg="manifests: 10-shop.yaml:3: no such field" component=manifests`,
			`level=WARN msg="manifests: 20-blog.yaml:7: no such field" component=manifests`,
			`level=INFO msg="manifests: in order again after 2m0s: 10-shop.yaml" component=manifests`,
			`level=INFO msg="manifests: in order again after 2m0s" component=manifests`}},
		{"figures of connections", reported, func(c *checked) {
			for n := range 600 {
				c.set(fmt.Errorf("ingresses: read tcp 10.0.0.1:%d->10.0.0.2:443: closed at 12:00:%02d, 1m%ds ago, %dMiB left (%d%%)", 30000+n, n%60, n%60, n, n%100))
				time.Sleep(time.Second)
			}
		}, []string{`level=WARN msg="manifests: ingresses: read tcp 10.0.0.1:30000->10.0.0.2:443: closed at 12:00:00, 1m0s ago, 0MiB left (0%)" component=manifests`}},
		{"quiet", func(h *observe.Health, f func() error) { h.CheckQuietly("quarantine", observe.Reported, f) },
			func(c *checked) { c.set(shop) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, told(t, c.add, c.during)) })
	}
}

// A component that comes and goes for an hour has two lines a minute at most.
func TestFlappingComponent(t *testing.T) {
	lines := told(t, reported, func(c *checked) {
		for range 360 {
			c.set(errors.New("shop.yaml: gone"))
			time.Sleep(5 * time.Second)
			c.set()
			time.Sleep(5 * time.Second)
		}
	})
	require.LessOrEqual(t, len(lines), 2*60)
	require.Equal(t, `level=INFO msg="manifests: in order again after 5s" component=manifests`, lines[len(lines)-1])
}

// A component that came and went, and fails for good where no line is due, has one all
// the same: the last line must not say that it is in order.
func TestFlappingComponentThatStaysBroken(t *testing.T) {
	lines := told(t, reported, func(c *checked) {
		for range 2 {
			c.set(errors.New("shop.yaml: gone"))
			time.Sleep(5 * time.Second)
			c.set()
			time.Sleep(5 * time.Second)
		}
		c.set(errors.New("shop.yaml: gone"))
		time.Sleep(time.Hour)
		c.set()
	})
	require.Len(t, lines, 4)
	require.Equal(t, []string{`level=WARN msg="manifests: shop.yaml: gone" component=manifests`,
		`level=INFO msg="manifests: in order again after 59m20s" component=manifests`}, lines[2:])
}

// A check that hangs holds up no other: what that one finds is told within two seconds.
func TestHangingCheckHoldsUpNoLine(t *testing.T) {
	var once sync.Once
	lines := told(t, func(h *observe.Health, f func() error) {
		h.Check("disk", observe.Live, func() error { once.Do(func() { time.Sleep(5 * time.Second) }); return nil })
		h.Check("manifests", observe.Reported, f)
	}, func(c *checked) {
		c.set(errors.New("shop.yaml: gone"))
		time.Sleep(askLatency)
		c.set()
		time.Sleep(5 * time.Second)
	})
	require.ElementsMatch(t, []string{`level=ERROR msg="disk: no answer for 1s" component=disk`,
		`level=WARN msg="manifests: shop.yaml: gone" component=manifests`,
		`level=INFO msg="disk: in order again after 4s" component=disk`,
		`level=INFO msg="manifests: in order again after 2s" component=manifests`}, lines)
}
