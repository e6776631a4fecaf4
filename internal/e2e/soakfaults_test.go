package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
)

// fault is a kind of trouble. Two that touch the same are never about at once.
type fault struct {
	name    string
	touches string
	lasts   time.Duration              // at least; at most twice that
	begin   func(s *soak) (end func()) // end is nil where nothing is to be taken back
}

func soakFaults() []fault {
	return []fault{
		{"API server killed", "api", 2 * time.Second, killAPI},
		{"etcd stopped", "api", 2 * time.Second, stopEtcd},
		{"etcd compacted, API server killed", "api", time.Second, compact},
		{"watches cut", "wire", 0, cutWires},
		{"API server refuses connections", "wire", 4 * time.Second, refuseWires},
		{"API server falls silent", "wire", 6 * time.Second, silenceWires},
		{"leader killed", "fleet", 0, killLeader},
		{"leader frozen", "fleet", 18 * time.Second, freezeLeader},
		{"controller frozen", "local", 3 * time.Second, freezeLocal},
		{"HAProxy killed", "local", 0, killWorker},
		{"Dataplane API answers 503", "gate", 4 * time.Second, troubleAt(failing)},
		{"Dataplane API is slow", "gate", 4 * time.Second, troubleAt(slow)},
		{"Dataplane API trickles", "gate", 4 * time.Second, troubleAt(trickle)},
		{"Dataplane API hangs", "gate", 6 * time.Second, troubleAt(hanging)},
		{"cut before each changing call", "gate", 3 * time.Second, troubleAt(before)},
		{"cut after each changing call", "gate", 3 * time.Second, troubleAt(after)},
		{"reload fails after 202", "gate", 0, failReload},
		{"second writer", "gate", 0, secondWriter},
		{"pod goes and comes back", "gate", 3 * time.Second, removePod},
		{"credentials rotated", "gate", 0, rotateCredentials},
		{"Ingress that haproxy refuses", "bad", 6 * time.Second, badIngress},
		{"hostile Ingress", "hostile", 6 * time.Second, hostileIngress},
		{"endpoints flap at 10 Hz", "flap", 5 * time.Second, flapEndpoints},
		{"endpoints scale", "scale", 0, scaleEndpoints},
		{"certificate rotated", "secure", 0, rotateCertificate},
		{"50 Ingresses at once", "many", 5 * time.Second, manyIngresses},
	}
}

// deck deals every fault once before any comes again.
type deck struct {
	rng  *rand.Rand
	left []fault
}

func newDeck(rng *rand.Rand) *deck { return &deck{rng: rng} }

