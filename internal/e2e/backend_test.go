package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// backendPort is where the backends listen, unless a test needs another.
const backendPort = 8000

// backends answer, on every address of the subnet and one port, the address
// that was asked: the tests see which endpoint a request has reached.
type backends struct {
	delay atomic.Int64 // nanoseconds before each answer
	busy  atomic.Int64 // requests being answered
	once  atomic.Bool  // each connection is for one request
}

// startBackends listens until the test ends.
func startBackends(t testing.TB, port int32) *backends {
	t.Helper()
	l, err := net.Listen("tcp", ":"+strconv.Itoa(int(port)))
	must(t, err)
	b := &backends{}
	srv := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return b
}

// slow delays each answer from now on.
func (b *backends) slow(d time.Duration) { b.delay.Store(int64(d)) }

func (b *backends) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.busy.Add(1)
	defer b.busy.Add(-1)
	if d := time.Duration(b.delay.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
	if b.once.Load() {
		w.Header().Set("Connection", "close")
	}
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	fmt.Fprint(w, addr)
}

// endpoint is what a backend answers.
func endpoint(addr string, port int32) string { return fmt.Sprintf("%s:%d", addr, port) }

// answer is what came back through HAProxy.
type answer struct {
	status int
	body   string
	proto  string
}

// visitor asks HAProxy, each time on a new connection.
type visitor struct {
	client *http.Client
	url    string // scheme and address of the frontend
}

func newVisitor(scheme, addr string, transport *http.Transport) *visitor {
	transport.DisableKeepAlives = true
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	return &visitor{url: scheme, client: &http.Client{
		Transport: transport, Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// get asks for a host and path.
func (v *visitor) get(host, path string) (answer, error) {
	req, err := http.NewRequest(http.MethodGet, v.url+"://"+host+path, nil)
	if err != nil {
		return answer{}, err
	}
	return v.do(req)
}

func (v *visitor) do(req *http.Request) (answer, error) {
	resp, err := v.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return answer{resp.StatusCode, string(body), resp.Proto}, err
}

// expect is a condition: that host and path are answered by that endpoint.
func (v *visitor) expect(host, path, endpoint string) func() error {
	return func() error {
		a, err := v.get(host, path)
		if err == nil && (a.status != http.StatusOK || a.body != endpoint) {
			err = fmt.Errorf("%s%s: got %d %.100q, want 200 %q", host, path, a.status, a.body, endpoint)
		}
		return err
	}
}

// expectStatus is a condition: that host and path are answered with a status.
func (v *visitor) expectStatus(host, path string, status int) func() error {
	return func() error {
		a, err := v.get(host, path)
		if err == nil && a.status != status {
			err = fmt.Errorf("%s%s: got %d %.100q, want %d", host, path, a.status, a.body, status)
		}
		return err
	}
}
