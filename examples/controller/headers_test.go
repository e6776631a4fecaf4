package main

import (
	"bufio"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// accept serves connections at an address of the demo's backends until the test
// ends, and returns the address.
func accept(t *testing.T, serve func(net.Conn)) (host, port string) {
	l, err := net.Listen("tcp", "127.0.0.21:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	host, port, _ = net.SplitHostPort(l.Addr().String())
	return host, port
}

// mirror answers with the request that it got, to the byte. A WebSocket it accepts,
// and echoes.
func mirror(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(conn)
	var got strings.Builder
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = r.ReadString('\n'); err != nil {
			return
		}
		got.WriteString(line)
	}
	if text := strings.ToLower(got.String()); strings.Contains(text, "\nupgrade: websocket\r\n") && strings.Contains(text, "\nconnection: upgrade\r\n") {
		sum := sha1.Sum([]byte(headers(got.String())["sec-websocket-key"][0] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, section 1.3
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
		_, _ = io.Copy(conn, r)
		return
	}
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", got.Len(), got.String())
}

// mirrored sends these lines of headers by HTTP/1.1 and returns what the backend got:
// the values of each header, by its name as a backend sees it that takes "_" for "-".
func (d *demo) mirrored(host string, lines ...string) (map[string][]string, string) {
	d.tb.Helper()
	conn, err := net.Dial("tcp", d.http)
	require.NoError(d.tb, err)
	defer conn.Close()
	require.NoError(d.tb, conn.SetDeadline(time.Now().Add(patience)))
	fmt.Fprintf(conn, "GET /dump HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", host, strings.Join(lines, "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(d.tb, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(d.tb, err)
	require.Equal(d.tb, http.StatusOK, resp.StatusCode, "%s", body)
	return headers(string(body)), string(body)
}

func headers(text string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			name = strings.Map(func(r rune) rune {
				if strings.ContainsRune("_.!~|", r) {
					return '-'
				}
				return r
			}, strings.ToLower(name))
			all[name] = append(all[name], strings.TrimSpace(value))
		}
	}
	return all
}

// forged are headers by which a client says that it is somebody else.
var forged = []string{
	"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-Ssl",
	"X-Forwarded-User", "X-Forwarded-Client-Cert", "X-Real-IP", "Forwarded", "X-Client-IP", "X-Cluster-Client-IP", "True-Client-IP",
	"X-Original-URL", "X-Original-URI", "X-Original-Host", "X-Original-Forwarded-For", "X-Rewrite-URL", "X-Rewrite-URI", "X-Scheme", "X-URL-Scheme", "Front-End-Https", "Proxy",
}

// TestForgedHeaders: no client says where it comes from, in no spelling.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	const lie = "203.0.113.66"
	host, port := accept(t, mirror)
	d := startDemo(t)
	d.publish(site("dump", "dump.test", port, host), "dump.test", http.StatusOK)
	for _, name := range forged {
		spellings := []string{name, strings.ToLower(name), strings.ToUpper(name)}
		for _, other := range []string{"_", ".", "~"} {
			spellings = append(spellings, strings.ReplaceAll(name, "-", other), strings.Replace(name, "-", other, 1), strings.ToLower(strings.ReplaceAll(name, "-", other)))
		}
		lines := []string{"Connection: close"}
		for _, s := range spellings {
			lines = append(lines, s+": "+lie)
		}
		_, text := d.mirrored("dump.test", lines...)
		require.NotContains(t, text, lie, name)
	}

	got, text := d.mirrored("dump.test:8443", "Connection: close, X-Forwarded-For, x_forwarded_proto, Cookie", "X-Forwarded-For: "+lie, "x_forwarded_proto: https", "Cookie: a=b", "X-Own: kept")
	for name, want := range map[string]string{
		"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http", "x-forwarded-host": "dump.test:8443", "x-forwarded-port": "8443", "x-real-ip": "127.0.0.1", "host": "dump.test:8443", "x-own": "kept", "cookie": "a=b",
	} {
		require.Equal(t, []string{want}, got[name], "%s\n%s", name, text)
	}
	require.NotContains(t, strings.ToLower(strings.Join(got["connection"], ",")), "forwarded", text)
	require.NotContains(t, strings.ToLower(strings.Join(got["connection"], ",")), "cookie", text)
	got, text = d.mirrored("dump.test", "Connection: close")
	require.Equal(t, []string{"80"}, got["x-forwarded-port"], text)

	// By HTTP/2 with TLS, which knows neither Connection nor Upgrade.
	d.publish(strings.NewReplacer("evil", "demo", "path: /,", "path: /dump,").Replace(site("dump2", "shop.demo.test", port, host)), "shop.demo.test", http.StatusOK)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "shop.demo.test"}}}
	d.until(func() bool {
		req, err := http.NewRequest(http.MethodGet, "https://"+d.https+"/dump", nil)
		require.NoError(t, err)
		req.Host = "shop.demo.test"
		for _, name := range forged {
			req.Header.Set(name, lie)
			req.Header.Set(strings.ReplaceAll(name, "-", "_"), lie)
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, 2, resp.ProtoMajor)
		if strings.Contains(string(body), "answers") || resp.StatusCode == http.StatusServiceUnavailable {
			return false // the path, or its Service, is not served yet
		}
		require.NotContains(t, string(body), lie)
		got := headers(string(body))
		require.Equal(t, []string{"https", "443", "127.0.0.1"}, slices.Concat(got["x-forwarded-proto"], got["x-forwarded-port"], got["x-forwarded-for"]), "%s", body)
		return true
	})
}

