package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogins: the right password is taken, also once an address has failed some times. One that
// fails too often gets 429 before HAProxy looks at its password, and others do not notice.
func TestLogins(t *testing.T) {
	t.Parallel()
	host, port := accept(t, mirror)
	d := startDemo(t)
	manifest := func(name string) string {
		s := strings.Replace(site(name, name+".test", port, host), "namespace: evil}\nspec:\n  ing", "namespace: evil, annotations: {nginx.ingress.kubernetes.io/auth-type: basic, nginx.ingress.kubernetes.io/auth-secret: "+name+"}}\nspec:\n  ing", 1)
		// The password is "secret".
		return s + "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: evil}\ntype: Opaque\nstringData: {auth: \"u:$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1\"}\n"
	}
	d.publish(manifest("one"), "one.test", http.StatusUnauthorized)
	d.publish(manifest("two"), "two.test", http.StatusUnauthorized)
	ask := func(name, password string) int {
		status, _ := d.answer(d.http, "GET / HTTP/1.1\r\nConnection: close\r\nHost: "+name+".test\r\nAuthorization: Basic "+base64.StdEncoding.EncodeToString([]byte("u:"+password))+"\r\n\r\n")
		return status
	}
	require.Equal(t, http.StatusOK, ask("one", "secret"))
	require.Equal(t, http.StatusUnauthorized, ask("one", strings.Repeat("long", 100)), "nobody reads it")
	for i := range 20 {
		require.Equal(t, http.StatusUnauthorized, ask("one", fmt.Sprint(i)))
	}
	require.Equal(t, http.StatusTooManyRequests, ask("one", "secret"))
	require.Equal(t, http.StatusOK, ask("two", "secret"), "each Secret counts by itself")
	body, err := d.askFrom("127.0.0.9", "GET / HTTP/1.1\r\nHost: one.test\r\nAuthorization: Basic dTpzZWNyZXQ=\r\n\r\n", "one.test")
	require.NoError(t, err)
	require.Contains(t, body, "GET / HTTP/1.1", "each address counts by itself")
	for range 50 {
		require.Equal(t, http.StatusOK, ask("two", "secret"), "a login that succeeds does not count")
	}
}

// TestLongestTimeout: a flag bounds the timeouts of annotations, and the Ingress says so.
func TestLongestTimeout(t *testing.T) {
	t.Parallel()
	host, port := accept(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }) // it never answers
	d := startDemo(t, "-longest-timeout", "1s")
	d.publish(strings.Replace(site("silent", "silent.test", port, host), "namespace: evil}\nspec:\n  ing", "namespace: evil, annotations: {haproxy.org/timeout-server: 20d}}\nspec:\n  ing", 1), "silent.test", http.StatusGatewayTimeout)
	require.Contains(t, d.stderr.String(), "is longer than the 1s that -longest-timeout allows: 1s is in use")
}
