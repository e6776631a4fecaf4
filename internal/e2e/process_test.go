package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// output keeps what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Len is a mark for After.
func (o *output) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Len()
}

// After is what was printed since the mark.
func (o *output) After(mark int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.buf.Bytes()[mark:])
}

// mostPrinted is how much of it a failure message has.
const mostPrinted = 6000

// tail is the end of what was printed, for a failure message.
func (o *output) tail() string {
	s := o.String()
	if len(s) > mostPrinted {
		s = "..." + s[len(s)-mostPrinted:]
	}
	return s
}

// from is what was printed from the first of some words on, as much as tail.
func (o *output) from(words ...string) string {
	s := o.String()
	first := len(s)
	for _, w := range words {
		if i := strings.Index(s, w); i >= 0 {
			first = min(first, i)
		}
	}
	return s[first:min(len(s), first+mostPrinted)]
}

// process is a program under test, in a process group of its own.
type process struct {
	name string
	out  *output
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended, once done
}

func startProcess(name string, environ []string, path string, args ...string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return start(name, environ, cmd)
}

// startIsolated starts this program again, in network and mount namespaces of
// its own.
func startIsolated(name string, stdin *os.File, environ []string) (*process, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Stdin = stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	return start(name, environ, cmd)
}

func start(name string, environ []string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, out: &output{}, cmd: cmd, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), environ...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	// A child that outlives the process must not make Wait wait for its output.
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended reports whether the process has ended, in an error with what it
// printed; nil while it runs.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended (%v):\n%s", p.name, p.err, p.out.tail())
	default:
		return nil
	}
}

// kill ends the process and everything in its group at once.
func (p *process) kill() {
	_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
	<-p.done
}

// terminate asks with the signal and reports how long the end took; it kills
// after the deadline, which is an error.
func (p *process) terminate(sig syscall.Signal, deadline time.Duration) (time.Duration, error) {
	start := time.Now()
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
		return time.Since(start), nil
	case <-time.After(deadline):
		p.kill()
		return time.Since(start), fmt.Errorf("%s has not ended %v after %v", p.name, deadline, sig)
	}
}

// procStat is a line of /proc/PID/stat, see proc_pid_stat(5).
type procStat struct {
	pid, parent int
	name        string
}

// processes lists the processes of the namespace; a zombie has ended and only
// waits for its parent to notice, so it is none.
func processes() []procStat {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []procStat
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		// The name stands in parentheses and may hold anything.
		open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		rest := strings.Fields(string(text[end+1:]))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text[:open])))
		parent, _ := strconv.Atoi(rest[1])
		if rest[0] != "Z" {
			all = append(all, procStat{pid: pid, parent: parent, name: string(text[open+1 : end])})
		}
	}
	return all
}

// children lists the running children of a process, oldest pid first.
func children(parent int) []int {
	var pids []int
	for _, p := range processes() {
		if p.parent == parent {
			pids = append(pids, p.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// descendants lists all that a process started, directly or not.
func descendants(pid int) []int {
	var all []int
	for _, child := range children(pid) {
		all = append(all, child)
		all = append(all, descendants(child)...)
	}
	return all
}

// running reports which of the pids still run.
func running(pids []int) []int {
	var left []int
	for _, p := range processes() {
		if slices.Contains(pids, p.pid) {
			left = append(left, p.pid)
		}
	}
	return left
}

// gone is nil once none of the pids runs any more.
func gone(pids []int) error {
	if left := running(pids); len(left) > 0 {
		return fmt.Errorf("%v still run", left)
	}
	return nil
}

// rss is the resident memory of a process, in bytes.
func rss(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
