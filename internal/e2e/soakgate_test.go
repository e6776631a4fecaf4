package e2e

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// trouble is what happens to the calls of a Dataplane API.
type trouble int

const (
	calm    trouble = iota
	failing         // each call is answered with 503
	slow            // each answer is late
	trickle         // the answer comes byte by byte
	hanging         // no call is answered
	before          // the connection is cut in place of a changing call
	after           // the connection is cut once a changing call was carried out
)

// podGate is the way of all controllers to one Dataplane API. It asks for a
// password of its own, which can be changed, and can make trouble.
type podGate struct {
	proxy *httputil.ReverseProxy
	addr  string // where it listens
	done  chan struct{}

	mu       sync.Mutex
	password string
	trouble  trouble
	over     chan struct{} // closed when the trouble is
	changes  int           // calls that change something, and have the right password
}

// newPodGate listens at the address of the pod that controllers see. The target
// is where the Dataplane API really is.
func newPodGate(t testing.TB, addr, password, target string) *podGate {
	t.Helper()
	l, err := net.Listen("tcp4", net.JoinHostPort(addr, podAPIPort))
	must(t, err)
	transport := &http.Transport{}
	to := &url.URL{Scheme: "http", Host: target}
	silent := log.New(io.Discard, "", 0) // failures are the point
	g := &podGate{addr: addr, password: password, over: make(chan struct{}), done: make(chan struct{}), proxy: &httputil.ReverseProxy{
		Transport: transport, ErrorLog: silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.SetBasicAuth("admin", podPassword)
		},
	}}
	srv := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, ErrorLog: silent}
	go func() {
		_ = srv.Serve(l)
		close(g.done)
	}()
	t.Cleanup(func() {
		g.make(calm)
		_ = srv.Close()
		<-g.done
		transport.CloseIdleConnections()
	})
	return g
}

// make changes what happens from now on; calls that hang go on.
func (g *podGate) make(tr trouble) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trouble = tr
	close(g.over)
	g.over = make(chan struct{})
}

// changing counts the calls so far that change something.
func (g *podGate) changing() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes
}

// setPassword changes which password is right.
func (g *podGate) setPassword(password string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.password = password
}

func (g *podGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	changing := r.Method != http.MethodGet
	g.mu.Lock()
	right, now, over := g.password, g.trouble, g.over
	g.mu.Unlock()
	if _, password, _ := r.BasicAuth(); password != right {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if changing {
		g.mu.Lock()
		g.changes++
		g.mu.Unlock()
	}
	switch {
	case now == failing:
		w.WriteHeader(http.StatusServiceUnavailable)
	case now == slow:
		pause(r.Context(), over, 500*time.Millisecond)
		g.proxy.ServeHTTP(w, r)
	case now == hanging:
		pause(r.Context(), over, time.Hour)
		panic(http.ErrAbortHandler)
	case now == trickle:
		g.trickle(w, r, over)
	case now == before && changing:
		panic(http.ErrAbortHandler)
	case now == after && changing:
		g.proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		g.proxy.ServeHTTP(w, r)
	}
}

// trickle answers byte by byte.
func (g *podGate) trickle(w http.ResponseWriter, r *http.Request, over chan struct{}) {
	rec := httptest.NewRecorder()
	g.proxy.ServeHTTP(rec, r)
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	for _, b := range rec.Body.Bytes() {
		if _, err := w.Write([]byte{b}); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		pause(r.Context(), over, 5*time.Millisecond)
	}
}

// pause waits, at most until the caller leaves or the trouble is over.
func pause(ctx context.Context, over chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	case <-ctx.Done():
	}
}
