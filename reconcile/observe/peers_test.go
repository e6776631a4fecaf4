package observe_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/observe"
)

// TestConnectionsOfOnePeer: one address can neither fill the memory with connections
// nor keep another from its probes.
func TestConnectionsOfOnePeer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	listens, ended := make(chan net.Addr, 1), make(chan error, 1)
	server := &observe.Server{Addr: "127.0.0.1:0", OnListen: func(a net.Addr) { listens <- a }}
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	at := (<-listens).String()
	ask := func(from string) (net.Conn, error) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.DialContext(ctx, "tcp", at)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
		if err == nil {
			_, err = conn.Read(make([]byte, 4096))
		}
		return conn, err
	}
	var last net.Conn
	for range 100 {
		conn, err := ask("127.0.0.5")
		require.NoError(t, err)
		last = conn
	}
	for range 50 {
		_, err := ask("127.0.0.5")
		require.Error(t, err, "one too many")
	}
	_, err := ask("127.0.0.6")
	require.NoError(t, err)
	require.NoError(t, last.Close())
	require.Eventually(t, func() bool { _, err := ask("127.0.0.5"); return err == nil }, 5*time.Second, 10*time.Millisecond)
}
