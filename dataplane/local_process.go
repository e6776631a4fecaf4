package dataplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// process is a haproxy in master-worker mode, in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	output *outputLog
	grace  time.Duration // for requests under way, when it is stopped
	ended  chan struct{} // closed when the master is gone and waited for
	err    error         // of the master, readable once ended is closed
}

// startProcess starts haproxy. It must be called from the thread that lives as
// long as haproxy may: when that thread ends, the kernel stops haproxy, so that
// a controller that is killed leaves no orphan behind.
func (l *Local) startProcess() (*process, error) {
	p := &process{output: &outputLog{tell: l.opts.Stderr, more: make(chan struct{})}, grace: l.grace, ended: make(chan struct{})}
	binary, err := haproxyctl.FindBinary(l.opts.Binary)
	if err != nil {
		return nil, &Error{Endpoint: l.Name(), Stage: "start", File: l.opts.Binary, Err: fmt.Errorf("%w: %w", ErrNotRunning, err)}
	}
	p.cmd = exec.Command(binary, "-W", "-S", l.opts.MasterSocket+",level,admin,mode,600", "-f", l.layout.ConfigPath())
	p.cmd.Dir = l.opts.Dir
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.WaitDelay = time.Second // workers that outlive the master hold its output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if l.account != nil {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(l.account.uid), Gid: uint32(l.account.gid)}
		if canBindLowPorts() {
			p.cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_BIND_SERVICE}
		}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, &Error{Endpoint: l.Name(), Stage: "start", File: l.opts.Binary, Err: fmt.Errorf("%w: %w", ErrNotRunning, err)}
	}
	go func() {
		p.err = p.cmd.Wait()
		p.output.flush()
		close(p.ended)
	}()
	return p, nil
}

// canBindLowPorts reports whether this process may pass on the right to bind
// to ports below 1024, which HAProxy keeps although it runs unprivileged.
func canBindLowPorts() bool {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Permitted&(1<<unix.CAP_NET_BIND_SERVICE) != 0
}

// hasEnded reports whether the master is gone.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Grace periods of stop, one after the other: together they stay below 2 s.
const (
	graceSoft = 1200 * time.Millisecond // for requests under way
	graceHard = 300 * time.Millisecond
	graceKill = 300 * time.Millisecond
)

// stop ends the master and all workers: first softly, if it serves, then for
// good. It returns when the process group is empty.
func (p *process) stop(serves bool) {
	if serves {
		// Only once: a second one cuts the requests that a worker finishes.
		p.signal(syscall.SIGUSR1, p.grace)
	}
	p.signal(syscall.SIGTERM, graceHard)
	p.kill()
}

// signal sends a signal to the master and gives it time to end.
func (p *process) signal(sig syscall.Signal, grace time.Duration) {
	if p.hasEnded() {
		return
	}
	_ = p.cmd.Process.Signal(sig)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
}

// kill ends whatever is left of the process group.
func (p *process) kill() {
	pgid := p.cmd.Process.Pid
	deadline := time.Now().Add(graceKill)
	for syscall.Kill(-pgid, syscall.SIGKILL) == nil && time.Now().Before(deadline) {
		// Without a process 1 that reaps orphans they are ours to reap.
		_, _ = syscall.Wait4(-pgid, nil, syscall.WNOHANG, nil)
		wait(5 * time.Millisecond)
	}
	<-p.ended
}

// wait is for polling what the kernel and HAProxy offer no event for.
func wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// outputLog keeps the last lines that haproxy printed.
type outputLog struct {
	tell func(string)

	mu    sync.Mutex
	part  []byte // of a line that is not complete
	lines []string
	total int           // lines ever
	more  chan struct{} // closed and replaced with every write
}

const keptLines = 500

// Write takes output of haproxy.
func (o *outputLog) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, b...)
	for {
		i := bytes.IndexByte(o.part, '\n')
		if i < 0 {
			break
		}
		o.addLine(string(o.part[:i]))
		o.part = o.part[i+1:]
	}
	close(o.more)
	o.more = make(chan struct{})
	return len(b), nil
}

func (o *outputLog) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.part) > 0 {
		o.addLine(string(o.part))
		o.part = nil
	}
}

func (o *outputLog) addLine(line string) {
	o.lines = append(o.lines, line)
	o.total++
	if len(o.lines) > 2*keptLines {
		o.lines = append([]string(nil), o.lines[len(o.lines)-keptLines:]...)
	}
	if o.tell != nil {
		o.tell(line)
	}
}

// mark remembers a place in the output.
func (o *outputLog) mark() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// since returns what was printed after the mark.
func (o *outputLog) since(mark int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(max(o.total-mark, 0), len(o.lines))
	return append([]string(nil), o.lines[len(o.lines)-n:]...)
}

// printedLate is how long what haproxy has printed may take through the pipe,
// on a host without a free processor.
const printedLate = 10 * time.Second

// waitFor waits for such a line after the mark, for a short while only: haproxy
// prints before it acts, but the pipe may be slower than the sockets.
func (o *outputLog) waitFor(ctx context.Context, mark int, wanted func(line string) bool) {
	ctx, cancel := context.WithTimeout(ctx, printedLate)
	defer cancel()
	for {
		o.mu.Lock()
		more := o.more
		o.mu.Unlock()
		if slices.ContainsFunc(o.since(mark), wanted) {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

var (
	haproxyPrefix   = regexp.MustCompile(`^\[[A-Z]+\] +(?:[0-9/]+ +)?\([0-9]+\) : `)
	haproxyPosition = regexp.MustCompile(`\[([^\[\]:]+):([0-9]+)\]`)
)

// maxOutput bounds what of HAProxy's output an error carries.
const maxOutput = 4 << 10

// explain makes an error of what haproxy printed: its alerts, or everything if
// there is none, and the first place that it names.
func (l *Local) explain(stage string, err error, lines []string) *Error {
	e := &Error{Endpoint: l.Name(), Stage: stage, Err: err}
	var alerts, rest []string
	for _, line := range lines {
		text := haproxyPrefix.ReplaceAllString(line, "")
		switch {
		case strings.HasPrefix(line, "[ALERT]"):
			alerts = append(alerts, text)
		case !strings.HasPrefix(line, "[NOTICE]"):
			rest = append(rest, text)
		}
	}
	if len(alerts) == 0 {
		alerts = rest
	}
	for _, text := range alerts {
		if m := haproxyPosition.FindStringSubmatch(text); m != nil && e.File == "" {
			e.File = m[1]
			if rel, err := filepath.Rel(l.opts.Dir, m[1]); err == nil && filepath.IsLocal(rel) {
				e.File = rel
			}
			e.Line, _ = strconv.Atoi(m[2])
		}
	}
	e.Output = strings.TrimSpace(strings.ReplaceAll(strings.Join(alerts, "\n"), l.opts.Dir+string(os.PathSeparator), ""))
	if len(e.Output) > maxOutput {
		e.Output = e.Output[:maxOutput] + "..."
	}
	return e
}
