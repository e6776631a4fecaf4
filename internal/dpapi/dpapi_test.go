package dpapi_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.HandlerFunc) *dpapi.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return client(t, s.URL, dpapi.Options{Username: "u", Password: "p"})
}

func client(t *testing.T, url string, o dpapi.Options) *dpapi.Client {
	t.Helper()
	c, err := dpapi.New(url, o)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdle)
	return c
}

func TestNew(t *testing.T) {
	for raw, want := range map[string]string{
		"http://192.0.2.1:5555":        "http://192.0.2.1:5555/v3",
		"http://192.0.2.1:5555/":       "http://192.0.2.1:5555/v3",
		"https://host/v3":              "https://host/v3",
		"https://host/behind/proxy/v3": "https://host/behind/proxy/v3",
		"unix:///run/api.sock":         "http://unix/v3",
		"":                             "",
		"192.0.2.1:5555":               "",
		"ftp://host":                   "",
		"http://":                      "",
		"unix://run/api.sock":          "",
		"http://a:b@host":              "",
		"http://host\x7f":              "",
	} {
		c, err := dpapi.New(raw, dpapi.Options{})
		if (err == nil) != (want != "") || err == nil && c.String() != want {
			t.Errorf("%q: %v %v, want %q", raw, c, err, want)
		}
	}
}

func TestErrorBodies(t *testing.T) {
	for body, want := range map[string]string{
		`{"code":400,"message":"no\nluck"}`:                 "no\nluck",
		`"{\"code\":409,\"message\":\"version mismatch\"}"`: "version mismatch",
		"plain text\n":            "plain text",
		"":                        "418 I'm a teapot",
		"[1,2]":                   "[1,2]",
		strings.Repeat("x", 9000): strings.Repeat("x", 4096) + " ...",
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(body))
		})
		_, err := c.Info(t.Context())
		var s *dpapi.StatusError
		if !errors.As(err, &s) || s.Message != want || s.Status != 418 || dpapi.Status(err) != 418 {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestRequests(t *testing.T) {
	var got string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		got = r.Method + " " + r.URL.EscapedPath() + "?" + r.URL.RawQuery + " " + user + ":" + password + " " + r.Header.Get("X-Runtime-Actions")
		_, _ = w.Write([]byte("{}"))
	})
	ctx := t.Context()
	for want, do := range map[string]func() error{
		"PUT /v3/services/haproxy/runtime/maps/m.map/entries/%2Fa%3Fb%2F..? u:p ": func() error {
			return c.SetMapEntry(ctx, "m.map", "/a?b/..", "v")
		},
		"POST /v3/services/haproxy/configuration/raw?skip_reload=true&version=3 u:p SetServerState b s maint;SetServerWeight b s 1": func() error {
			_, err := c.Push(ctx, "x\n", 3, dpapi.SkipReload, "SetServerState b s maint", "SetServerWeight b s 1")
			return err
		},
		"PUT /v3/services/haproxy/storage/ssl_certificates/a.pem?skip_reload=true u:p ": func() error {
			return c.ReplaceFile(ctx, dpapi.Certificates, "a.pem", []byte("x"))
		},
		"DELETE /v3/services/haproxy/storage/maps/a.map?skip_reload=true u:p ": func() error { return c.DeleteFile(ctx, dpapi.Maps, "a.map") },
		"POST /v3/services/haproxy/runtime/backends/b/servers? u:p ": func() error {
			return c.AddServer(ctx, "b", map[string]any{"name": "s", "address": "192.0.2.1", "port": 80})
		},
		"PUT /v3/services/haproxy/runtime/backends/b/servers/s? u:p ":    func() error { return c.SetServer(ctx, "b", "s", map[string]any{"admin_state": "ready"}) },
		"DELETE /v3/services/haproxy/runtime/backends/b/servers/s? u:p ": func() error { return c.DeleteServer(ctx, "b", "s") },
		"DELETE /v3/services/haproxy/runtime/ssl_crt_lists/entries?cert_file=%2Fs%2Fa.pem&name=%2Fg%2Fl.txt u:p ": func() error {
			return c.DeleteCrtListEntry(ctx, "/g/l.txt", "/s/a.pem")
		},
		"POST /v3/services/haproxy/runtime/ssl_crt_lists/entries?name=%2Fg%2Fl.txt u:p ": func() error {
			return c.AddCrtListEntry(ctx, "/g/l.txt", dpapi.CrtListEntry{File: "/s/a.pem", Filters: []string{"a.test"}})
		},
		"PUT /v3/services/haproxy/runtime/ssl_ca_files/%2Fg%2Fca.pem? u:p ": func() error { return c.SetCAFile(ctx, "/g/ca.pem", []byte("x")) },
		"DELETE /v3/services/haproxy/runtime/ssl_certs/%2Fs%2Fa.pem? u:p ":  func() error { return c.ForgetCertificate(ctx, "/s/a.pem") },
		"POST /v3/services/haproxy/runtime/acls/3/entries? u:p ":            func() error { return c.AddACLEntry(ctx, "3", "192.0.2.0/24") },
		"DELETE /v3/services/haproxy/runtime/acls/3/entries/0xab? u:p ":     func() error { return c.DeleteACLEntry(ctx, "3", "0xab") },
		"POST /v3/services/haproxy/storage/ssl_certificates? u:p ":          func() error { _, err := c.LoadCertificate(ctx, "a.pem", []byte("x")); return err },
	} {
		if err := do(); err != nil || got != want {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
		}
	}
}

