package observe_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

func get(t *testing.T, h http.Handler, url, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// ask asks with the token of the server, which it gives one that has none.
func ask(t *testing.T, s *observe.Server, path string) *httptest.ResponseRecorder {
	t.Helper()
	s.Token = cmp.Or(s.Token, "t")
	return get(t, s.Handler(), "http://127.0.0.1"+path, "Bearer "+string(s.Token))
}

func TestHandler(t *testing.T) {
	var health observe.Health
	health.Check("watch", observe.ReadyToServe, func() error { return errors.New("Ingress is stalled") })
	s := &observe.Server{
		Metrics: observe.NewMetrics(eventbus.New(nil), observe.Subject{}),
		Health:  &health,
	}
	s.Register("state", func() any { return reconcile.State{Validated: "abc"} })
	s.Register("config", func() any { return "replaced" })
	s.Register("config", func() any { return map[string]string{"path": "a<b>&c"} })
	s.Register("broken", func() any { panic("no state") })
	s.Register("channel", func() any { return make(chan int) })
	for _, c := range []struct {
		path   string
		status int
		body   string // part of it
	}{
		{"/metrics", 200, "haptic_reconciliation_total 0"},
		{"/debug/vars/", 200, `[
  "broken",
  "channel",
  "config",
  "state"
]`},
		{"/debug/vars/state", 200, `"validated": "abc"`},
		{"/debug/vars/config", 200, `"a<b>&c"`},
		{"/debug/vars/missing", 404, `"error": "no variable missing"`},
		{"/debug/vars/broken", 500, `"error": "panic: no state"`},
		{"/debug/vars/channel", 500, `unsupported type`},
		{"/debug/vars/a/b", 404, ""},
		{"/debug/pprof/", 200, "goroutine"},
		{"/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{"/debug/pprof/cmdline", 404, ""},
		{"/debug/pprof/profile?seconds=31", 400, "at most 30"},
		{"/debug/pprof/trace?seconds=1e9", 400, "at most 30"},
		{"/debug/pprof/trace?seconds=NaN", 400, "at most 30"},
		{"/debug/pprof/heap?seconds=Inf", 400, "at most 30"},
		{"/debug/pprof/goroutine?seconds=-1", 400, "a number above 0"},
		{"/debug/pprof/profile?seconds=x", 400, "a number above 0"},
		{"/healthz", 200, "ok"},
		{"/readyz", 503, "watch: Ingress is stalled"},
		{"/nothing", 404, ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			w := ask(t, s, c.path)
			require.Equal(t, c.status, w.Code, w.Body)
			require.Contains(t, w.Body.String(), c.body)
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			if strings.HasPrefix(c.path, "/debug/vars/") && c.body != "" {
				require.Equal(t, "application/json", w.Header().Get("Content-Type"))
				require.True(t, json.Valid(w.Body.Bytes()))
			}
		})
	}
}

func TestEmptyServer(t *testing.T) {
	var s observe.Server
	require.Equal(t, 200, get(t, s.Handler(), "http://localhost/readyz", "").Code)
	require.Equal(t, "[]\n", ask(t, &s, "/debug/vars/").Body.String())
	require.Equal(t, 404, ask(t, &s, "/metrics").Code)
}

func TestReadOnly(t *testing.T) {
	s := &observe.Server{Token: "t"}
	s.Register("state", func() any { return 1 })
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/debug/vars/state", nil)
		r.Header.Set("Authorization", "Bearer t")
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
	}
}

func TestRefusesToBeOpen(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "255.255.255.255:0"} {
		err := (&observe.Server{Addr: addr}).Run(t.Context())
		require.ErrorIs(t, err, observe.ErrNoToken, addr)
		require.ErrorContains(t, err, addr)
	}
	// With a token it goes on to listen, which fails here: the address, for
	// documentation, is nobody's.
	err := (&observe.Server{Addr: "192.0.2.1:0", Token: "t"}).Run(t.Context())
	require.ErrorContains(t, err, "cannot assign requested address")

	for addr, want := range map[string]string{"127.0.0.1": "missing port", "127.0.0.1:nothing": "unknown port"} {
		require.ErrorContains(t, (&observe.Server{Addr: addr}).Run(t.Context()), `Server.Addr "`+addr+`": want host:port, such as 127.0.0.1:6060, or unix:/path: `)
		require.ErrorContains(t, (&observe.Server{Addr: addr}).Run(t.Context()), want)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	err = (&observe.Server{Addr: ln.Addr().String()}).Run(t.Context())
	require.ErrorContains(t, err, "address already in use")
}

