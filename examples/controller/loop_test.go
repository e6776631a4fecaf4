package main

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPassthroughLoop: a connection that a Service leads back to HAProxy, by whatever way, ends
// at its return. Without that, one connection becomes as many as there can be.
func TestPassthroughLoop(t *testing.T) {
	t.Parallel()
	var d *demo
	var came atomic.Int32
	host, port := accept(t, func(conn net.Conn) { // such as a load balancer
		came.Add(1)
		back, err := net.Dial("tcp", d.https)
		if err != nil {
			return
		}
		defer back.Close()
		done := make(chan struct{})
		go func() { defer close(done); _, _ = io.Copy(back, conn); _ = back.Close() }()
		_, _ = io.Copy(conn, back)
		_ = conn.Close()
		<-done
	})
	d = startDemo(t)
	d.edit("secure.yaml", func(string) string {
		s := site("secure", "nobody.passed", port, host)
		return s[strings.Index(s, "---")+4:]
	})
	d.edit("passed.yaml", func(string) string {
		return strings.NewReplacer("ANNOTATION", "haproxy.org", "VALUE", "true", "HOST", "passed.test").Replace(passed)
	})
	try := func() {
		conn, err := tls.Dial("tcp", d.https, &tls.Config{InsecureSkipVerify: true, ServerName: "passed.test"})
		if err == nil {
			conn.Close()
		}
		require.Error(t, err)
	}
	d.until(func() bool { try(); return came.Load() > 0 })
	for range 5 {
		before := came.Load()
		try()
		require.Equal(t, before+1, came.Load(), "it comes back once")
	}
	require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cart"))
}