// What HAProxy says beside what was asked for does not come through.
func TestRuntimeAnswersAreCleaned(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`[{"id":"Unknown","value":"command,"},{"id":"0x5f","value":"192.0.2.1"}]`))
	})
	entries, err := c.ACLEntries(t.Context(), "0")
	if err != nil || len(entries) != 1 || entries[0].Value != "192.0.2.1" {
		t.Errorf("%v %v", entries, err)
	}
}

func TestCutAnswerIsANetworkError(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
		panic(http.ErrAbortHandler)
	})
	_, err := c.Info(t.Context())
	var n net.Error
	var u *url.Error
	if !errors.As(err, &n) || !errors.As(err, &u) {
		t.Errorf("got %#v", err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	asked := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	if _, err := c.Info(t.Context()); dpapi.Status(err) != 302 || asked != 1 {
		t.Errorf("%v after %d requests", err, asked)
	}
}

func TestTLSAndUnixSocket(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"api":{"version":"v3.1.2"}}`)) })
	secure := httptest.NewTLSServer(answer)
	defer secure.Close()
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	if _, err := client(t, secure.URL, dpapi.Options{}).Info(t.Context()); err == nil {
		t.Error("trusted a certificate of nobody")
	}
	info, err := client(t, secure.URL, dpapi.Options{TLS: &tls.Config{RootCAs: pool}}).Info(t.Context())
	if err != nil || info.APIVersion != "v3.1.2" {
		t.Errorf("%+v %v", info, err)
	}

	dir, err := os.MkdirTemp("", "dpapi") // short enough for a socket
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	require.NoError(t, err)
	local := &httptest.Server{Listener: l, Config: &http.Server{Handler: answer}} //nolint:gosec // a test
	local.Start()
	defer local.Close()
	if _, err := client(t, "unix://"+path, dpapi.Options{}).Info(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSplitText(t *testing.T) {
	for _, c := range []struct {
		in, out string
		version int64
	}{
		{"# _md5hash=ab\n# _version=12\n\nglobal\n", "\nglobal\n", 12},
		{"# mine\n# _version=3\nglobal\n  # _version=4\n# _version=5\n", "# mine\nglobal\n  # _version=4\n# _version=5\n", 3},
		{"global\n", "global\n", 0},
		{"# _version=x\n", "", 0},
		{"", "", 0},
	} {
		if out, version := dpapi.SplitText(c.in); out != c.out || version != c.version {
			t.Errorf("%q: %q %d", c.in, out, version)
		}
	}
}

func FuzzSplitText(f *testing.F) {
	f.Add("# _md5hash=ab\n# _version=12\n\nglobal\n")
	f.Add("# c\n\n# _cluster_version=1\nx")
	f.Fuzz(func(t *testing.T, text string) {
		once, _ := dpapi.SplitText(text)
		if again, version := dpapi.SplitText(once); strings.TrimRight(again, "\n") != strings.TrimRight(once, "\n") || version != 0 {
			t.Errorf("%q -> %q -> %q %d", text, once, again, version)
		}
	})
}

func FuzzSafeWord(f *testing.F) {
	for _, s := range []string{"a", "/path?x=1", "a b", "a;b", "#1", "@2", "<<", "ü", `a\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if dpapi.SafeWord(s) && (s == "" || s == ".." || strings.ContainsAny(s, " \t\r\n\v\f;\\\"'")) {
			t.Errorf("%q is not one word", s)
		}
	})
}
