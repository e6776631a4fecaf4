package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	soakFor  = flag.Duration("soak", 0, "how long TestSoak makes trouble; 0: a short form of it")
	soakPace = flag.Duration("soakpace", 5*time.Second, "time between two faults of TestSoak, less in the short form")
	soakSeed = flag.Uint64("soakseed", 0, "seed of TestSoak; 0: a new one, which is printed, or that of the short form")
	soakRace = flag.Bool("soakrace", false, "TestSoak runs controllers with the race detector")
)

// The short form of the soak, for each run of all tests: the same faults each
// time, so that a failure tells of a change.
const (
	shortSoak = 24 * time.Second
	shortPace = 2 * time.Second
	shortSeed = 1
)

// calmEvery is how many faults come between two times at which all must be as
// the cluster says.
const calmEvery = 12

// soak is a controller with a HAProxy of its own, and two more that take turns
// in leading and deploy to HAProxy pods, all under constant traffic while one
// fault follows another.
type soak struct {
	t     *testing.T
	k     *kube
	certs *certificates
	rng   *rand.Rand

	local  *controller
	fleet  []*controller // take turns in leading
	pods   []*haproxyPod
	gates  []*podGate // in front of the pods
	fronts []*front   // of local, then of the pods
	wires  []*wire    // of local, and of the fleet

	writes      *writes
	want        map[string][]string // host -> its endpoints; nil: not found
	password    string
	certificate *big.Int    // serial number
	serial      int         // for names that were never used
	quiet       atomic.Bool // no fault is about
	still       atomic.Bool // nothing changes
	propagation *propagation

	active    []*trial
	injected  map[string]int
	baselines map[*controller]resources
	restarts  int
	printed   []*controller // that ended
	resources []string      // of each process: lines of the report
	deployed  counts        // of controllers that ended
	routes    atomic.Int64  // that came and went
}

// trial is a fault under way.
type trial struct {
	fault fault
	until time.Time
	end   func()
}

// TestSoak makes trouble at random, and checks from time to time, and at the
// end, that
//   - what is in the stores equals what is in etcd: as many resources, and every
//     host is answered by exactly the endpoints that it has in the API;
//   - every HAProxy has the last valid revision;
//   - no request to a healthy backend has failed, but to a HAProxy that was
//     killed, until it was back; sites come and go all the time, with Services of their
//     own, and one that has answered once goes on to, and never for another;
//   - goroutines, file descriptors and memory of the controllers are where they
//     were;
//   - no event is lost;
//   - no secret was printed.
func TestSoak(t *testing.T) {
	s := newSoak(t)
	length, pace := *soakFor, *soakPace
	if length == 0 {
		length, pace = shortSoak, min(shortPace, pace)
	}
	begin := time.Now()
	s.calm("before the first fault")
	deck := newDeck(s.rng)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); {
		endRoutes := s.newRoutes()
		for range calmEvery {
			if <-tick.C; time.Now().After(end) {
				break
			}
			s.endTrials(time.Now())
			s.begin(deck)
		}
		endRoutes()
		s.calm(fmt.Sprintf("after %v and %d faults", time.Since(begin).Round(time.Second), s.faults()))
	}
	s.finish(time.Since(begin))
}

