package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOutagesOfHAProxyShow: where HAProxy is killed, stopped, or does not start, then
// /readyz, the page, the metric and the log say so within two seconds, and as soon when
// it serves again.
func TestOutagesOfHAProxyShow(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "haptic") // HAProxy runs under an account of its own
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o711))
	state, socket := filepath.Join(dir, "s"), filepath.Join(dir, "debug")
	d := startDemo(t, "-local", state, "-debug-addr", "unix:"+socket)
	page := pages(t, socket)
	shows := func(well bool) (why string) {
		status, _ := page("/readyz")
		_, metrics := page("/metrics")
		_, html := page("/")
		value := regexp.MustCompile(`haptic_component_healthy\{component="haproxy"\} (\d)`).FindStringSubmatch(metrics)
		require.Len(t, value, 2)
		return fmt.Sprint(status == 200 == well, value[1] == "1" == well, strings.Contains(html, "Not ready") != well)
	}
	agree := func(what string, well bool, logged string) {
		t.Helper()
		begin, agreed := time.Now(), "true true true"
		d.until(func() bool { return shows(well) == agreed })
		d.until(func() bool { return strings.Contains(d.stderr.String(), logged) })
		t.Logf("%s: /readyz, metric, page and log agree after %s", what, time.Since(begin).Round(time.Millisecond))
		d.stderr.reset()
	}
	procs := func() (master, worker int) {
		answer, err := runtimeCommand(filepath.Join(state, "run", "master.sock"), "show proc\n")
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^(\d+) +(master|worker) `).FindAllStringSubmatch(answer, -1) {
			switch pid, _ := strconv.Atoi(m[1]); {
			case m[2] == "master":
				master = pid
			case worker == 0:
				worker = pid
			}
		}
		require.NotZero(t, worker)
		return master, worker
	}
	agree("start", true, "HAProxy started")

	_, worker := procs()
	require.NoError(t, syscall.Kill(worker, syscall.SIGSTOP))
	agree("stopped", false, fmt.Sprintf("worker, process %d, is stopped", worker))
	_, verbose := page("/readyz?verbose")
	require.Contains(t, verbose, "[-]haproxy (ready): local: process: HAProxy does not answer")
	require.NoError(t, syscall.Kill(worker, syscall.SIGCONT))
	agree("goes on", true, "HAProxy answers again")

	for range 4 {
		pid, _ := procs()
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		d.until(func() bool {
			log := d.stderr.String()
			return strings.Contains(log, "ended: signal: killed") && strings.Contains(log, "HAProxy started")
		})
		agree("killed", true, "HAProxy started")
	}
	_, metrics := page("/metrics")
	require.Contains(t, metrics, "haptic_haproxy_ends_total 4\n")
	require.Contains(t, metrics, "haptic_haproxy_starts_total 5\n")
	_, history := page("/debug/vars/events")
	require.GreaterOrEqual(t, strings.Count(history, `"haproxy.ended"`), 4)

	// Its port is taken while it is down.
	pid, _ := procs()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	var taken net.Listener
	d.until(func() bool {
		taken, err = net.Listen("tcp", d.http)
		return err == nil
	})
	agree("the port is taken", false, "has the address")
	require.NoError(t, taken.Close())
	agree("the port is free", true, "HAProxy started, as process ")
	d.until(func() bool { return d.answers("shop.demo.test", "/health") == "127.0.0.13:18080" })
}
