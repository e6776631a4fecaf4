package observe_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// everything are pages that show the configuration, or what the memory holds.
var everything = []string{"/", "/debug/vars/", "/debug/vars/rendered", "/debug/vars/state", "/debug/vars/events", "/debug/pprof/",
	"/debug/pprof/heap", "/debug/pprof/goroutine?debug=2", "/debug/pprof/profile?seconds=31", "/debug/pprof/trace"}

// TestWhoMayAsk: every user of the host can connect to loopback, and so can HAProxy,
// by an EndpointSlice of a tenant. Without a token they get figures, and no more.
func TestWhoMayAsk(t *testing.T) {
	const token = "canary-token"
	for _, c := range []struct {
		name           string
		token          observe.Token
		host           string
		header, value  string
		pages, metrics int
	}{
		{"loopback address", "", "127.0.0.1:9090", "", "", 403, 200},
		{"loopback address, version 6", "", "[::1]:9090", "", "", 403, 200},
		{"loopback, no port", "", "[::1]", "", "", 403, 200},
		{"a name that a tenant may have routed here", "", "localhost:9090", "", "", 403, 403},
		{"a name that was made to resolve to loopback", "", "rebound.example:9090", "", "", 403, 403},
		{"a name that looks like loopback", "", "127.0.0.1.example", "", "", 403, 403},
		{"through our HAProxy", "", "127.0.0.1:9090", "X-Forwarded-For", "192.0.2.1", 403, 403},
		{"through our HAProxy, what it says of the scheme", "", "127.0.0.1", "X-Forwarded-Proto", "http", 403, 403},
		{"through another proxy", "", "127.0.0.1:9090", "Via", "1.1 proxy", 403, 403},
		{"through another proxy, by RFC 7239", "", "127.0.0.1:9090", "Forwarded", "for=192.0.2.1", 403, 403},
		{"a token that is not known here", "", "127.0.0.1:9090", "Authorization", "Bearer ", 403, 200},
		{"token", token, "10.0.0.1:9090", "Authorization", "Bearer " + token, 200, 200},
		{"token, scheme in lower case", token, "10.0.0.1", "Authorization", "bearer " + token, 200, 200},
		{"no token", token, "10.0.0.1", "", "", 401, 401},
		{"no token, loopback", token, "127.0.0.1", "", "", 401, 401},
		{"wrong token", token, "10.0.0.1", "Authorization", "Bearer " + token + "x", 401, 401},
		{"empty token", token, "10.0.0.1", "Authorization", "Bearer ", 401, 401},
		{"other scheme", token, "10.0.0.1", "Authorization", "Basic " + token, 401, 401},
		{"a browser, any user name", token, "10.0.0.1", "Authorization", basic("me", token), 200, 200},
		{"a browser, the token as user name", token, "10.0.0.1", "Authorization", basic(token, ""), 401, 401},
		{"a browser, another password", token, "10.0.0.1", "Authorization", basic("me", token+"2"), 401, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scene(t, reconcile.State{LastError: "detail"})
			s.Token = c.token
			s.Health.Check("sync", observe.ReadyToServe, func() error { return errors.New("detail") })
			ask := func(path string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.host+path, nil)
				if c.header != "" {
					r.Header.Set(c.header, c.value)
				}
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, r)
				require.NotContains(t, w.Body.String(), token)
				return w
			}
			for _, path := range everything {
				if c.pages == http.StatusOK && strings.Contains(path, "=31") {
					continue // allowed, and too long
				}
				w := ask(path)
				require.Equal(t, c.pages, w.Code, path)
				if c.pages == http.StatusUnauthorized {
					require.Contains(t, w.Header().Values("Www-Authenticate"), `Basic realm="haptic debug server"`)
				}
				if c.pages != http.StatusOK {
					require.NotContains(t, w.Body.String(), "detail", path)
				}
			}
			require.Equal(t, c.metrics, ask("/metrics").Code)
			w := ask("/readyz?verbose")
			require.Equal(t, http.StatusServiceUnavailable, w.Code, "a kubelet has no token")
			require.Equal(t, c.pages == http.StatusOK, strings.Contains(w.Body.String(), "detail"), "says why to those who may know")
		})
	}
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// Whatever a Host header says, only loopback addresses get an answer.
func FuzzHost(f *testing.F) {
	for _, h := range []string{"localhost:9090", "127.0.0.1", "[::1]:80", "::1", "127.0.0.1.example:80", "localhost.example", "[localhost]", "", ":", "[::ffff:127.0.0.1]", "::1%lo"} {
		f.Add(h)
	}
	s := &observe.Server{Metrics: observe.NewMetrics(eventbus.New(nil), observe.Subject{})}
	handler := s.Handler()
	loopback := regexp.MustCompile(`^(?i:\[*127\.\d+\.\d+\.\d+\]*|\[*[0:]*:(0*1|ffff:127\.\d+\.\d+\.\d+|ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4})(%.+)?\]*)(:.*)?$`)
	f.Fuzz(func(t *testing.T, host string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code == http.StatusOK && !loopback.MatchString(host) {
			t.Errorf("host %q was answered", host)
		}
	})
}

