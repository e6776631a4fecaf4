package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var hostileFor = flag.Duration("hostile", 0, "how long each attack of TestHostile goes on; 0: a short form of it")

const (
	shortHostile = 2 * time.Second
	// hostileBound is what one tenant may delay a change of another by.
	hostileBound = time.Second
)

// hostile is a good tenant beside one that attacks, each with a namespace of its
// own, and the controller that serves both.
type hostile struct {
	t          *testing.T
	good, evil *kube
	certs      *certificates
	c          *controller
	v          *visitor

	endpoints, sites []time.Duration // what changes of the good tenant took
	processes        int             // of HAProxy, at most
	rss              int64           // of these, at most
}

// TestHostile measures how long changes of a good tenant take while another
// attacks. The short form asserts that they arrive and cost no request.
func TestHostile(t *testing.T) {
	startBackends(t, backendPort)
	templates := snippetTemplates(t)
	table := &strings.Builder{}
	w := tabwriter.NewWriter(table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "attack\trounds\tendpoint p50\tp99\tmost\tnew site p50\tmost\tfailed\treloads\tprocesses\tcontroller MB\tHAProxy MB\t")
	for _, a := range attacks {
		if *hostileFor == 0 && a.long {
			continue
		}
		t.Run(a.name, func(t *testing.T) { a.measure(t, templates, w) })
	}
	_ = w.Flush()
	t.Logf("\n%s", table)
}

func (a *attack) measure(t *testing.T, templates string, w *tabwriter.Writer) {
	h := &hostile{t: t, good: newKube(t), evil: newKube(t), certs: newCertificates(t)}
	h.good.service("shop", backendPort, host("10"))
	h.good.secret("shop", h.certs.issue("shop.test"))
	h.good.ingress("shop", site("shop.test", "shop"), withTLS("shop", "shop.test"))
	h.c = startController(t, options{args: append([]string{"-templates", templates}, a.flags...)})
	h.v = h.c.visit()
	eventually(t, "the good site is served", h.v.expect("shop.test", "/", endpoint(host("10"), backendPort)))
	if a.prepare != nil {
		a.prepare(h)
	}
	tr := startTraffic(t, h.v, "shop.test")
	mark := h.c.reloads()
	rounds := h.under(a, max(*hostileFor, shortHostile))
	tr.stop()

	ms := func(took []time.Duration, q float64) string {
		if len(took) == 0 {
			return "-"
		}
		return quantile(took, q).Round(time.Millisecond).String()
	}
	const mb = 1 << 20
	fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%d/%d\t%d\t%d\t%d\t%d\t\n", a.name, rounds,
		ms(h.endpoints, .5), ms(h.endpoints, .99), ms(h.endpoints, 1), ms(h.sites, .5), ms(h.sites, 1),
		tr.failures, tr.requests, h.c.reloads()-mark, h.processes, peakRSS(h.c.pid())/mb, h.rss/mb)
	if tr.failures > 0 {
		t.Errorf("%d of %d requests failed: %q", tr.failures, tr.requests, tr.examples)
	}
	if *hostileFor > 0 && quantile(h.endpoints, .99) > hostileBound {
		t.Errorf("the p99 of an endpoint change is %v, more than %v", quantile(h.endpoints, .99), hostileBound)
	}
	if a.after != nil {
		a.after(h)
	}
}

// under measures changes of the good tenant while the attack goes on, and
// returns how many rounds of it there were.
func (h *hostile) under(a *attack, limit time.Duration) int64 {
	ctx, cancel := context.WithCancel(h.t.Context())
	var wg sync.WaitGroup
	var rounds atomic.Int64
	if a.round != nil {
		wg.Go(func() {
			tick := time.NewTicker(a.pace)
			defer tick.Stop()
			for i := 0; ; i++ {
				if err := a.round(ctx, h, i); err != nil && ctx.Err() == nil {
					h.t.Logf("round %d of the attack: %v", i, err)
				}
				rounds.Add(1)
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	defer wg.Wait()
	defer cancel()
	pace := time.NewTicker(hold + hold/2) // a change that follows at once is held
	defer pace.Stop()
	end := time.Now().Add(limit)
	for i := 1; time.Now().Before(end) || i <= 3; i++ {
		h.endpoints = append(h.endpoints, h.changeEndpoint(i))
		if i%10 == 0 {
			h.sites = append(h.sites, h.addSite(i))
		}
		h.look()
		<-pace.C
	}
	return rounds.Load()
}

// hostilePatience is long enough to measure a stall.
const hostilePatience = 3 * time.Minute

func (h *hostile) changeEndpoint(i int) time.Duration {
	h.t.Helper()
	addr := host(fmt.Sprint(10 + i%2))
	start := time.Now()
	h.good.endpoints("shop", backendPort, addr)
	eventuallyWithin(h.t, hostilePatience, "the new endpoint answers", h.v.expect("shop.test", "/", endpoint(addr, backendPort)))
	return time.Since(start)
}

func (h *hostile) addSite(i int) time.Duration {
	h.t.Helper()
	name := fmt.Sprintf("site-%d", i)
	start := time.Now()
	h.good.ingress(name, site(name+".test", "shop"))
	eventuallyWithin(h.t, hostilePatience, "the new site answers", h.v.expectStatus(name+".test", "/", 200))
	return time.Since(start)
}

// look notes what HAProxy takes.
func (h *hostile) look() {
	processes, total := 0, int64(0)
	for _, pid := range descendants(h.c.pid()) {
		processes++
		total += rss(pid)
	}
	h.processes, h.rss = max(h.processes, processes), max(h.rss, total)
}

// patch changes an object of the namespace.
func (k *kube) patch(ctx context.Context, resource, name, patch string) error {
	client := env.cluster.client
	rest := client.CoreV1().RESTClient()
	switch resource {
	case "ingresses":
		rest = client.NetworkingV1().RESTClient()
	case "endpointslices":
		rest = client.DiscoveryV1().RESTClient()
	}
	return rest.Patch(types.MergePatchType).Namespace(k.ns).Resource(resource).Name(name).
		VersionedParams(&metav1.PatchOptions{}, metav1.ParameterCodec).Body([]byte(patch)).Do(ctx).Error()
}

// upload opens a request for the host whose body never ends, and keeps it open
// until the test ends.
func (h *hostile) upload(ctx context.Context, host string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", h.c.http)
	if err != nil {
		return err
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000\r\n\r\nx", host)
	return err
}
