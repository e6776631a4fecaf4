package main

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// records are the lines of a log in JSON, each a record.
func records(t *testing.T, log string) (all []map[string]any) {
	for line := range strings.Lines(log) {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &record), line)
		all = append(all, record)
	}
	return all
}

// TestLogInJSON: every line is a record, from what starts, by version, resources,
// HAProxy and listeners, to the end; and the error for which a controller ends.
func TestLogInJSON(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-log-format", "json", "-log-level", "debug", "-metrics-addr", "127.0.0.1:0")
	d.until(func() bool { return d.answers("shop.demo.test", "/") != "" })
	d.stop()
	log := records(t, d.stderr.String())
	first, last := log[0], log[len(log)-1]
	require.Equal(t, "controller starts", first["msg"])
	require.Contains(t, first, "version")
	require.Equal(t, "manifests in "+d.manifests, first["watches"])
	require.Regexp(t, `^on this host: /.*/haproxy\.cfg$`, first["haproxy"])
	for _, listener := range []string{"metrics", "debug"} {
		require.Regexp(t, `^127\.0\.0\.1:[1-9]`, first[listener])
	}
	require.Equal(t, "stopping: HAProxy is stopped with this controller", log[len(log)-2]["msg"])
	require.Equal(t, "controller has ended", last["msg"])

	var stderr output
	require.Equal(t, 1, run(t.Context(), []string{"-log-format", "json", "-maxconn", "-1"}, io.Discard, &stderr))
	require.Equal(t, "-maxconn -1: want 0 or more", records(t, stderr.String())[0]["error"])
}

// TestLogLevel: from warn on, what goes well is not told.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	for level, says := range map[string]bool{"info": true, "warn": false} {
		var stderr output
		require.Equal(t, 2, run(t.Context(), []string{"-once", "-dry-run", "-manifests", "demo", "-allow-endpoint", "127.0.0.0/8", "-log-level", level}, io.Discard, &stderr))
		require.Equal(t, says, strings.Contains(stderr.String(), "haproxy accepts the configuration"), stderr.String())
	}
}

// TestMetricsAddressIsTaken: the error names the flag, before HAProxy is touched.
func TestMetricsAddressIsTaken(t *testing.T) {
	calls := recorded(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	at := taken.Addr().String()
	var stderr output
	state := t.TempDir() + "/state"
	require.Equal(t, 1, run(t.Context(), []string{"-manifests", "demo", "-local", state, "-http-addr", freeAddress(t), "-https-addr", freeAddress(t), "-metrics-addr", at, "-debug-addr", ""}, io.Discard, &stderr))
	require.Equal(t, "error: -metrics-addr: metrics server: listen tcp "+at+": bind: address already in use\n", stderr.String())
	for _, call := range calls() {
		require.NotContains(t, call, "args=-W", "HAProxy was started")
	}
}
