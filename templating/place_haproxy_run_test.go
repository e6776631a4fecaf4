package templating_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// haproxyOr skips the test where there is no HAProxy, but not in CI. HAPROXY_BIN
// names another one than that on the PATH.
func haproxyOr(t *testing.T) string {
	t.Helper()
	haproxy := "haproxy"
	if other := os.Getenv("HAPROXY_BIN"); other != "" {
		haproxy = other
	}
	if _, err := exec.LookPath(haproxy); err != nil {
		require.Empty(t, os.Getenv("CI"))
		t.Skip("no haproxy on the PATH")
	}
	return haproxy
}

// startHAProxy runs HAProxy until the test ends, and returns once it answers on
// its socket "stats" in dir.
func startHAProxy(t *testing.T, dir, cfg string) {
	t.Helper()
	haproxy := haproxyOr(t)
	file := filepath.Join(dir, "haproxy.cfg")
	writeFile(t, dir, "haproxy.cfg", cfg)
	var out bytes.Buffer
	cmd := exec.Command(haproxy, "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		ended <- <-ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if isServing(ctx, filepath.Join(dir, "stats")) {
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%v\n%s", err, quoteLines(out.String(), cfg))
		case <-ctx.Done():
			t.Fatal("HAProxy does not answer")
		case <-again.C:
		}
	}
}

// isServing reports whether HAProxy says something on its socket: it listens there
// before it does so on others, but answers once it does on all.
func isServing(ctx context.Context, socket string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, "show version\n"); err != nil {
		return false
	}
	said, err := io.ReadAll(conn)
	return err == nil && len(said) > 0
}

// quoteLines puts the lines of the configuration behind what HAProxy says of them.
func quoteLines(said, cfg string) string {
	lines := strings.Split(cfg, "\n")
	return regexp.MustCompile(`haproxy\.cfg:(\d+)\][^\n]*`).ReplaceAllStringFunc(said, func(alert string) string {
		number, _, _ := strings.Cut(strings.TrimPrefix(alert, "haproxy.cfg:"), "]")
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= len(lines) {
			alert += "\n" + lines[n-1]
		}
		return alert
	})
}

// serveEcho is a server that says what it got: the headers of the request, and
// its path.
func serveEcho(t *testing.T, socket string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Path", r.URL.Path)
		w.Header().Set("X-Method", r.Method)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

func readBody(response *http.Response) (string, error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	return string(body), err
}

// rowsAccepted are rows of the table of directives whose values never come back
// from HAProxy: it has to accept what they become.
const rowsAccepted = `global
  log 192.0.2.1:514 len 1024 format rfc5424 local0
  setenv A "{{ x }}"
defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 5s
  log-format "a {{ x }} %ci"
  log-format-sd "a {{ x }}"
  error-log-format "{{ x }}"
  unique-id-format "{{ x }}%rt"
  unique-id-header X-Id
frontend f
  bind unix@{{ socket }}
  description "{{ x }}"
  declare capture request len 10
  capture request header X-A len 10
  http-request capture str({{ x }}) len 10
  http-request redirect location "https://a.test/{{ x }}" code 301 if { path {{ x }} }
  http-request redirect prefix "/{{ x }}" drop-query if { path -- {{ x }} }
  http-request return status 200 content-type text/plain hdr X-B "{{ x }}" lf-string "{{ x }}" if { path -m end -- {{ x }} }
  http-request set-log-level silent if { hdr(x) -m sub -- {{ x }} }
  http-request auth realm "{{ x }}" if FALSE
  http-response set-header X-C "{{ x }}"
  http-response replace-header X-C ^{{ x }}$ "{{ x }}"
  http-after-response add-header X-D "{{ x }}"
  tcp-request content set-var(txn.t) str({{ x }})
  use_backend b-{{ raw("%[path]") }} if { path -- {{ x }} }
  redirect location "/{{ x }}" if { path -- {{ x }} }
  default_backend b
backend b
  option httpchk
  http-check send meth GET uri /a hdr X-E "{{ x }}" body "{{ x }}"
  http-check expect string "{{ x }}"
  http-check expect hdr name -m beg "{{ x }}" value -m reg "{{ x }}"
  http-check expect rstring ^{{ x }}
  stick-table type string len 100 size 1k expire 1m
  stick on str({{ x }})
  http-send-name-header X-F
  errorfile 503 {{ raw(errorfile) }}
  server s 192.0.2.1:80 check inter 2s weight 7 cookie c
backend tcp
  mode tcp
  tcp-check connect port 80 comment "{{ x }}"
  tcp-check send "{{ x }}" comment "{{ x }}"
  tcp-check expect rstring {{ x }}
`

// TestRowsAccepted has HAProxy check a configuration with a hostile value in
// every row.
func TestRowsAccepted(t *testing.T) {
	haproxy := haproxyOr(t)
	dir := t.TempDir()
	errorfile := filepath.Join(dir, "503.http")
	require.NoError(t, os.WriteFile(errorfile, []byte("HTTP/1.0 503 No\r\n\r\n"), 0o600))
	e := compile(t, files("haproxy.cfg", rowsAccepted),
		&templating.Options{Vars: map[string]any{"x": "", "socket": "", "errorfile": ""}})
	for _, x := range []string{"plain", "100% sure", "%[env(HOME)]", "a,b", "f(x)", `back\slash \n \x41`, `say "hi"`, "a#b", "$HOME ${HOME}", "%%", "%{+Q}o", "[a]{2}^$|(f)?*+", "ü", ")", `a"),str(b`, "if", "unless"} {
		cfg, err := e.Render(t.Context(), "haproxy.cfg", map[string]any{"x": x, "socket": filepath.Join(dir, "s"), "errorfile": errorfile})
		if err != nil {
			t.Errorf("%q: %v", x, err)
			continue
		}
		file := filepath.Join(dir, "haproxy.cfg")
		require.NoError(t, os.WriteFile(file, []byte(cfg), 0o600))
		if out, err := exec.Command(haproxy, "-c", "-f", file).CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", x, err, out)
		}
	}
}
