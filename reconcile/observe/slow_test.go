package observe_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/observe"
)

// pipes is a listener of connections that hold no byte: who does not read stops the writer.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.ended); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// ask sends a request for metrics.
func (p *pipes) ask(t *testing.T) net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	_, err := io.WriteString(client, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	return client
}

// TestWhoDoesNotReadMetrics: on the listener that is open to everybody, requests whose
// answers nobody reads keep Prometheus away for half a minute, not for ever.
func TestWhoDoesNotReadMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		figures := prometheus.NewRegistry()
		figures.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "one", Help: strings.Repeat("x", 1<<20)}, func() float64 { return 1 }))
		s := &observe.Server{MetricsOnly: true, Metrics: figures}
		ln := &pipes{make(chan net.Conn), make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, ln) }()
		status := func() string {
			conn := ln.ask(t)
			defer conn.Close()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			return fmt.Sprint(resp.StatusCode)
		}
		for range 10 {
			defer ln.ask(t).Close()
		}
		synctest.Wait()
		require.Equal(t, "503", status())
		time.Sleep(31 * time.Second)
		require.Equal(t, "200", status())
		stop()
		require.NoError(t, <-served)
	})
}
