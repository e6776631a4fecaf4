package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// front is the frontend of one HAProxy, with visitors that never stop asking
// for sites whose backends are always healthy.
type front struct {
	name          string
	addr          string // where HAProxy listens
	tls           string // address for HTTPS
	plain, secure *visitor

	mu       sync.Mutex
	requests int
	excused  int // failures while this HAProxy was announced to be away
	failures []string
	away     []time.Time // begin, end, begin, end
}

const (
	steadyHost = "steady.test"
	secureHost = "secure.test"
	flapHost   = "flap.test" // its endpoints change all the time, and all of them are healthy
)

func newFront(name, addr string, certs *certificates) *front {
	return &front{name: name, addr: addr, tls: addr + ":8443", plain: newVisitor("http", addr+":8080", noTLS()),
		secure: newVisitor("https", addr+":8443", &http.Transport{TLSClientConfig: certs.client(secureHost)})}
}

// startVisitors asks until the test ends.
func (f *front) startVisitors(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	ask := func(pace time.Duration, v *visitor, hosts ...string) {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				begin := time.Now()
				f.count(begin, v.expectStatus(hosts[i%len(hosts)], "/", http.StatusOK)())
			}
		}
	}
	running.Go(func() { ask(20*time.Millisecond, f.plain, steadyHost, flapHost) })
	running.Go(func() { ask(200*time.Millisecond, f.secure, secureHost) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (f *front) count(begin time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	switch {
	case err == nil:
	case f.wasAway(begin, time.Now()):
		f.excused++
	default:
		f.failures = append(f.failures, fmt.Sprintf("%s to %s, %s: %v",
			begin.Format("15:04:05.000"), time.Now().Format("15:04:05.000"), f.name, err))
	}
}

// wasAway reports whether a request met a time for which this HAProxy was
// announced to be away.
func (f *front) wasAway(begin, end time.Time) bool {
	for when := range slices.Chunk(f.away, 2) {
		if len(when) == 1 && end.After(when[0]) || len(when) == 2 && end.After(when[0]) && begin.Before(when[1]) {
			return true
		}
	}
	return false
}

// announce says that this HAProxy is away, or is back.
func (f *front) announce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = append(f.away, time.Now())
}

// propagation measures how long a change of an EndpointSlice takes to every
// HAProxy.
type propagation struct {
	mu    sync.Mutex
	took  map[string][]time.Duration // by front; of changes made with no fault about
	storm map[string][]time.Duration // the others
	lost  int                        // changes that another one overtook
}

// probes changes the endpoint of a site of its own about once a second, and
// waits for each HAProxy to follow.
func (s *soak) probes(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	s.propagation = &propagation{took: map[string][]time.Duration{}, storm: map[string][]time.Duration{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !s.still.Load() {
					s.probe(ctx, host(fmt.Sprint(20+i%100)))
				}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (s *soak) probe(ctx context.Context, addr string) {
	const limit = time.Minute
	quiet := s.quiet.Load()
	if s.k.setEndpoints(ctx, "probe", addr) != nil {
		return // the API server is away: the next one will do
	}
	begin := time.Now()
	var fronts sync.WaitGroup
	for _, f := range s.fronts {
		fronts.Go(func() {
			err := poll(ctx, limit, f.plain.expect("probe.test", "/", endpoint(addr, backendPort)))
			took := time.Since(begin)
			p := s.propagation
			p.mu.Lock()
			defer p.mu.Unlock()
			switch {
			case err != nil && ctx.Err() == nil:
				p.lost++
			case err != nil:
			case quiet && s.quiet.Load():
				p.took[f.name] = append(p.took[f.name], took)
			default:
				p.storm[f.name] = append(p.storm[f.name], took)
			}
		})
	}
	fronts.Wait()
}
