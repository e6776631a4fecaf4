package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	routeNames     = 4 // that come and go, and come again
	routeAddresses = 5 // of each, one after the other
	routesFrom     = 210
	routePorts     = 20 // with the next port when all addresses had a turn
	routesPort     = 8100
)

// routeAt is the endpoint of a route in a turn. It comes again after 100 turns, of three
// seconds each: a HAProxy that still has an earlier turn, as after a time without a
// leader, must not seem to have this one.
func routeAt(from, turn int) (addr string, port int32) {
	return host(fmt.Sprint(from + turn%routeAddresses)), int32(routesPort + turn/routeAddresses%routePorts)
}

// newRoutes makes Ingresses with new Services come and go, some names again and again
// with other endpoints. As soon as one answers it must go on to answer until it is
// deleted, and never with an endpoint of another.
func (s *soak) newRoutes() (end func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	of := s.name("route")
	var running sync.WaitGroup
	hosts := make([]string, routeNames)
	for i := range routeNames {
		hosts[i] = fmt.Sprintf("%s-%d.test", of, i)
		running.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				s.routeLives(ctx, hosts[i], routesFrom+routeAddresses*i, turn)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
		for _, h := range hosts {
			s.want[h] = nil
		}
	}
}

// routeLives makes a route, asks for it everywhere while it is there, and deletes it.
func (s *soak) routeLives(ctx context.Context, h string, from, turn int) {
	addr, port := routeAt(from, turn)
	service := strings.TrimSuffix(h, ".test")
	s.writes.add(func(ctx context.Context) error { return s.k.createService(ctx, service, port, addr) })
	s.writes.add(func(ctx context.Context) error { return s.k.createIngress(ctx, h, site(h, service)) })
	life, end := context.WithTimeout(ctx, 3*time.Second)
	defer end()
	var asking sync.WaitGroup
	for _, f := range s.fronts {
		asking.Go(func() { f.follow(life, h, from, endpoint(addr, port)) })
	}
	asking.Wait()
	s.routes.Add(1)
	s.writes.add(func(ctx context.Context) error { return s.k.deleteIngress(ctx, h) })
	s.writes.add(func(ctx context.Context) error { return s.k.deleteService(ctx, service) })
}

// follow asks for a route that is new, on a connection that is kept. Each answer counts
// from the first good one on; one of an endpoint of another route always does.
func (f *front) follow(ctx context.Context, h string, from int, want string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	p := newProbe(f.addr + ":8080")
	defer p.close()
	for good := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begin := time.Now()
		status, body, err := p.get(ctx, h)
		switch {
		case err == nil && status == http.StatusOK && body == want:
			good = true
		case err == nil && status == http.StatusOK && !ownEndpoint(body, from):
			err, good = fmt.Errorf("%s: answered by %q, which is of another route", h, body), true
		case err == nil:
			err = fmt.Errorf("%s: got %d %.100q, want 200 %q as before", h, status, body, want)
		}
		if good && ctx.Err() == nil {
			f.count(begin, err)
		}
	}
}

// ownEndpoint reports whether a route ever has this endpoint.
func ownEndpoint(body string, from int) bool {
	for i := range routeAddresses {
		if strings.HasPrefix(body, host(fmt.Sprint(from+i))+":") {
			return true
		}
	}
	return false
}

// deleteService deletes a Service and its EndpointSlice.
func (k *kube) deleteService(ctx context.Context, name string) error {
	if err := env.cluster.client.CoreV1().Services(k.ns).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return env.cluster.client.DiscoveryV1().EndpointSlices(k.ns).Delete(ctx, name+"-1", metav1.DeleteOptions{})
}
