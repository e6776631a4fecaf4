package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/kit"
)

// TestServesNothingMore: without their flags, what is served beside Ingresses has no line.
func TestServesNothingMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // haproxy runs under an account of its own
	state := filepath.Join(dir, "s")
	startDemo(t, "-local", state)
	text, err := os.ReadFile(filepath.Join(state, "haproxy.cfg"))
	require.NoError(t, err)
	require.NotRegexp(t, `(?m)^ +(log|capture|option dontlognull|errorfile|stats uri|tcp-request)|^(resolvers|listen)|access-log|txn\.names|quic|mode tcp|send-proxy|accept-proxy`, string(text))
	require.Equal(t, 1, strings.Count(string(text), "frontend "))
}

const sorry = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nCache-Control: no-cache\r\n\r\n<h1>we are sorry</h1>\n"

// TestErrorPages: they are what clients see in place of HAProxy's own, and of requests
// without a route.
func TestErrorPages(t *testing.T) {
	t.Parallel()
	pages := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(pages, "503.http"), []byte(sorry), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(pages, "404.http"), []byte("HTTP/1.0 404 Not Found\nContent-Length: 8\n\nnot here"), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(pages, "..data"), 0o755)) // as in the volume of a ConfigMap
	d := startDemo(t, "-error-pages", pages)
	status, body := d.get("http://"+d.http+"/", "nobody.test")
	require.Equal(t, "404 not here", fmt.Sprint(status, " ", body))
	d.edit("shop-endpoints.yaml", func(string) string { return "# none\n" })
	d.until(func() bool {
		status, body = d.get("http://"+d.http+"/cart", "shop.demo.test")
		return status == http.StatusServiceUnavailable
	})
	require.Equal(t, "<h1>we are sorry</h1>\n", body)
}

// TestSeveralAddresses: HTTP, HTTPS and TCP services are served at each of them, also where
// connections are passed through.
func TestSeveralAddresses(t *testing.T) {
	t.Parallel()
	host, port := accept(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	const second = "127.0.0.10" // of another host
	plain, secure, tcp := freeAddress(t), freeAddress(t), freeAddress(t)
	also := func(at string) string { _, port, _ := net.SplitHostPort(at); return net.JoinHostPort(second, port) }
	d := startDemo(t, "-http-addr", plain+","+also(plain), "-https-addr", secure+","+also(secure), "-tcp-services", "edge/tcp")
	d.edit("echo.yaml", func(string) string { return site("echo", "echo.test", port, host) })
	_, number, _ := net.SplitHostPort(tcp)
	d.edit("tcp.yaml", func(string) string { return tcpMap + fmt.Sprintf("  %q: evil/echo:80\n", number) })
	served := func(url string) bool {
		status, _ := d.get(url+"/cart", "shop.demo.test")
		return status == http.StatusOK
	}
	for range 2 {
		for _, at := range []string{"http://" + plain, "http://" + also(plain), "https://" + secure, "https://" + also(secure)} {
			d.until(func() bool { return served(at) })
		}
		for _, at := range []string{tcp, also(tcp)} {
			d.until(func() bool { got, err := echo(at, "hello\n"); return err == nil && got == "hello\n" })
		}
		d.edit("passed.yaml", func(string) string {
			return strings.NewReplacer("ANNOTATION", "haproxy.org", "VALUE", "true", "HOST", "passed.test", "name: secure", "name: echo").Replace(passed)
		})
		d.until(func() bool { return strings.Contains(d.stdout.String(), "frontend tls") })
	}
}

// askFrom sends a request over a connection from an address, behind some bytes, and returns
// what comes back.
func (d *demo) askFrom(from, first, host string) (string, error) {
	dialer := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", d.http)
	require.NoError(d.tb, err)
	defer conn.Close()
	require.NoError(d.tb, conn.SetDeadline(time.Now().Add(patience)))
	fmt.Fprintf(conn, "%sGET /dump HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", first, host)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// TestAcceptProxy: the load balancers that a flag names say where connections come from,
// and nobody else does.
func TestAcceptProxy(t *testing.T) {
	t.Parallel()
	host, port := accept(t, mirror)
	d := startDemo(t, "-accept-proxy", "127.0.0.9/32", "-accept-proxy", "10.0.0.0/8")
	d.publish(site("dump", "dump.test", port, host), "dump.test", http.StatusOK)
	const says = "PROXY TCP4 198.51.100.9 192.0.2.1 1111 80\r\n"
	body, err := d.askFrom("127.0.0.9", says, "dump.test")
	require.NoError(t, err)
	require.Equal(t, []string{"198.51.100.9"}, headers(body)["x-forwarded-for"])
	_, err = d.askFrom("127.0.0.9", "", "dump.test")
	require.Error(t, err, "it must say so")
	body, err = d.askFrom("127.0.0.1", "", "dump.test")
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1"}, headers(body)["x-forwarded-for"])
	body, err = d.askFrom("127.0.0.1", says, "dump.test")
	require.NotContains(t, body, "198.51.100.9")
	require.NoError(t, err)
}

// TestStats: the page is at an address of its own, to which no endpoint leads.
func TestStats(t *testing.T) {
	t.Parallel()
	stats := freeAddress(t)
	d := startDemo(t, "-stats-addr", stats, "-allow-endpoint", "127.0.0.1/32")
	status, body := d.get("http://"+stats+"/", "any")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "demo_shop-web_80")
	_, port, _ := net.SplitHostPort(stats)
	d.edit("stats.yaml", func(string) string { return site("stats", "stats.test", port, "127.0.0.1") })
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), stats+" is where HAProxy or the controller listens")
	})
}

