package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const mb = 1 << 20

// probe asks HAProxy on connections that are kept. It is for one goroutine.
type probe struct {
	client *http.Client
	url    string
}

func newProbe(addr string) *probe {
	return &probe{url: "http://" + addr + "/", client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: (&net.Dialer{}).DialContext,
	}}}
}

func (p *probe) close() { p.client.CloseIdleConnections() }

// probePause is the time between two requests of a probe. The timers of Go make about
// a millisecond of it.
const probePause = 500 * time.Microsecond

// arrives asks until the host answers with the body, and returns when that was.
func (p *probe) arrives(t testing.TB, host, want string) time.Time {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(probePause) {
		status, got, err := p.get(t.Context(), host)
		switch now := time.Now(); {
		case err == nil && status == http.StatusOK && got == want:
			return now
		case now.After(deadline):
			t.Fatalf("%s: got %d %.100q %v, want 200 %q", host, status, got, err, want)
		}
	}
}

func (p *probe) get(ctx context.Context, host string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Host = host
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(text), err
}

// heap reads a figure of runtime.MemStats from the controller, after a garbage
// collection.
func (c *controller) heap(t testing.TB, name string) int64 {
	t.Helper()
	text, err := c.page("/debug/pprof/heap?debug=1&gc=1")
	must(t, err)
	_, rest, _ := strings.Cut(text, "# "+name+" = ")
	number, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatalf("%s in /debug/pprof/heap: %v", name, err)
	}
	return n
}

var vmHWM = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakRSS is the most resident memory that a process has ever had, in bytes.
func peakRSS(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	m := vmHWM.FindSubmatch(text)
	if m == nil {
		panic("no VmHWM in /proc/PID/status")
	}
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10
}

// ticks is the time that processes have had of processors, of 10 ms each.
func ticks(t testing.TB, pids ...int) time.Duration {
	t.Helper()
	var sum int
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		must(t, err)
		after := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the third field is the first here
		user, _ := strconv.Atoi(after[14-3])
		system, _ := strconv.Atoi(after[15-3])
		sum += user + system
	}
	return time.Duration(sum) * 10 * time.Millisecond
}

// loadAverage is that of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err.Error()
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
