package e2e

import (
	"encoding/json"
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
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// doorway is the way of one controller to a Dataplane API. Shut, it refuses what
// would change something; it keeps when such a call came through.
type doorway struct {
	*httptest.Server
	mu    sync.Mutex
	shut  bool
	calls []time.Time
}

func newDoorway(t *testing.T, target string) *doorway {
	t.Helper()
	to, err := url.Parse(target)
	must(t, err)
	proxy := &httputil.ReverseProxy{Transport: &http.Transport{DisableKeepAlives: true}, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	d := &doorway{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && !strings.Contains(r.URL.RawQuery, "only_validate=true") && !d.pass() {
			http.Error(w, `{"code":503,"message":"shut"}`, http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *doorway) pass() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.shut {
		d.calls = append(d.calls, time.Now())
	}
	return !d.shut
}

func (d *doorway) setShut(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
}

// first is the first call after a time that changed something.
func (d *doorway) first(after time.Time) (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.calls {
		if at.After(after) {
			return at, true
		}
	}
	return time.Time{}, false
}

// holding is one version of the Lease, and when it was seen.
type holding struct {
	holder  string
	expires time.Time // by what stands in it
	seen    time.Time
}

// followLease keeps each version of a Lease that appears from now on.
func followLease(t *testing.T, namespace, name string) func() []holding {
	t.Helper()
	w, err := env.cluster.client.CoordinationV1().Leases(namespace).Watch(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	must(t, err)
	var mu sync.Mutex
	var all []holding
	var wg sync.WaitGroup
	wg.Go(func() {
		for event := range w.ResultChan() {
			lease, ok := event.Object.(*coordinationv1.Lease)
			if !ok || lease.Spec.RenewTime == nil {
				continue
			}
			h := holding{seen: time.Now(), expires: lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)}
			if lease.Spec.HolderIdentity != nil {
				h.holder = *lease.Spec.HolderIdentity
			}
			mu.Lock()
			all = append(all, h)
			mu.Unlock()
		}
	})
	t.Cleanup(func() { w.Stop(); wg.Wait() })
	return func() []holding {
		mu.Lock()
		defer mu.Unlock()
		return all[:len(all):len(all)]
	}
}

// validated is the configuration that a controller would deploy.
func (c *controller) validated() (string, error) {
	text, err := c.page("/debug/vars/state")
	if err != nil {
		return "", err
	}
	var state struct{ Validated string }
	err = json.Unmarshal([]byte(text), &state)
	return state.Validated, err
}

// pair is two controllers that stand for election, for one endpoint.
type pair struct {
	*kube
	api       *dataplanetest.Server
	leases    func() []holding
	leader    *controller
	standby   *controller
	ofLeader  *doorway
	ofStandby *doorway
	changes   int
}

func newPair(t *testing.T, ofStandby ...string) *pair {
	p := &pair{kube: newKube(t)}
	startBackends(t, backendPort)
	p.service("web", backendPort, host("10"))
	p.ingress("web", site("web.test", "web"))
	p.api = dataplanetest.New(t, &dataplanetest.Options{Password: "e2e-password", HAProxy: &dataplanetest.HAProxy{}})
	p.leases = followLease(t, p.ns, "handover")
	p.leader, p.ofLeader = p.start(9090)
	p.standby, p.ofStandby = p.start(9091, ofStandby...)
	return p
}

func (p *pair) start(port int, flags ...string) (*controller, *doorway) {
	d := newDoorway(p.t.(*testing.T), p.api.URL())
	return startController(p.t, options{
		debugPort: port, endpoints: []string{d.URL},
		env: []string{"HAPTIC_DATAPLANE_USERNAME=admin", "HAPTIC_DATAPLANE_PASSWORD=e2e-password",
			"HAPTIC_VALIDATION_USERNAME=admin", "HAPTIC_VALIDATION_PASSWORD=e2e-password"},
		// How many files that HAProxy may open cannot be known here.
		args: append([]string{"-maxconn", "1000", "-leader-elect", "-lease", p.ns + "/handover", "-endpoint-base", p.api.Layout().Base,
			"-endpoint-socket", filepath.Join(p.api.Layout().Base, "admin.sock")}, flags...),
	}), d
}

// change has the standby validate something new, that the leader cannot deploy.
func (p *pair) change() {
	p.t.Helper()
	p.ofLeader.setShut(true)
	var before string
	eventually(p.t, "the standby has validated something", func() (err error) {
		if before, err = p.standby.validated(); err == nil && before == "" {
			err = errors.New("it has not")
		}
		return err
	})
	p.changes++
	p.endpoints("web", backendPort, host(fmt.Sprint(20+p.changes)))
	eventually(p.t, "the standby validates the change", func() error {
		now, err := p.standby.validated()
		if err == nil && now == before {
			err = errors.New("it has what it had")
		}
		return err
	})
}

// deployed waits for the first changing call that the standby makes after the
// mark, and returns how long after a time the Lease was won, and that call was
// made. The standby may hear of a Lease that was released sooner than this test.
func (p *pair) deployed(mark, from time.Time) (won, called time.Duration) {
	p.t.Helper()
	eventuallyWithin(p.t, 2*patience, "the standby takes over and deploys", func() error {
		at, ok := p.ofStandby.first(mark)
		if !ok {
			return errors.New("it has made no changing call")
		}
		called = at.Sub(from)
		if at, ok = takenOver(p.leases(), mark); !ok {
			return errors.New("it has not won the Lease")
		}
		won = at.Sub(from)
		return nil
	})
	eventually(p.t, "the change is live", p.leader.visit().expect("web.test", "/", endpoint(host(fmt.Sprint(20+p.changes)), backendPort)))
	return won, called
}

// takenOver is when a Lease was first seen with another holder than at the mark.
func takenOver(versions []holding, mark time.Time) (time.Time, bool) {
	holder := ""
	for _, h := range versions {
		switch {
		case h.holder == "":
		case h.seen.Before(mark):
			holder = h.holder
		case h.holder != holder:
			return h.seen, true
		}
	}
	return time.Time{}, false
}

// awaitRenewals waits until the standby, which may have come just now, has seen
// a renewal at the time at which it was made.
func (p *pair) awaitRenewals() {
	p.t.Helper()
	mark := len(p.leases())
	eventually(p.t, "the leader renews the Lease", func() error {
		if n := len(p.leases()) - mark; n < 2 {
			return fmt.Errorf("%d renewals", n)
		}
		return nil
	})
}

// swap makes the standby the leader.
func (p *pair) swap() {
	p.leader, p.standby = p.standby, p.leader
	p.ofLeader, p.ofStandby = p.ofStandby, p.ofLeader
}

// TestHandover: how long the endpoints are without a leader that deploys, from
// the moment at which the Lease can be had to the first changing call. It is
// measured, and printed; -figures makes more rounds.
func TestHandover(t *testing.T) {
	released, frozen := 1, 1
	if *figures {
		released, frozen = 10, 5
	}
	p := newPair(t)
	for range released {
		p.change()
		mark := time.Now()
		p.leader.stop()
		var from time.Time
		eventually(t, "the Lease is released", func() error {
			for _, h := range p.leases() {
				if h.holder == "" && h.seen.After(mark) {
					from = h.seen
					return nil
				}
			}
			return errors.New("it is held")
		})
		won, called := p.deployed(mark, from)
		t.Logf("released: Lease won after %v, first changing call after %v", won.Round(time.Millisecond), called.Round(time.Millisecond))
		p.swap()
		p.standby, p.ofStandby = p.start(9089 + p.changes + 2)
	}
	for range frozen {
		p.change()
		p.awaitRenewals()
		mark := time.Now()
		p.leader.freeze()
		versions := p.leases()
		from := versions[len(versions)-1].expires
		won, called := p.deployed(mark, from)
		t.Logf("frozen: Lease won after %v, first changing call after %v", won.Round(time.Millisecond), called.Round(time.Millisecond))
		printed := p.leader.out.Len()
		p.leader.thaw()
		eventually(t, "the thawed leader sees that it leads no longer", func() error {
			if !strings.Contains(p.leader.out.After(printed), "no longer leading") {
				return errors.New("it does not say so")
			}
			return nil
		})
		p.ofLeader.setShut(false)
		p.swap()
	}
}
