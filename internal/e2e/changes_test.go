package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Endpoints come and go without a reload, whatever of them changes.
func TestEndpointsChangeWithoutReload(t *testing.T) {
	startBackends(t, backendPort+1)
	k := newSite(t)
	c, v := startSite(t, options{})
	mark, worker := c.reloads(), c.mustWorker()

	for _, step := range []struct {
		name  string
		port  int32
		hosts []string
	}{
		{"another address", backendPort, []string{host("11")}},
		{"another port alone", backendPort + 1, []string{host("11")}},
		{"address and port", backendPort, []string{host("12")}},
		{"one more", backendPort, []string{host("12"), host("13")}},
		{"many more", backendPort, []string{host("12"), host("13"), host("14"), host("15"), host("16"), host("17")}},
		{"fewer", backendPort, []string{host("14"), host("17")}},
		{"one", backendPort, []string{host("17")}},
	} {
		t.Run(step.name, func(t *testing.T) {
			k.endpoints("web", step.port, step.hosts...)
			var want []string
			for _, h := range step.hosts {
				want = append(want, endpoint(h, step.port))
			}
			eventually(t, "exactly the new endpoints answer", answeredBy(v, "web.test", want))
		})
	}
	k.endpoints("web", backendPort)
	eventually(t, "no endpoint is 503", v.expectStatus("web.test", "/", http.StatusServiceUnavailable))
	k.endpoints("web", backendPort, host("10"))
	eventually(t, "the first endpoint is back", v.expect("web.test", "/", endpoint(host("10"), backendPort)))

	c.expectReloads(mark, 0)
	if now := c.mustWorker(); now != worker {
		t.Errorf("the worker is %d now and was %d", now, worker)
	}
}

// answeredBy is a condition: that a round of requests reaches each of the
// endpoints and nothing else.
func answeredBy(v *visitor, host string, endpoints []string) func() error {
	return func() error {
		seen := map[string]bool{}
		for range 20 * len(endpoints) {
			a, err := v.get(host, "/")
			if err != nil {
				return err
			}
			if a.status != http.StatusOK || !slices.Contains(endpoints, a.body) {
				return fmt.Errorf("got %d %.100q, want one of %q", a.status, a.body, endpoints)
			}
			if seen[a.body] = true; len(seen) == len(endpoints) {
				break
			}
		}
		if len(seen) != len(endpoints) {
			return fmt.Errorf("only %v answered, want all of %q", seen, endpoints)
		}
		return nil
	}
}

// hold is the longest hold between two renders, by default; after a pause as long, a
// change acts at once.
const hold = 500 * time.Millisecond

// A hundred changes while traffic runs, each by itself and then all at once:
// none reloads, none costs a request.
func TestHundredEndpointChanges(t *testing.T) {
	k := newSite(t)
	c, v := startSite(t, options{})
	mark, worker := c.reloads(), c.mustWorker()
	tr := startTraffic(t, v, "web.test")

	pace := time.NewTicker(hold + hold/10)
	defer pace.Stop()
	took := timed(100, func(i int) {
		<-pace.C
	}, func(i int) {
		addr := host(fmt.Sprint(20 + i))
		k.endpoints("web", backendPort, addr)
		eventually(t, "the new address answers", v.expect("web.test", "/", endpoint(addr, backendPort)))
	})
	logQuantiles(t, "saving an EndpointSlice -> new address answers", took)

	start := time.Now()
	for i := range 100 {
		k.endpoints("web", backendPort, host(fmt.Sprint(120+i)))
	}
	eventually(t, "the last address answers", answeredBy(v, "web.test", []string{endpoint(host("219"), backendPort)}))
	t.Logf("100 changes at once: the last address answered %v after the first change", time.Since(start).Round(time.Millisecond))

	tr.noFailures(t, 1000)
	c.expectReloads(mark, 0)
	if now := c.mustWorker(); now != worker {
		t.Errorf("the worker is %d now and was %d", now, worker)
	}
}

// timed calls both functions for 0 to n-1 and returns how long each call of
// the second took.
func timed(n int, before, f func(i int)) []time.Duration {
	var took []time.Duration
	for i := range n {
		before(i)
		start := time.Now()
		f(i)
		took = append(took, time.Since(start))
	}
	return took
}

func logQuantiles(t testing.TB, what string, took []time.Duration) {
	t.Helper()
	t.Logf("%s, %d times: p50 %v, p99 %v, most %v", what, len(took),
		quantile(took, .5), quantile(took, .99), quantile(took, 1))
}

