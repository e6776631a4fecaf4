package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logged waits for the line of the access log that holds all parts.
func (d *demo) logged(parts ...string) (line string) {
	d.tb.Helper()
	d.until(func() bool {
		for l := range strings.Lines(d.stdout.String()) {
			has := strings.HasSuffix(l, "\n")
			for _, p := range parts {
				has = has && strings.Contains(l, p)
			}
			if has {
				line = l
				return true
			}
		}
		return false
	})
	return line
}

// TestAccessLog: each request is a line with its Ingress and Service, also where a spare
// backend serves it, and no client forges one.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-access-log", "http")
	require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cart/1?q=1"))
	require.Regexp(t, `^127\.0\.0\.1:\d+ \[\S+\] http demo_shop-cart_80/s1 \d+/\d+/\d+/\d+/\d+ 200 \d+ - - ---- \S+ \S+ \{shop\.demo\.test\} "GET /cart/1\?q=1 HTTP/1\.1" demo/shop demo/shop-cart:80\n$`, d.logged("GET /cart/1"))
	_, _ = d.get("https://"+d.https+"/tls", "shop.demo.test")
	require.Regexp(t, ` http~ demo_shop-web_80/s\d .* demo/shop demo/shop-web:80\n$`, d.logged("GET /tls"))
	_, _ = d.get("http://"+d.http+"/none", "nobodys.test")
	require.Regexp(t, ` 404 .*"GET /none HTTP/1\.1" - -\n$`, d.logged("GET /none"))

	d.edit("wiki.yaml", func(string) string {
		blog, err := os.ReadFile("demo/blog.yaml")
		require.NoError(t, err)
		return strings.NewReplacer("blog", "wiki", "127.0.0.14", "127.0.0.25", "18080", d.first()).Replace(string(blog))
	})
	d.until(func() bool { return d.answers("wiki.demo.test", "/post") == "127.0.0.25:18080" })
	_, _ = d.get("http://"+d.http+"/posts/named", "wiki.demo.test") // all maps are told by now or soon
	d.until(func() bool {
		_, _ = d.get("http://"+d.http+"/posts/named", "wiki.demo.test")
		return strings.Contains(d.stdout.String(), `"GET /posts/named HTTP/1.1" demo/wiki demo/wiki:80`)
	})
	require.Contains(t, d.logged("GET /posts/named", "demo/wiki:80"), " haptic-spare-")
	require.NotContains(t, d.stdout.String(), "one reload")

	req, err := http.NewRequest(http.MethodGet, "http://"+d.http+"/forged%0a1.2.3.4:5%20\"x\"", nil)
	require.NoError(t, err)
	req.Host, req.Header = "shop.demo.test", http.Header{"User-Agent": {"a\tb}"}, "X-Ingress": {"demo/other"}}
	resp, err := d.client.Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	require.Regexp(t, `"GET /forged\S* HTTP/1\.1" demo/shop demo/shop-web:80\n$`, d.logged("GET /forged"))

	d.stop()
	require.NotContains(t, d.stdout.String(), "Proxy http stopped", "it is a matter of HAProxy alone")
}

