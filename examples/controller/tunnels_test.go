package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answer sends a request as it stands and returns the status and the body.
func (d *demo) answer(address, request string) (int, string) {
	d.tb.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(d.tb, err)
	defer conn.Close()
	require.NoError(d.tb, conn.SetDeadline(time.Now().Add(patience)))
	fmt.Fprint(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(d.tb, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(d.tb, err)
	return resp.StatusCode, string(body)
}

// http2 is a client that speaks HTTP/2 without TLS.
func http2(t *testing.T) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Timeout: patience, Transport: transport}
}

// willing is a server that makes a tunnel of all that asks for one.
func willing(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	req, err := http.ReadRequest(bufio.NewReader(conn))
	switch {
	case err != nil:
	case req.Method == http.MethodConnect:
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\ntunnel")
	case req.Header.Get("Upgrade") != "":
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: %s\r\n\r\ntunnel", req.Header.Get("Upgrade"))
	default:
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nrule")
	}
}

// TestNoTunnels: no method and no upgrade makes a connection to a server that HAProxy reads
// nothing in, but for the protocols that carry no requests.
func TestNoTunnels(t *testing.T) {
	t.Parallel()
	host, port := accept(t, willing)
	stats := freeAddress(t)
	d := startDemo(t, "-stats-addr", stats, "-upgrade", "SPDY/3.1")
	d.publish(site("willing", "willing.test", port, host), "willing.test", http.StatusOK)
	upgrade := func(to ...string) string {
		return "GET / HTTP/1.1\r\nHost: willing.test\r\nConnection: upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nUpgrade: " + strings.Join(to, "\r\nUpgrade: ") + "\r\n\r\n"
	}
	for request, want := range map[string]int{
		"CONNECT willing.test:80 HTTP/1.1\r\nHost: willing.test:80\r\n\r\n": http.StatusMethodNotAllowed,
		"CONNECT / HTTP/1.1\r\nHost: willing.test\r\n\r\n":                  http.StatusBadRequest,
		"connect / HTTP/1.1\r\nHost: willing.test\r\n\r\n":                  http.StatusMethodNotAllowed,
		"CONNECT willing.test:80 HTTP/1.0\r\nHost: willing.test:80\r\n\r\n": http.StatusMethodNotAllowed,
		"TRACE / HTTP/1.1\r\nHost: willing.test\r\n\r\n":                    http.StatusMethodNotAllowed,
		"Trace / HTTP/1.1\r\nHost: willing.test\r\n\r\n":                    http.StatusMethodNotAllowed,
		"PROPFIND / HTTP/1.1\r\nHost: willing.test\r\n\r\n":                 http.StatusOK,
		upgrade("h2c"):              http.StatusOK,
		upgrade("TLS/1.3"):          http.StatusOK,
		upgrade("foo"):              http.StatusOK,
		upgrade("websocket, foo"):   http.StatusOK,
		upgrade("foo", "websocket"): http.StatusOK,
		upgrade("spdy/3"):           http.StatusOK,
		upgrade("spdy/3.1"):         http.StatusSwitchingProtocols,
	} {
		status, body := d.answer(d.http, request)
		require.Equal(t, want, status, "%q: %s", request, body)
		require.Equal(t, status == http.StatusOK, body == "rule", "%q: %s", request, body)
	}
	for _, line := range []string{"CONNECT stats:80", "TRACE /"} {
		status, _ := d.answer(stats, line+" HTTP/1.1\r\nHost: stats:80\r\n\r\n")
		require.Equal(t, http.StatusMethodNotAllowed, status, "%s of the page of statistics", line)
	}

	for method, want := range map[string]int{http.MethodConnect: http.StatusMethodNotAllowed, http.MethodTrace: http.StatusMethodNotAllowed, http.MethodGet: http.StatusOK} {
		req, err := http.NewRequest(method, "http://"+d.http, nil)
		require.NoError(t, err)
		req.Host = "willing.test"
		resp, err := http2(t).Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 2, resp.ProtoMajor)
		require.Equal(t, want, resp.StatusCode, "%s by HTTP/2", method)
	}
	for _, wrong := range []string{"h2c", "TLS/1.2", "HTTP/2", "a b", "", "a\"b"} {
		require.Error(t, checkUpgrade(wrong), wrong)
	}
}

// TestWrongHosts: a Host that is no name gets no further, in particular not to the rules without
// a host, which another namespace may have.
func TestWrongHosts(t *testing.T) {
	t.Parallel()
	host, port := accept(t, mirror)
	d := startDemo(t)
	d.publish(site("named", "v.test", port, host), "v.test", http.StatusOK)
	d.publish(strings.Replace(site("all", "HOST", port, host), `host: "HOST", `, "", 1), "all.test", http.StatusOK)
	const get = "GET / HTTP/1.1\r\nConnection: close\r\n"
	for request, want := range map[string]int{
		get + "Host: v.test\r\n\r\n":                                   http.StatusOK,
		get + "Host: V.Test.:80\r\n\r\n":                               http.StatusOK,
		get + "Host: v.test:\r\n\r\n":                                  http.StatusOK,
		get + "Host: other_name.test\r\n\r\n":                          http.StatusOK,
		get + "Host: 127.0.0.1:8080\r\n\r\n":                           http.StatusOK,
		get + "Host: [::1]:8080\r\n\r\n":                               http.StatusOK,
		get + "Host: v..test\r\n\r\n":                                  http.StatusBadRequest,
		get + "Host: .v.test\r\n\r\n":                                  http.StatusBadRequest,
		get + "Host: v.test..\r\n\r\n":                                 http.StatusBadRequest,
		get + "Host: v.test:80:80\r\n\r\n":                             http.StatusBadRequest,
		get + "Host: v.test,other.test\r\n\r\n":                        http.StatusBadRequest,
		get + "Host: other.test,v.test\r\n\r\n":                        http.StatusBadRequest,
		get + "Host: v.test other\r\n\r\n":                             http.StatusBadRequest,
		get + "Host: u@v.test\r\n\r\n":                                 http.StatusBadRequest,
		get + "Host: v.test%2e\r\n\r\n":                                http.StatusBadRequest,
		get + "Host: v.test/\r\n\r\n":                                  http.StatusBadRequest,
		get + "Host: v.test\r\nHost: other.test\r\n\r\n":               http.StatusBadRequest,
		get + "Host:\r\n\r\n":                                          http.StatusBadRequest,
		get + "\r\n":                                                   http.StatusBadRequest,
		"GET / HTTP/1.0\r\n\r\n":                                       http.StatusBadRequest,
		"GET http://v.test/ HTTP/1.0\r\n\r\n":                          http.StatusBadRequest,
		"GET http://v.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n":      http.StatusBadRequest,
		"GET / HTTP/1.0\r\nHost: v.test\r\n\r\n":                       http.StatusOK,
		"GET http://v.test/ HTTP/1.1\r\nHost: v.test\r\n\r\n":          http.StatusOK,
		get + "Host: " + strings.Repeat("a.", 3000) + "test..\r\n\r\n": http.StatusBadRequest,
	} {
		status, body := d.answer(d.http, request)
		require.Equal(t, want, status, "%.100q: %.100s", request, body)
	}
	for name, want := range map[string]int{"v.test": http.StatusOK, "v..test": http.StatusBadRequest, "v.test,all.test": http.StatusBadRequest} {
		req, err := http.NewRequest(http.MethodGet, "http://"+d.http+"/", nil)
		require.NoError(t, err)
		req.Host = name
		resp, err := http2(t).Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode, "%s by HTTP/2", name)
	}
}