// serve runs s until stop is called, which returns what Run did.
func serve(t *testing.T, s *observe.Server) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan net.Addr, 1)
	s.OnListen = func(a net.Addr) { listening <- a }
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case a := <-listening:
		return "http://" + a.String(), func() error { cancel(); return <-ended }
	case err := <-ended:
		cancel()
		require.NoError(t, err)
		return "", nil
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *observe.Server
	}{
		{"loopback", &observe.Server{Addr: "localhost:0"}},
		{"with a token", &observe.Server{Addr: "127.0.0.1:0", Token: "t"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, stop := serve(t, c.s)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			resp, err := client.Get(url + "/healthz") // kept alive: an idle connection must not delay the stop
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, "ok\n", string(body))
			require.NoError(t, stop())
			_, err = client.Get(url + "/healthz")
			require.Error(t, err, "still listens")
		})
	}
}

// A profile of half a minute and a client that says nothing must not hold up
// the stop; TestMain checks that their goroutines have ended.
func TestStopsWithRequestsUnderWay(t *testing.T) {
	s := &observe.Server{Addr: "127.0.0.1:0", Token: "t", Logger: slog.New(slog.DiscardHandler)}
	asked := make(chan struct{})
	s.Register("slow", func() any { close(asked); return nil })
	url, stop := serve(t, s)
	silent, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer silent.Close()
	url = strings.Replace(url, "http://", "http://me:t@", 1)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	failed := make(chan error, 1)
	go func() {
		resp, err := client.Get(url + "/debug/pprof/trace?seconds=30")
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	resp, err := client.Get(url + "/debug/vars/slow")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	<-asked
	require.NoError(t, stop())
	<-failed // it ends; whether in time to be whole does not matter
}

// A registered function that hangs cannot be ended; Run returns all the same.
func TestStopsWhenAVariableHangs(t *testing.T) {
	var log bytes.Buffer
	s := &observe.Server{Addr: "127.0.0.1:0", Token: "t", Logger: logTo(&log)}
	asked, release := make(chan struct{}), make(chan struct{})
	s.Register("hangs", func() any { close(asked); <-release; return nil })
	url, stop := serve(t, s)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	failed := make(chan error, 1)
	go func() {
		resp, err := client.Get(strings.Replace(url, "http://", "http://me:t@", 1) + "/debug/vars/hangs")
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	<-asked
	require.NoError(t, stop())
	close(release)
	require.Error(t, <-failed)
	require.Contains(t, log.String(), "still under way")
}

func TestTokenNeverPrints(t *testing.T) {
	s := &observe.Server{Addr: "127.0.0.1:0", Token: "canary"}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb, s.Token, struct{ T observe.Token }{s.Token})
	}
	logTo(&out).Info("token", "token", s.Token, "in", map[string]observe.Token{"t": s.Token})
	require.NoError(t, json.NewEncoder(&out).Encode(map[string]any{"token": s.Token}))
	require.NotContains(t, out.String(), "canary")
	require.NotContains(t, out.String(), fmt.Sprintf("%x", "canary"))
	require.Contains(t, out.String(), "(secret)")
	require.Equal(t, "", fmt.Sprint(observe.Token("")))
}

func TestReady(t *testing.T) {
	for _, c := range []struct {
		state reconcile.State
		want  string
	}{
		{reconcile.State{}, "no valid configuration yet"},
		{reconcile.State{LastError: "render: boom"}, "no valid configuration yet: render: boom"},
		{reconcile.State{Validated: "x"}, "no HAProxy was reached yet: the loop has no targets"},
		{reconcile.State{Validated: "x", Reached: true}, ""}, // all are gone for now
		{reconcile.State{Validated: "x", Instances: []reconcile.InstanceState{{Name: "a"}, {Name: "b", Error: "401"}}}, "instance b has no configuration yet: 401"},
		{reconcile.State{Validated: "x", Leading: true, Instances: []reconcile.InstanceState{{Name: "a", Hash: "x", Unfit: "too old"}}}, "instance a has no configuration yet: too old"},
		{reconcile.State{Validated: "x", Instances: []reconcile.InstanceState{{Name: "a"}}}, ""}, // does not lead
		{reconcile.State{Validated: "x", Leading: true, Instances: []reconcile.InstanceState{{Name: "a"}, {Name: "b", Error: "no route"}, {Name: "c", Hash: "x"}}},
			"instance a has no configuration yet: deployment under way\ninstance b has no configuration yet: no route"},
	} {
		o := newObserver(t, eventbus.New(nil), observe.Subject{Loop: &fixedLoop{state: c.state}}, nil)
		if c.want == "" {
			require.NoError(t, o.Health.Ready())
		} else {
			require.EqualError(t, o.Health.Ready(), "configuration: "+c.want)
		}
	}
	none := func() settings.State { return settings.State{Error: "s.yaml:1:1: no"} }
	o := newObserver(t, eventbus.New(nil), observe.Subject{Loop: &fixedLoop{}, Settings: none}, nil)
	require.ErrorContains(t, o.Health.Ready(), "configuration: no valid configuration yet: no settings are in use: see settings")
}