// TestAccessLogOfOptions: a path that is a pattern, and a canary, have their own names.
func TestAccessLogOfOptions(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-access-log", "http")
	d.edit("pattern.yaml", func(string) string {
		s := strings.Replace(site("pattern", "pattern.test", d.first(), "127.0.0.22"), "namespace: evil}\nspec:\n  ing", "namespace: evil, annotations: {nginx.ingress.kubernetes.io/use-regex: \"true\"}}\nspec:\n  ing", 1)
		return strings.Replace(s, "path: /, pathType: Prefix", "path: \"/[a-c]+/x\", pathType: ImplementationSpecific", 1)
	})
	d.until(func() bool { return d.answers("pattern.test", "/abc/x") == "127.0.0.22:18080" })
	d.until(func() bool {
		_, _ = d.get("http://"+d.http+"/cab/x", "pattern.test")
		return strings.Contains(d.stdout.String(), `"GET /cab/x HTTP/1.1" evil/pattern evil/pattern:80`)
	})
	d.edit("main.yaml", func(string) string { return site("main", "main.test", d.first(), "127.0.0.23") })
	d.edit("canary.yaml", func(string) string {
		return strings.Replace(site("canary", "main.test", d.first(), "127.0.0.24"), "namespace: evil}\nspec:\n  ing", "namespace: evil, annotations: {nginx.ingress.kubernetes.io/canary: \"true\", nginx.ingress.kubernetes.io/canary-by-header: x-canary}}\nspec:\n  ing", 1)
	})
	ask := func(value string) {
		req, err := http.NewRequest(http.MethodGet, "http://"+d.http+"/to-"+value, nil)
		require.NoError(t, err)
		req.Host, req.Header = "main.test", http.Header{"X-Canary": {value}}
		if resp, err := d.client.Do(req); err == nil {
			resp.Body.Close()
		}
	}
	for value, names := range map[string]string{"always": "evil/canary evil/canary:80", "never": "evil/main evil/main:80"} {
		d.until(func() bool {
			ask(value)
			return strings.Contains(d.stdout.String(), `"GET /to-`+value+` HTTP/1.1" `+names)
		})
	}
}