// TestTrustedProxy: peers that a setting names say where a request comes from.
func TestTrustedProxy(t *testing.T) {
	t.Parallel()
	host, port := accept(t, mirror)
	d := startDemo(t, "-trust-proxy", "10.0.0.0/8", "-trust-proxy", "127.0.0.1/32")
	d.publish(site("dump", "dump.test", port, host), "dump.test", http.StatusOK)
	got, text := d.mirrored("dump.test", "Connection: close, x-forwarded-for", "X-Forwarded-For: 198.51.100.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: public.test", "X-Forwarded-Port: 443", "X-Real-IP: 198.51.100.7", "Forwarded: for=198.51.100.7")
	for name, want := range map[string][]string{
		"x-forwarded-for": {"198.51.100.7", "127.0.0.1"}, "x-forwarded-proto": {"https"}, "x-forwarded-host": {"public.test"}, "x-forwarded-port": {"443"}, "x-real-ip": {"198.51.100.7"}, "forwarded": {"for=198.51.100.7"},
	} {
		require.Equal(t, want, got[name], "%s\n%s", name, text)
	}
	require.NotContains(t, strings.ToLower(text), "connection: x-forwarded", "nor do the clients of a proxy name what is dropped")
	got, text = d.mirrored("dump.test", "Connection: close")
	require.Equal(t, []string{"http", "dump.test", "80", "127.0.0.1"}, slices.Concat(got["x-forwarded-proto"], got["x-forwarded-host"], got["x-forwarded-port"], got["x-real-ip"]), text)
	got, text = d.mirrored("dump.test", "Connection: close", "X-Forwarded-For: 203.0.113.1, 198.51.100.7")
	require.Equal(t, []string{"198.51.100.7"}, got["x-real-ip"], text)
}

// TestUpgrades: a connection becomes a WebSocket, but neither HTTP/2 nor TLS, which
// would carry requests past the rules.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	host, port := accept(t, mirror)
	d := startDemo(t)
	d.publish(site("dump", "dump.test", port, host), "dump.test", http.StatusOK)
	for name, lines := range map[string][]string{
		"h2c":                 {"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"},
		"H2C in a list":       {"Connection: upgrade", "Upgrade: foo, H2C"},
		"h2c in two lines":    {"Connection: upgrade", "Upgrade: foo", "Upgrade: h2c"},
		"a draft of HTTP/2":   {"Connection: upgrade", "Upgrade: HTTP/2.0"},
		"TLS":                 {"Connection: upgrade", "Upgrade: TLS/1.2"},
		"not for this hop":    {"Connection: close", "Upgrade: websocket"},
		"settings of HTTP/2":  {"Connection: HTTP2-Settings, close", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"},
		"upgrade without any": {"Connection: upgrade"},
	} {
		got, text := d.mirrored("dump.test", lines...)
		require.Empty(t, got["upgrade"], "%s\n%s", name, text)
		require.Empty(t, got["http2-settings"], "%s\n%s", name, text)
		require.NotContains(t, strings.Join(got["connection"], ","), "upgrade", "%s\n%s", name, text)
	}

	conn, err := net.Dial("tcp", d.http)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: dump.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	fmt.Fprint(conn, "frames\n")
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "frames\n", line)
}

// TestLoops: a request that comes back through what the addresses do not tell, such
// as a Service, is answered at once.
func TestLoops(t *testing.T) {
	t.Parallel()
	var to atomic.Value // where the forwarder leads
	var came atomic.Int64
	host, port := accept(t, func(conn net.Conn) {
		came.Add(1)
		next, err := net.Dial("tcp", to.Load().(string))
		if err != nil {
			return
		}
		defer next.Close()
		done := make(chan struct{})
		go func() { defer close(done); _, _ = io.Copy(next, conn); next.Close() }()
		_, _ = io.Copy(conn, next)
		conn.Close()
		<-done
	})
	d := startDemo(t, "-maxconn", "200")
	to.Store(d.http)
	d.publish(site("loop", "loop.test", port, host), "loop.test", http.StatusLoopDetected)
	came.Store(0)
	status, _ := d.get("http://"+d.http+"/", "loop.test")
	t.Logf("one request became %d more", came.Load())
	require.EqualValues(t, 1, came.Load())
	require.Equal(t, http.StatusLoopDetected, status)
	require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cart"), "others are served")

	t.Run("two fleets in a row", func(t *testing.T) {
		inner := startDemo(t, "-lease", "edge/inner")
		to.Store(inner.http)
		backend, at := accept(t, mirror)
		inner.publish(site("loop", "loop.test", at, backend), "loop.test", http.StatusOK)
		status, body := d.get("http://"+d.http+"/", "loop.test")
		require.Equal(t, http.StatusOK, status)
		via := headers(body)["haptic-via"]
		require.Len(t, via, 2)
		require.NotEqual(t, via[0], via[1])

		// A client that says so itself is alone with that, and no cache keeps the answer.
		req, err := http.NewRequest(http.MethodGet, "http://"+d.http+"/", nil)
		require.NoError(t, err)
		req.Host = "loop.test"
		req.Header.Set("Haptic-Via", "other, "+via[0])
		resp, err := d.client.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusLoopDetected, resp.StatusCode)
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
		status, _ = d.get("http://"+d.http+"/", "loop.test")
		require.Equal(t, http.StatusOK, status)

		// Another Service of the same fleet is no loop, nor is the one that another instance
		// has under the name of a spare backend: a gateway may pass all headers.
		require.Regexp(t, `_loop_|/haptic-spare-\d+@\d+$`, via[0])
		req.Header.Set("Haptic-Via", strings.NewReplacer("_loop_", "_gateway_", "@", "@1").Replace(via[0]))
		resp, err = d.client.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	})
}
