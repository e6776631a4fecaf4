package discover

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

func TestClientsAreKeptWhileNothingChanges(t *testing.T) {
	var clients Clients
	a := dataplane.Endpoint{Name: "a", URL: "http://192.0.2.1:5555", Username: "u", Password: "canary"}
	b := dataplane.Endpoint{Name: "b", URL: "http://192.0.2.2:5555", Username: "u", Password: "canary"}
	first, err := clients.Targets([]dataplane.Endpoint{a, b})
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		require.NotContains(t, fmt.Sprintf(verb, first[0]), "canary")
	}
	again, err := clients.Targets([]dataplane.Endpoint{b, a})
	require.NoError(t, err)
	require.Same(t, first[0], again[1])
	require.Same(t, first[1], again[0])

	a.Password = "rotated"
	b.URL = "http://192.0.2.3:5555"
	bad := dataplane.Endpoint{Name: "bad", URL: "ftp://192.0.2.4"}
	next, err := clients.Targets([]dataplane.Endpoint{a, bad, b})
	require.ErrorContains(t, err, "bad: ")
	require.Len(t, next, 2, "one that cannot be used keeps nobody else from being served")
	require.NotSame(t, first[0], next[0], "what waits since others were refused is tried at once")
	require.NotSame(t, first[1], next[1], "a new address under the old name inherits nothing")
}

// rotating is a Dataplane API whose password can change at any request.
type rotating struct {
	*dataplanetest.Server
	front    *httptest.Server
	mu       sync.Mutex
	password string
	onWrite  func()
	refused  int
	conns    atomic.Int64
}

func newRotating(t *testing.T, o *dataplanetest.Options) *rotating {
	r := &rotating{Server: dataplanetest.New(t, o), password: "old"}
	back, err := url.Parse(r.URL())
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(back)
		p.Out.SetBasicAuth("admin", "secret")
	}}
	r.front = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		if q.Method != http.MethodGet && r.onWrite != nil {
			r.onWrite()
			r.onWrite = nil
		}
		_, password, _ := q.BasicAuth()
		ok := password == r.password
		if !ok {
			r.refused++
		}
		r.mu.Unlock()
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, q)
	}))
	r.front.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			r.conns.Add(1)
		case http.StateClosed:
			r.conns.Add(-1)
		}
	}
	r.front.Start()
	t.Cleanup(r.front.Close)
	return r
}

func (r *rotating) endpoint(password string) dataplane.Endpoint {
	return dataplane.Endpoint{Name: "pod", URL: r.front.URL, Username: "admin", Password: password}
}

const twoSections = "global\n  maxconn 100\n\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n\nbackend %s\n"

// TestCredentialsRotatedInMidDeployment: the call that they are refused for fails.
// As soon as the watch brings others, the endpoint, which waits, is tried at once.
func TestCredentialsRotatedInMidDeployment(t *testing.T) {
	r := newRotating(t, nil)
	var clients Clients
	targets, err := clients.Targets([]dataplane.Endpoint{r.endpoint("old")})
	require.NoError(t, err)
	r.onWrite = func() { r.password = "canary" } // between the reading and the first change
	cfg, err := dataplane.NewConfig(fmt.Sprintf(twoSections, "web"))
	require.NoError(t, err)
	_, err = targets[0].Sync(t.Context(), cfg)
	require.ErrorIs(t, err, dataplane.ErrUnauthorized)
	require.False(t, dataplane.Retryable(err))

	next, err := clients.Targets([]dataplane.Endpoint{r.endpoint("canary")})
	require.NoError(t, err)
	require.NotSame(t, targets[0], next[0])
	result, err := next[0].Sync(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, 1, result.Reloads)
	require.Contains(t, r.Raw(), "backend web")
}

// TestCredentialsRotatedBeforeItIsStored: what the instance was told under the other
// credentials is found out, and stored.
func TestCredentialsRotatedBeforeItIsStored(t *testing.T) {
	r := newRotating(t, nil)
	var clients Clients
	targets, err := clients.Targets([]dataplane.Endpoint{r.endpoint("old")})
	require.NoError(t, err)
	target := targets[0]
	config := func(server string) *dataplane.Config {
		cfg, err := dataplane.NewConfig(fmt.Sprintf(twoSections, "web") + "  server s " + server + "\n")
		require.NoError(t, err)
		return cfg
	}
	_, err = target.Sync(t.Context(), config("127.0.0.1:1001"))
	require.NoError(t, err)
	result, err := target.Sync(t.Context(), config("127.0.0.2:1002"), dataplane.StoreLater())
	require.NoError(t, err)
	require.True(t, result.Pending)

	r.mu.Lock()
	r.password = "new"
	r.mu.Unlock()
	targets, err = clients.Targets([]dataplane.Endpoint{r.endpoint("new")})
	require.NoError(t, err)
	_, err = targets[0].Sync(t.Context(), config("127.0.0.2:1002"), dataplane.StoreLater())
	require.NoError(t, err)
	require.NoError(t, targets[0].(*dataplane.Client).Store(t.Context()))
	require.Contains(t, r.Raw(), "127.0.0.2:1002")
	require.NotContains(t, r.Raw(), "127.0.0.1:1001")
	require.Len(t, r.Reloads(), 1)
}

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		name, api, unfit string
	}{
		{"fits", "v3.2.4", ""},
		{"an old API", "v2.9.1", "older than 3.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := dataplanetest.New(t, &dataplanetest.Options{APIVersion: c.api})
			var clients Clients
			endpoint := api.Endpoint()
			endpoint.Name = "pod"
			targets, err := clients.Targets([]dataplane.Endpoint{endpoint})
			require.NoError(t, err)
			start := time.Now()
			state := stateOf(t, targets, func(s reconcile.State) bool { return s.Instances[0].Hash != "" || s.Instances[0].Unfit != "" })
			e := state.Instances[0]
			if c.unfit == "" {
				require.Equal(t, "3.2", e.API)
				require.NotEmpty(t, e.HAProxy)
				require.True(t, state.Ready())
				return
			}
			require.Contains(t, e.Unfit, c.unfit)
			require.False(t, state.Ready(), "there is no other")
			require.Zero(t, api.Version()-1, "nothing is written to what does not fit")
			wait := min(5*time.Second<<(e.Failures-1), time.Minute) // from a moment between start and now
			require.GreaterOrEqual(t, wait, 5*time.Second)
			require.GreaterOrEqual(t, e.RetryAt.Sub(start), wait)
			require.LessOrEqual(t, time.Until(e.RetryAt), wait)
		})
	}
}