// TestHTTP3: a HAProxy without QUIC is told of at the start; with it, clients hear of it.
func TestHTTP3(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	require.False(t, hasFeature("Feature list : +POLL -QUIC +RT", "QUIC"))
	require.False(t, hasFeature("Feature list : -QUIC +QUIC_OPENSSL_COMPAT", "QUIC"))
	require.True(t, hasFeature("x\nFeature list : +PROMEX +QUIC\ny", "QUIC"))
	if limited, err := checkHTTP3(); err == nil {
		d := startDemo(t, "-http3")
		resp, err := d.client.Get("https://" + d.https + "/")
		require.NoError(t, err)
		resp.Body.Close()
		_, port, _ := net.SplitHostPort(d.https)
		require.Equal(t, `h3=":`+port+`"; ma=900`, resp.Header.Get("Alt-Svc"))
		t.Log("over a library without QUIC: ", limited)

		// A version that nobody knows is answered with those that HAProxy knows.
		conn, err := net.Dial("udp", d.https)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		hello := append([]byte{0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 7, 6, 5, 4, 3, 2, 1}, make([]byte, 1200)...)
		_, err = conn.Write(hello)
		require.NoError(t, err)
		n, err := conn.Read(hello)
		require.NoError(t, err)
		require.Greater(t, n, 5)
		require.Equal(t, []byte{0, 0, 0, 0}, hello[1:5], "RFC 9000, 17.2.1")
		return
	}
	var stderr output
	require.Equal(t, 1, run(t.Context(), []string{"-manifests", "demo", "-http3"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "is built without QUIC: leave the flag out")
}

// TestDrains: a controller that is to end is not ready first, and requests are served
// until the time is over.
func TestDrains(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "debug")
	page := pages(t, socket)
	d := startDemo(t, "-debug-addr", "unix:"+socket, "-drain-delay", "2s", "-stop-timeout", "5s")
	d.until(func() bool { status, _ := page("/readyz"); return status == http.StatusOK })
	ended := make(chan struct{})
	go func() { defer close(ended); d.stop() }()
	d.until(func() bool { status, _ := page("/readyz"); return status == http.StatusServiceUnavailable })
	require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/health"))
	_, verbose := page("/readyz?verbose")
	require.Contains(t, verbose, "[-]drain (ready): this process stops within 2s")
	<-ended
	_, err := net.Dial("tcp", d.http)
	require.Error(t, err)
}

func TestServeFlagsAreChecked(t *testing.T) {
	for flags, want := range map[string]string{
		"-access-log yes":                    `-access-log "yes": want http, json or off`,
		"-accept-proxy any":                  "want a range such as 10.0.0.0/8",
		"-error-pages /no/such":              "-error-pages \"/no/such\": want a folder that exists",
		"-drain-delay -1s":                   "-drain-delay -1s: want 0s or more",
		"-stats-addr :8080":                  `-stats-addr ":8080": want another address than -http-addr`,
		"-http3 -https-addr :443,:444":       "want one address:port, as -http3 is given",
		"-drain-delay 1s -endpoint http://x": "are for the HAProxy on this host",
	} {
		_, err := parseFlags(strings.Fields(flags), kit.NewLog(io.Discard))
		require.ErrorContains(t, err, want, flags)
	}
}