func (d *deck) next(busy func(fault) bool) fault {
	if len(d.left) == 0 {
		d.left = soakFaults()
		d.rng.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	for i, f := range d.left {
		if !busy(f) {
			d.left = append(d.left[:i], d.left[i+1:]...)
			return f
		}
	}
	return fault{}
}

func killAPI(s *soak) func() {
	env.cluster.api.kill()
	return func() { s.k.must(env.cluster.startAPI()) }
}

func stopEtcd(s *soak) func() {
	s.k.must(env.cluster.etcd.cmd.Process.Signal(syscall.SIGSTOP))
	return func() { s.k.must(env.cluster.etcd.cmd.Process.Signal(syscall.SIGCONT)) }
}

func compact(s *soak) func() {
	s.k.must(compactEtcd(s.t.Context()))
	return killAPI(s)
}

func cutWires(s *soak) func() {
	for _, w := range s.wires {
		w.cut()
	}
	return nil
}

func refuseWires(s *soak) func() {
	w := s.wires[s.rng.IntN(len(s.wires))]
	w.refuse(true)
	return func() { w.refuse(false) }
}

func silenceWires(s *soak) func() {
	w := s.wires[s.rng.IntN(len(s.wires))]
	w.silence(true)
	return func() {
		w.silence(false)
		w.cut() // what was swallowed is missing in each of them
	}
}

// leader is who says of itself that it leads, or else one of the two.
func (s *soak) leader() int {
	for i, c := range s.fleet {
		if state, err := c.loopState(); err == nil && state.Leading {
			return i
		}
	}
	return s.rng.IntN(len(s.fleet))
}

func killLeader(s *soak) func() {
	i := s.leader()
	c := s.fleet[i]
	s.endOf(c)
	_ = c.cmd.Process.Kill()
	<-c.done
	s.fleet[i] = startController(s.t, s.options(1+i))
	s.restarts++
	return nil
}

func freezeLeader(s *soak) func() {
	c := s.fleet[s.leader()]
	c.freeze()
	return c.thaw
}

func freezeLocal(s *soak) func() {
	s.local.freeze()
	return s.local.thaw
}

// killWorker kills the HAProxy of the controller; until it is back, requests to
// it may fail.
func killWorker(s *soak) func() {
	f := s.fronts[0]
	pid := s.local.mustWorker()
	f.announce()
	s.k.must(syscall.Kill(pid, syscall.SIGKILL))
	eventually(s.t, "HAProxy is back", func() error {
		if now, err := s.local.worker(); err != nil || now == pid {
			return fmt.Errorf("worker %d, before %d: %w", now, pid, err)
		}
		return f.plain.expect(steadyHost, "/", endpoint(host("10"), backendPort))()
	})
	f.announce()
	return nil
}

func troubleAt(tr trouble) func(*soak) func() {
	return func(s *soak) func() {
		g := s.gates[s.rng.IntN(len(s.gates))]
		g.make(tr)
		s.stir() // or nobody would call
		return func() { g.make(calm) }
	}
}

// stir makes changes that must be deployed: one takes no reload, one takes one.
func (s *soak) stir() {
	scaleEndpoints(s)
	h := s.name("stir") + ".test"
	s.addIngress(h, "quiet")
	s.removeIngress(h)
}

// addIngress makes a site for a host, with the endpoints of a Service.
func (s *soak) addIngress(h, service string, edits ...edit) {
	edits = append(edits, site(h, service))
	s.want[h] = s.want[service+".test"]
	s.writes.add(func(ctx context.Context) error { return s.k.createIngress(ctx, h, edits...) })
}

func (s *soak) removeIngress(h string) {
	s.want[h] = nil
	s.writes.add(func(ctx context.Context) error { return s.k.deleteIngress(ctx, h) })
}

func failReload(s *soak) func() {
	for _, p := range s.pods {
		if !p.real {
			s.k.must(p.failReload())
		}
	}
	s.stir()
	return nil
}

func secondWriter(s *soak) func() {
	for _, p := range s.pods {
		if err := p.intrude(intruder); err != nil { // the first writer was quicker
			s.t.Logf("the second writer at %s: %v", p.name, err)
		}
	}
	return nil
}

func removePod(s *soak) func() {
	i := s.rng.IntN(len(s.pods))
	name, addr := s.pods[i].name, s.gates[i].addr
	s.writes.add(func(ctx context.Context) error { return s.k.deletePod(ctx, name) })
	s.stir()
	return func() {
		s.writes.add(func(ctx context.Context) error { return s.k.createPod(ctx, name, addr) })
	}
}

// rotateCredentials changes what the Dataplane APIs want and then, while
// changes are being deployed, what the Secret says.
func rotateCredentials(s *soak) func() {
	s.newPassword()
	s.stir()
	for _, g := range s.gates {
		g.setPassword(s.password)
	}
	typ, data := s.credentials()
	s.writes.add(func(ctx context.Context) error { return s.k.updateSecret(ctx, "haproxy", typ, data) })
	return nil
}

func badIngress(s *soak) func() {
	h := s.name("bad") + ".test"
	s.addIngress(h, "quiet", annotated("snippet", "http-request deny deny_status never"))
	s.want[h] = nil
	return func() { s.removeIngress(h) }
}

func hostileIngress(s *soak) func() {
	h := s.name("hostile") + ".test"
	s.writes.add(func(ctx context.Context) error {
		return s.k.createIngress(ctx, h, route(h, netv1.PathTypePrefix, "/x\n"+steadyHost+"/ evil\n  server evil 203.0.113.66:80\n", "quiet"))
	})
	return func() { s.removeIngress(h) }
}

// flapEndpoints changes the endpoints of a site ten times a second; all of them
// are healthy.
func flapEndpoints(s *soak) func() {
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// The API server may be away: then this change is left out.
				_ = s.k.setEndpoints(ctx, "flap", host(fmt.Sprint(120+i%5)), host(fmt.Sprint(130+i%3)))
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
		addr := host("12")
		s.want[flapHost] = []string{endpoint(addr, backendPort)}
		s.writes.add(func(ctx context.Context) error { return s.k.setEndpoints(ctx, "flap", addr) })
	}
}

func scaleEndpoints(s *soak) func() {
	var addrs, want []string
	for i := range 1 + s.rng.IntN(6) {
		addrs = append(addrs, host(fmt.Sprint(150+10*i+s.rng.IntN(10))))
		want = append(want, endpoint(addrs[i], backendPort))
	}
	s.want["scale.test"] = want
	s.writes.add(func(ctx context.Context) error { return s.k.setEndpoints(ctx, "scale", addrs...) })
	return nil
}

func rotateCertificate(s *soak) func() {
	pair := s.certs.issue(secureHost)
	data := map[string][]byte{corev1.TLSCertKey: pair.cert, corev1.TLSPrivateKeyKey: pair.key}
	s.certificate = pair.serial
	s.writes.add(func(ctx context.Context) error { return s.k.updateSecret(ctx, "secure", corev1.SecretTypeTLS, data) })
	return nil
}

func manyIngresses(s *soak) func() {
	var hosts []string
	for range 50 {
		hosts = append(hosts, s.name("many")+".test")
		s.addIngress(hosts[len(hosts)-1], "quiet")
	}
	return func() {
		for _, h := range hosts {
			s.removeIngress(h)
		}
	}
}