// TestOneProfileAtATime: a profile is one at a time, and ends with its client.
func TestOneProfileAtATime(t *testing.T) {
	s := &observe.Server{Token: "t"}
	handler := s.Handler()
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/debug/pprof/trace?seconds=30", nil)
		r.SetBasicAuth("me", "t")
		handler.ServeHTTP(&firstWrite{ResponseRecorder: httptest.NewRecorder(), began: began}, r)
	}()
	<-began
	for _, path := range []string{"/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/goroutine?debug=2", "/debug/pprof/trace"} {
		w := get(t, handler, "http://127.0.0.1"+path, "Bearer t")
		require.Equal(t, http.StatusTooManyRequests, w.Code, path)
		require.Contains(t, w.Body.String(), "another profile is being taken")
	}
	require.Equal(t, http.StatusOK, get(t, handler, "http://127.0.0.1/debug/pprof/", "Bearer t").Code, "the list of profiles costs nothing")
	cancel()
	<-ended
	require.Equal(t, http.StatusOK, get(t, handler, "http://127.0.0.1/debug/pprof/heap", "Bearer t").Code)
}

// firstWrite says when the first byte is written.
type firstWrite struct {
	*httptest.ResponseRecorder
	began chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.began != nil {
		close(w.began)
		w.began = nil
	}
	return w.ResponseRecorder.Write(p)
}

// overSocket asks by a unix socket.
func overSocket(t *testing.T, path, page string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	resp, err := client.Get("http://localhost" + page)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// TestSocket: whoever can connect to the socket may see everything, and that is this
// account alone. Handler stays closed beside it.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "debug.sock")
	for range 2 { // the second time in place of a socket that nobody listens on
		s := scene(t, goodDay())
		s.Addr = "unix:" + path
		at, stop := serve(t, s)
		require.Equal(t, "http://"+path, at)
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, os.ModeSocket|0o600, info.Mode())
		for _, page := range everything {
			if status, body := overSocket(t, path, page); !strings.Contains(page, "=31") {
				require.Equal(t, http.StatusOK, status, page+body)
			}
		}
		require.Equal(t, http.StatusForbidden, get(t, s.Handler(), "http://127.0.0.1/", "").Code)
		err = (&observe.Server{Addr: "unix:" + path}).Run(t.Context())
		require.ErrorContains(t, err, "another process listens there")
		require.NoError(t, stop())
		_, err = os.Lstat(path)
		require.ErrorIs(t, err, os.ErrNotExist, "the socket stays")

		fd, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		require.NoError(t, err)
		fd.SetUnlinkOnClose(false) // as a process that was killed leaves it
		require.NoError(t, fd.Close())
	}
}

// TestSocketIsNotForced: what stands where the socket is to be stays as it is.
func TestSocketIsNotForced(t *testing.T) {
	dir := t.TempDir()
	file, link, dangling := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, os.Symlink(filepath.Join(dir, "made"), dangling))
	for path, want := range map[string]string{
		file: "is no socket", link: "is no socket", dangling: "is no socket", dir: "is no socket",
		"debug.sock": "want an absolute path", "@debug": "want an absolute path", "": "want an absolute path",
		filepath.Join(dir, strings.Repeat("x", 108)): "at most 107 bytes",
	} {
		require.ErrorContains(t, (&observe.Server{Addr: "unix:" + path, Logger: slog.New(slog.DiscardHandler)}).Run(t.Context()), want)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
	require.NoFileExists(t, filepath.Join(dir, "made"))
}

func TestReadToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	_, err := observe.ReadToken(file)
	require.ErrorIs(t, err, os.ErrNotExist)
	for text, ok := range map[string]bool{"": false, "\n": false, "canary-2345": false, "canary-2345 67890123": false, " canary-234567890\n": true} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		token, err := observe.ReadToken(file)
		require.Equal(t, ok, err == nil, text)
		require.Equal(t, ok, string(token) == "canary-234567890")
		if err != nil {
			require.NotContains(t, err.Error(), "canary")
		}
	}
}
