package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// gate is the way of one controller to a Dataplane API; it sees which calls
// that controller makes.
type gate struct {
	*httptest.Server
	mu      sync.Mutex
	changes []string
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	to, err := url.Parse(target)
	must(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	g := &gate{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && !strings.Contains(r.URL.RawQuery, "only_validate=true") {
			g.mu.Lock()
			g.changes = append(g.changes, r.Method+" "+r.URL.String())
			g.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

// changing lists the calls so far that change something.
func (g *gate) changing() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes[:len(g.changes):len(g.changes)]
}

// The leader freezes: the other takes over. When it thaws, it still believes
// for a moment that it leads, with news to deploy: it must not.
func TestFrozenLeader(t *testing.T) {
	k := newSite(t)
	api := dataplanetest.New(t, &dataplanetest.Options{Password: "e2e-password", HAProxy: &dataplanetest.HAProxy{}})
	start := func(i int) (*controller, *gate) {
		g := newGate(t, api.URL())
		return startController(t, options{
			debugPort: 9090 + i, endpoints: []string{g.URL},
			env: []string{"HAPTIC_DATAPLANE_USERNAME=admin", "HAPTIC_DATAPLANE_PASSWORD=e2e-password",
				"HAPTIC_VALIDATION_USERNAME=admin", "HAPTIC_VALIDATION_PASSWORD=e2e-password"},
			// How many files that HAProxy may open cannot be known here.
			args: []string{"-maxconn", "1000", "-leader-elect", "-lease", k.ns + "/e2e", "-endpoint-base", api.Layout().Base,
				"-endpoint-socket", filepath.Join(api.Layout().Base, "admin.sock")},
		}), g
	}
	leader, leaderGate := start(0)
	v := leader.visit()
	eventually(t, "the site answers", v.expect("web.test", "/", endpoint(host("10"), backendPort)))
	standby, standbyGate := start(1)
	k.endpoints("web", backendPort, host("11"))
	eventually(t, "the leader deploys", v.expect("web.test", "/", endpoint(host("11"), backendPort)))
	if calls := standbyGate.changing(); len(calls) > 0 {
		t.Fatalf("the standby made calls: %q", calls)
	}

	for round := range 2 {
		leader.freeze()
		addr := host(fmt.Sprint(20 + round))
		k.endpoints("web", backendPort, addr)
		k.service(fmt.Sprintf("new%d", round), backendPort, addr)
		k.ingress(fmt.Sprintf("new%d", round), site(fmt.Sprintf("new%d.test", round), "web"))
		eventuallyWithin(t, 2*patience, "the standby takes over and deploys", v.expect("web.test", "/", endpoint(addr, backendPort)))
		before, mark := len(leaderGate.changing()), leader.out.Len()

		leader.thaw()
		eventually(t, "the thawed leader sees that it leads no longer", func() error {
			if !strings.Contains(leader.out.After(mark), "no longer leading") {
				return errors.New("it does not say so")
			}
			return nil
		})
		addr = host(fmt.Sprint(30 + round))
		reconciliations := func() (float64, error) { return leader.metric("haptic_reconciliation_total") }
		var seen float64
		eventually(t, "the thawed leader tells its metrics", func() (err error) { seen, err = reconciliations(); return err })
		k.endpoints("web", backendPort, addr)
		eventually(t, "the new leader deploys", v.expect("web.test", "/", endpoint(addr, backendPort)))
		eventually(t, "the thawed one has seen the change too", func() error {
			now, err := reconciliations()
			if err == nil && now <= seen {
				err = fmt.Errorf("it has made %v reconciliations, as before", now)
			}
			return err
		})
		if calls := leaderGate.changing()[before:]; len(calls) > 0 {
			t.Errorf("the thawed controller made calls: %q", calls)
		}
		leader, standby = standby, leader
		leaderGate, standbyGate = standbyGate, leaderGate
	}
	if err := errors.Join(leader.ended(), standby.ended()); err != nil {
		t.Error(err)
	}
}