// quantile is the duration that the share q of all does not exceed.
func quantile(took []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)].Round(100 * time.Microsecond)
}

// A certificate is replaced for new handshakes, without a reload.
func TestCertificateRotation(t *testing.T) {
	startBackends(t, backendPort)
	k, certs := newKube(t), newCertificates(t)
	k.service("web", backendPort, host("10"))
	first := certs.issue("web.test")
	k.secret("web", first)
	k.ingress("web", withTLS("web", "web.test"), site("web.test", "web"))
	c := startController(t, options{})
	config := certs.client("web.test")
	eventually(t, "the first certificate is shown", showsSerial(c.https, config, first.serial))
	mark := c.reloads()
	for range 5 {
		next := certs.issue("web.test")
		k.secret("web", next)
		eventually(t, "the new certificate is shown", showsSerial(c.https, config, next.serial))
	}
	if err := c.visitTLS(config).expect("web.test", "/", endpoint(host("10"), backendPort))(); err != nil {
		t.Error(err)
	}
	c.expectReloads(mark, 0)
}

// showsSerial is a condition: that a handshake gets the certificate with that
// serial number.
func showsSerial(addr string, config *tls.Config, serial *big.Int) func() error {
	return func() error {
		conn, err := tls.Dial("tcp", addr, config)
		if err != nil {
			return err
		}
		defer conn.Close()
		if got := conn.ConnectionState().PeerCertificates[0].SerialNumber; got.Cmp(serial) != 0 {
			return fmt.Errorf("the certificate has serial %v, want %v", got, serial)
		}
		return nil
	}
}

// minInterval is the least time between two reloads, by default.
const minInterval = 2 * time.Second

// Without spare backends new Ingresses cost one reload each, or all together where they
// come at once. HAProxy 3.4 takes none.
func TestNewIngresses(t *testing.T) {
	startBackends(t, backendPort)
	k := newKube(t)
	k.service("base", backendPort, host("10"))
	k.ingress("base", site("base.test", "base"))
	c := startController(t, options{args: []string{"-spare-backends", "0"}})
	v := c.visit()
	eventually(t, "the site answers", v.expect("base.test", "/", endpoint(host("10"), backendPort)))
	tr := startTraffic(t, v, "base.test")

	// One, with a Service of its own that is there before.
	k.service("one", backendPort, host("11"))
	mark, start := c.reloads(), time.Now()
	k.ingress("one", site("one.test", "one"))
	eventually(t, "the new host answers", v.expect("one.test", "/", endpoint(host("11"), backendPort)))
	t.Logf("one new Ingress answered after %v", time.Since(start).Round(time.Millisecond))
	least := 1
	if makesBackends(t) {
		least = 0
	}
	c.expectReloads(mark, least)

	// 200 at once.
	const many = 200
	name := func(i int) string { return fmt.Sprintf("n%03d", i) }
	inParallel(t, many, func(ctx context.Context, i int) error {
		return k.createService(ctx, name(i), backendPort, host(fmt.Sprint(20+i)))
	})
	mark, start = c.reloads(), time.Now()
	inParallel(t, many, func(ctx context.Context, i int) error {
		return k.createIngress(ctx, name(i), site(name(i)+".test", name(i)))
	})
	for i := range many {
		eventually(t, "all new hosts answer",
			v.expect(name(i)+".test", "/", endpoint(host(fmt.Sprint(20+i)), backendPort)))
	}
	took := time.Since(start)
	reloads := c.reloads() - mark
	t.Logf("%d new Ingresses answered after %v with %d reloads", many, took.Round(time.Millisecond), reloads)
	// One at once, then one per interval begun.
	if most := least * (1 + int((took+minInterval-1)/minInterval)); reloads < least || reloads > most {
		t.Errorf("%d reloads in %v, want %d to %d", reloads, took, least, most)
	}
	tr.noFailures(t, 100)

	// None: the controller lives, and can begin again.
	k.must(k.deleteIngresses(t.Context()))
	for _, h := range []string{"base.test", "one.test", "n000.test", "n199.test"} {
		eventually(t, "a deleted host is not found", v.expectStatus(h, "/", http.StatusNotFound))
	}
	must(t, c.ended())
	k.ingress("again", site("again.test", "base"))
	eventually(t, "an Ingress after that answers", v.expect("again.test", "/", endpoint(host("10"), backendPort)))
}

// inParallel calls f for 0 to n-1.
func inParallel(t testing.TB, n int, f func(ctx context.Context, i int) error) {
	t.Helper()
	must(t, allInParallel(t.Context(), n, f))
}

func allInParallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}