// TestAccessLogJSON: each line is an object, whatever a client sends, also of a connection
// that comes to no request, and where HAProxy reloads or stops.
func TestAccessLogJSON(t *testing.T) {
	t.Parallel()
	host, port := accept(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	at := freeAddress(t)
	_, number, _ := net.SplitHostPort(at)
	d := startDemo(t, "-access-log", "json", "-log-format", "json", "-tcp-services", "edge/tcp")
	begin := len(d.stdout.String())
	_, _ = d.get("http://"+d.http+`/cart/%22\`, `shop.demo.test`)
	d.logged(`/cart\/%22`) // HAProxy's threads log in no order
	_, _ = d.get("http://"+d.http+"/none", "a\"\\,\"status\":1,b\xff")
	d.logged("/none")
	type line struct {
		Time, Client, Frontend, Backend, Server, Ingress, Service, Method, Host, URI, Version, Error, End string
		Status                                                                                            int
		Bytes, Ms_total                                                                                   *int
	}
	lines := func() (all []line) {
		for text := range strings.Lines(d.stdout.String()[begin:]) {
			var l line
			require.NoError(t, json.Unmarshal([]byte(text), &l), "%s", text)
			require.Equal(t, "127.0.0.1", l.Client, "%s", text)
			all = append(all, l)
		}
		return all
	}
	got := lines()
	require.Len(t, got, 2)
	require.Equal(t, "demo/shop", got[0].Ingress)
	require.Equal(t, "demo/shop-cart:80", got[0].Service)
	require.Equal(t, "GET", got[0].Method)
	require.True(t, strings.HasPrefix(got[0].URI, "/cart/%22"), got[0].URI)
	require.Equal(t, 200, got[0].Status)
	require.NotEqual(t, 1, got[1].Status, "%+v", got[1])
	require.NotNil(t, got[0].Ms_total)

	_, err := tls.Dial("tcp", d.https, &tls.Config{InsecureSkipVerify: true, ServerName: "nobodys.test"})
	require.Error(t, err)
	require.Contains(t, d.logged("handshake"), `"frontend":"http~"`)
	answer, err := echo(d.http, "GET /\x01 HTTP/1.1\r\n\r\n")
	require.NoError(t, err)
	require.Contains(t, answer, " 400 ")
	d.logged(`"status":400`)

	d.edit("echo.yaml", func(string) string { return site("echo", "echo.test", port, host) })
	d.edit("tcp.yaml", func(string) string { return tcpMap + fmt.Sprintf("  %q: evil/echo:80\n", number) })
	d.until(func() bool { got, err := echo(at, "hello\n"); return err == nil && got == "hello\n" })
	d.logged(`"frontend":"tcp-`+number, `"bytes":6,`)
	d.until(func() bool { return strings.Contains(d.stderr.String(), "one reload") })
	d.stop()
	require.GreaterOrEqual(t, len(lines()), 5)
}

// TestAccessLogBehindAProxy: the address that a proxy says a request comes from is in the
// log, and not what others say.
func TestAccessLogBehindAProxy(t *testing.T) {
	t.Parallel()
	for format, want := range map[string][2]string{"http": {`{shop.demo.test|198.51.100.9, 198.51.100.8} "GET`, `{shop.demo.test|} "GET`}, "json": {`"forwarded_for":"198.51.100.9, 198.51.100.8",`, `"forwarded_for":"-",`}} {
		d := startDemo(t, "-access-log", format, "-trust-proxy", "127.0.0.9/32")
		for i, from := range []string{"127.0.0.9", "127.0.0.1"} {
			_, err := d.askFrom(from, "GET /x HTTP/1.1\r\nHost: shop.demo.test\r\nX-Forwarded-For: 198.51.100.9, 198.51.100.8\r\n\r\n", "shop.demo.test")
			require.NoError(t, err)
			require.Contains(t, d.logged("/x", from), want[i])
		}
	}
}

// BenchmarkAccessLog measures requests that come as fast as they can over eight connections,
// and what one costs HAProxy, which hardly depends on what else the machine does:
//
//	go test -run '^$' -bench AccessLog -benchtime 20000x -count 3 ./examples/controller
func BenchmarkAccessLog(b *testing.B) {
	for _, format := range []string{"off", "http", "json"} {
		b.Run(format, func(b *testing.B) {
			dir, err := os.MkdirTemp("", "haptic") // HAProxy runs under an account of its own
			require.NoError(b, err)
			b.Cleanup(func() { os.RemoveAll(dir) })
			require.NoError(b, os.Chmod(dir, 0o711))
			state := filepath.Join(dir, "s")
			d := startDemo(b, "-access-log", format, "-local", state)
			info, err := runtimeCommand(filepath.Join(state, "run", "haproxy.sock"), "show info\n")
			require.NoError(b, err)
			pid := regexp.MustCompile(`(?m)^Pid: (\d+)`).FindStringSubmatch(info)
			require.Len(b, pid, 2, "%s", info)
			client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
			defer client.CloseIdleConnections()
			ask := func() {
				req, err := http.NewRequest(http.MethodGet, "http://"+d.http+"/cart/1", nil)
				if err == nil {
					req.Host = "shop.demo.test"
					var resp *http.Response
					if resp, err = client.Do(req); err == nil {
						_, err = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				}
				if err != nil {
					b.Error(err)
				}
			}
			ask()
			before := cpuTime(b, pid[1])
			b.ResetTimer()
			b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					ask()
				}
			})
			b.StopTimer()
			b.ReportMetric(float64((cpuTime(b, pid[1])-before).Nanoseconds())/1000/float64(b.N), "haproxy-µs/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// runtimeCommand asks HAProxy on one of its sockets.
func runtimeCommand(socket, command string) (string, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err = io.WriteString(conn, command); err == nil {
		err = conn.(*net.UnixConn).CloseWrite()
	}
	answer, e := io.ReadAll(conn)
	return string(answer), errors.Join(err, e)
}

// cpuTime is what all threads of a process have used.
func cpuTime(tb testing.TB, pid string) (used time.Duration) {
	threads, err := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
	require.NoError(tb, err)
	require.NotEmpty(tb, threads)
	for _, name := range threads {
		text, err := os.ReadFile(name)
		require.NoError(tb, err)
		ran, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ran, 10, 64)
		require.NoError(tb, err)
		used += time.Duration(n)
	}
	return used
}