func configOf(t testing.TB, text string) *dataplane.Config {
	t.Helper()
	cfg, err := dataplane.NewConfig("# " + text + "\nglobal\n")
	require.NoError(t, err)
	return cfg
}

// stateOf runs a loop until its state is as wanted.
func stateOf(t *testing.T, targets []reconcile.Target, wanted func(reconcile.State) bool) reconcile.State {
	t.Helper()
	bus := eventbus.New(nil)
	heard := make(chan struct{}, 1)
	eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[any]) {
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	bus.Start()
	cfg, err := dataplane.NewConfig(fmt.Sprintf(twoSections, "web"))
	require.NoError(t, err)
	loop, err := reconcile.New(reconcile.Options{Targets: targets, Bus: bus,
		Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { return &reconcile.Rendered{Config: cfg}, nil })})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- loop.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, bus.Close(context.Background()))
	}()
	loop.Trigger("start")
	deadline := time.After(time.Minute)
	for {
		if state := loop.State(); len(state.Instances) > 0 && wanted(state) {
			return state
		}
		select {
		case <-heard:
		case <-deadline:
			require.Failf(t, "not so in time", "%+v", loop.State())
		}
	}
}

// TestFlappingLeavesNothing: endpoints that come and go leave no connection,
// whatever they were in the middle of; goleak looks for goroutines.
func TestFlappingLeavesNothing(t *testing.T) {
	r := newRotating(t, nil)
	var clients Clients
	for i := range 10 {
		targets, err := clients.Targets([]dataplane.Endpoint{r.endpoint("old")})
		require.NoError(t, err)
		if i%2 == 0 {
			stateOf(t, targets, func(s reconcile.State) bool { return s.Instances[0].Hash != "" })
		} else { // gone in mid-call
			ctx, cancel := context.WithCancel(t.Context())
			r.mu.Lock()
			r.onWrite = cancel
			r.mu.Unlock()
			_, _ = targets[0].Sync(ctx, configOf(t, fmt.Sprint(i)))
			cancel()
		}
		_, err = clients.Targets(nil)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return r.conns.Load() == 0 }, time.Minute, 5*time.Millisecond, "connections are left")
}

// TestCredentialsStayWithTheInstance: by https, a server without the right certificate
// never sees a request, and no answer sends the password on to another.
func TestCredentialsStayWithTheInstance(t *testing.T) {
	var asked, authorized atomic.Int64
	count := func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		if q.Header.Get("Authorization") != "" {
			authorized.Add(1)
		}
		w.WriteHeader(http.StatusNotFound)
	}
	thief := httptest.NewServer(http.HandlerFunc(count))
	t.Cleanup(thief.Close)
	wrong := httptest.NewUnstartedServer(http.HandlerFunc(count))
	wrong.Config.ErrorLog = log.New(io.Discard, "", 0)
	wrong.StartTLS() // nobody trusts its CA
	t.Cleanup(wrong.Close)
	redirects := 0
	known := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		redirects++
		http.Redirect(w, q, thief.URL+q.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(known.Close)
	pool := x509.NewCertPool()
	pool.AddCert(known.Certificate()) // for example.com and 127.0.0.1
	for name, c := range map[string]struct {
		url  string
		tls  *tls.Config
		want string
	}{
		"the CAs of the system":             {wrong.URL, nil, "unknown authority"},
		"the right CA, the name of another": {known.URL, &tls.Config{RootCAs: pool, ServerName: "haproxy.edge"}, "not haproxy.edge"},
		"plain http where https is wanted":  {strings.Replace(thief.URL, "http://", "https://", 1), &tls.Config{RootCAs: pool}, "server gave HTTP response"},
		"a redirect to another, by http":    {known.URL, &tls.Config{RootCAs: pool}, "307"},
	} {
		var clients Clients
		targets, err := clients.Targets([]dataplane.Endpoint{{Name: "pod", URL: c.url, Username: "u", Password: "canary", TLS: c.tls}})
		require.NoError(t, err, name)
		_, err = targets[0].Sync(t.Context(), configOf(t, "x"))
		require.ErrorContains(t, err, c.want, name)
		clients.Targets(nil)
	}
	require.NotZero(t, redirects)
	require.Zero(t, authorized.Load(), "the password was sent")
	require.Zero(t, asked.Load())
}