func newSoak(t *testing.T) *soak {
	seed := *soakSeed
	switch {
	case seed != 0:
	case *soakFor == 0:
		seed = shortSeed
	default:
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to see these faults again: -soakseed %d", seed)
	startBackends(t, backendPort)
	for i := range routePorts {
		startBackends(t, int32(routesPort+i))
	}
	s := &soak{t: t, k: newKube(t), certs: newCertificates(t), rng: rand.New(rand.NewPCG(seed, 0)),
		want: map[string][]string{}, injected: map[string]int{}, baselines: map[*controller]resources{}}
	s.sites()
	s.newPassword()
	s.k.credentials("haproxy", s.password)
	s.startPods()
	s.startControllers()
	for _, f := range s.fronts {
		eventuallyWithin(t, 2*patience, f.name+" serves", f.plain.expect(steadyHost, "/", endpoint(host("10"), backendPort)))
		f.startVisitors(t)
	}
	s.writes = startWrites(t)
	s.probes(t)
	return s
}

// sites are there from the beginning and stay.
func (s *soak) sites() {
	pair := s.certs.issue(secureHost)
	s.certificate = pair.serial
	s.k.secret("secure", pair)
	for i, name := range []string{"steady", "secure", "flap", "probe", "scale", "quiet"} {
		addr := host(fmt.Sprint(10 + i))
		s.k.service(name, backendPort, addr)
		h := name + ".test"
		if h == secureHost {
			s.k.ingress(name, withTLS("secure", h), site(h, name))
		} else {
			s.k.ingress(name, site(h, name))
		}
		if name != "probe" {
			s.want[h] = []string{endpoint(addr, backendPort)}
		}
	}
}

// startPods starts two instances behind an imitation of the Dataplane API and,
// where there is one, one behind a real one.
func (s *soak) startPods() {
	dir := filepath.Join(env.dir, "pod")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	apis := []string{"", ""}
	if api := os.Getenv(dataplaneAPIEnv); api != "" {
		apis = append(apis, api)
	}
	for i, api := range apis {
		haproxy := ""
		if api != "" {
			haproxy = os.Getenv(podHAProxyEnv)
		}
		p := startPod(s.t, i, dir, api, haproxy)
		g := newPodGate(s.t, host(fmt.Sprint(240+i)), s.password, net.JoinHostPort(p.addr, podAPIPort))
		s.pods, s.gates = append(s.pods, p), append(s.gates, g)
		s.k.haproxyPod(p.name, g.addr)
		s.t.Cleanup(func() { _ = s.k.deletePod(context.Background(), p.name) })
	}
}

func (s *soak) startControllers() {
	s.wires = []*wire{newWire(s.t), newWire(s.t)}
	s.local = startController(s.t, s.options(0))
	for i := range 2 {
		s.fleet = append(s.fleet, startController(s.t, s.options(1+i)))
	}
	s.fronts = append(s.fronts, newFront("local", host("2"), s.certs))
	for _, p := range s.pods {
		s.fronts = append(s.fronts, newFront(p.name, p.addr, s.certs))
	}
}

// options of the controller with the HAProxy of its own, 0, or of one of those
// that lead by turns.
func (s *soak) options(i int) options {
	binary := ""
	if *soakRace {
		binary = env.raceController
	}
	templates := snippetTemplates(s.t)
	// The cases expect as many servers as there are endpoints.
	s.k.must(os.RemoveAll(filepath.Join(templates, "cases")))
	o := options{binary: binary, debugPort: 9090 + i, notReady: true, args: []string{"-namespace", s.k.ns,
		"-templates", templates, "-kubeconfig", s.k.kubeconfigBy(s.wires[min(i, 1)]), "-drift-interval", "5s"}}
	if i > 0 {
		dir := filepath.Join(env.dir, "pod")
		o.args = append(o.args, "-pods", "app=haproxy", "-pod-namespace", s.k.ns, "-pod-scheme", "http", "-pod-port", podAPIPort, "-credentials", s.k.ns+"/haproxy",
			"-leader-elect", "-lease", s.k.ns+"/soak", "-maxconn", "1000", "-http-addr", ":8080", "-https-addr", ":8443",
			"-endpoint-base", dir, "-endpoint-socket", filepath.Join(dir, "admin.sock"))
	}
	return o
}

// kubeconfigBy returns a kubeconfig that goes by a wire.
func (k *kube) kubeconfigBy(w *wire) string {
	k.t.Helper()
	config, err := clientcmd.LoadFromFile(env.cluster.kubeconfig)
	k.must(err)
	for _, c := range config.Clusters {
		c.Server = "https://" + w.listener.Addr().String()
	}
	file := filepath.Join(k.t.TempDir(), "kubeconfig")
	k.must(clientcmd.WriteToFile(*config, file))
	return file
}

// newPassword makes up another password of the Dataplane APIs.
func (s *soak) newPassword() { s.password = s.name("canary") }

// name is one that was never used.
func (s *soak) name(of string) string {
	s.serial++
	return fmt.Sprintf("%s-%d", of, s.serial)
}

func (s *soak) credentials() (corev1.SecretType, map[string][]byte) {
	password := []byte(s.password)
	return corev1.SecretTypeOpaque, map[string][]byte{
		"dataplane_username": []byte("admin"), "dataplane_password": password,
	}
}

// begin begins the next fault of the deck that does not touch what another one
// is at.
func (s *soak) begin(deck *deck) {
	f := deck.next(func(f fault) bool {
		return slices.ContainsFunc(s.active, func(a *trial) bool { return a.fault.touches == f.touches })
	})
	if f.begin == nil {
		return
	}
	s.quiet.Store(false)
	lasts := f.lasts
	if lasts > 0 {
		lasts += time.Duration(s.rng.Int64N(int64(lasts)))
	}
	s.t.Logf("%s: %s, for %v", time.Now().Format("15:04:05.000"), f.name, lasts.Round(100*time.Millisecond))
	s.injected[f.name]++
	end := f.begin(s)
	if end == nil {
		return
	}
	s.active = append(s.active, &trial{fault: f, until: time.Now().Add(lasts), end: end})
}

// endTrials ends the faults whose time is over.
func (s *soak) endTrials(now time.Time) {
	s.active = slices.DeleteFunc(s.active, func(a *trial) bool {
		if now.Before(a.until) {
			return false
		}
		a.end()
		return true
	})
}

func (s *soak) faults() (n int) {
	for _, times := range s.injected {
		n += times
	}
	return n
}
