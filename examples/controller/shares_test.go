package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// silent is a Service of the namespace evil that never answers, and counts who waits for it.
func silent(t *testing.T) (host, port string, waiting *atomic.Int32) {
	waiting = new(atomic.Int32)
	host, port = accept(t, func(conn net.Conn) {
		waiting.Add(1)
		defer waiting.Add(-1)
		_, _ = io.Copy(io.Discard, conn)
	})
	return host, port, waiting
}

// crowd opens connections to an address, all at once, until the test ends. It counts those that
// HAProxy closed, after an answer or without one.
func crowd(t *testing.T, n int, address string, say func(net.Conn)) (closed *atomic.Int32) {
	closed = new(atomic.Int32)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for range n {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		context.AfterFunc(ctx, func() { conn.Close() })
		wg.Go(func() {
			say(conn)
			if _, err := io.Copy(io.Discard, conn); err == nil || ctx.Err() == nil {
				closed.Add(1)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return closed
}

// TestShareOfConnections: a Service of one tenant that never answers holds the connections
// that its namespace has a share of, by whatever way clients come. Others are served.
func TestShareOfConnections(t *testing.T) {
	const most, share, many = 40, 20, 60
	ask := func(path string) func(net.Conn) {
		return func(conn net.Conn) { fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: evil.test\r\n\r\n", path) }
	}
	hello := func(conn net.Conn) {
		_ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: "passed.test"}).Handshake()
	}
	for name, c := range map[string]struct {
		flags string
		more  func(port string) string // manifests
		say   func(net.Conn)
		to    func(d *demo, tcp string) string
	}{
		"requests": {say: ask("/"), to: func(d *demo, _ string) string { return d.http }},
		"requests for a shared host": {
			flags: "-shared-host *.test",
			say:   ask("/"),
			to:    func(d *demo, _ string) string { return d.http },
		},
		"TLS that is passed through": {
			more: func(string) string {
				return strings.NewReplacer("ANNOTATION", "haproxy.org", "VALUE", "true", "HOST", "passed.test", "name: secure", "name: evil").Replace(passed)
			},
			say: hello,
			to:  func(d *demo, _ string) string { return d.https },
		},
		"a TCP service": {
			flags: "-tcp-services edge/tcp",
			more:  func(port string) string { return tcpMap + fmt.Sprintf("  %q: evil/evil:80\n", port) },
			say:   func(net.Conn) {},
			to:    func(_ *demo, tcp string) string { return tcp },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, port, waiting := silent(t)
			tcp := freeAddress(t)
			d := startDemo(t, append(strings.Fields(c.flags), "-maxconn", fmt.Sprint(most))...)
			d.edit("evil.yaml", func(string) string { return site("evil", "evil.test", port, host) })
			if c.more != nil {
				_, number, _ := net.SplitHostPort(tcp)
				d.edit("more.yaml", func(string) string { return c.more(number) })
			}
			d.until(func() bool { return d.passes(c.to(d, tcp), c.say, waiting) })

			closed := crowd(t, many, c.to(d, tcp), c.say)
			d.until(func() bool { return closed.Load() >= many-share && waiting.Load() == share })
			for range 10 {
				require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cart"))
				status, _ := d.get("https://"+d.https+"/", "shop.demo.test")
				require.Equal(t, http.StatusOK, status)
			}
		})
	}
}

// TestShareOfStreams: requests over one connection count one by one, and no more once they ended.
func TestShareOfStreams(t *testing.T) {
	t.Parallel()
	const share, many = 5, 20
	host, port, waiting := silent(t)
	d := startDemo(t, "-access-log", "http", "-limit", fmt.Sprintf("connections-per-namespace=%d", share))
	d.edit("evil.yaml", func(string) string { return site("evil", "evil.test", port, host) })
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "shop.demo.test"}}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(ctx context.Context, host string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+d.https+"/", nil)
		require.NoError(t, err)
		req.Host = host
		resp, err := client.Do(req)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		require.Equal(t, 2, resp.ProtoMajor)
		return resp.StatusCode
	}
	d.until(func() bool { return ask(t.Context(), "shop.demo.test") == http.StatusOK })
	d.until(func() bool { // the Service is reached, and does not answer
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return ask(ctx, "evil.test") == 0 && ctx.Err() != nil
	})
	d.until(func() bool { return waiting.Load() == 0 })
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		var full atomic.Int32
		var all sync.WaitGroup
		for range many {
			all.Go(func() {
				if ask(ctx, "evil.test") == http.StatusServiceUnavailable {
					full.Add(1)
				}
			})
		}
		d.until(func() bool { return full.Load() == many-share && waiting.Load() == share })
		require.Equal(t, http.StatusOK, ask(t.Context(), "shop.demo.test"))
		d.logged(" 503 ", " PR-- ")
		cancel()
		all.Wait()
		d.until(func() bool { return waiting.Load() == 0 })
	}
}

// passes opens one connection, and reports whether it comes to the Service.
func (d *demo) passes(address string, say func(net.Conn), waiting *atomic.Int32) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	say(conn)
	_, _ = conn.Read(make([]byte, 1))
	return waiting.Load() > 0
}

// TestConnectionsOfFlags: a namespace has half of the connections, also while hosts are passed
// through, as far as the limit of open files allows. Connections and health checks fit into it.
func TestConnectionsOfFlags(t *testing.T) {
	remote := []string{"-pods", "app=haproxy", "-pod-namespace", "x", "-credentials", "a/b"}
	for _, c := range []struct {
		files                       int
		flags                       []string
		most, passed, share, checks int
	}{
		{1 << 20, nil, 10_000, 20_000, 5000, 4000},
		{20_000, nil, 8872, 8872, 2218, 2000},
		{1024, nil, 333, 333, 83, 102},
		{1 << 20, []string{"-maxconn", "200"}, 200, 400, 100, 4000},
		{20_000, []string{"-maxconn", "9800"}, 9800, 9800, 2450, 144},
		{1 << 20, []string{"-limit", "connections-per-namespace=7", "-limit", "checks-of-all=8"}, 10_000, 20_000, 7, 8},
		{1024, remote, 0, 0, 5000, 4000},
		{1024, append([]string{"-maxconn", "40000"}, remote...), 40_000, 40_000, 10_000, 4000},
	} {
		cfg, err := parseFlags(c.flags, kit.NewLog(io.Discard))
		require.NoError(t, err)
		if !cfg.Given("maxconn") {
			cfg.maxConn = 0
		}
		if !cfg.Given("limit") {
			cfg.limits = ingress.Limits{}
		}
		cfg.shareConnections(c.files)
		require.Equal(t, []int{c.most, c.passed, c.share, c.checks}, []int{cfg.maxConn, cfg.maxPassed, cfg.limits.InForce()["connections-per-namespace"], cfg.limits.ChecksOfAll}, "%+v", c)
	}
}
