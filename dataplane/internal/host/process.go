package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/late"
)

// process is a haproxy in master-worker mode, in its own process group. This process started
// it, or an earlier process that was killed.
type process struct {
	master *os.Process
	began  string // start time in the kernel, because another process may get the same id
	output *output
	ended  chan struct{} // closed when the master has ended and was waited for
	err    error         // of the master, readable once ended is closed
}

// startProcess starts haproxy. With Temporary its caller must be locked to a thread that
// lives as long as haproxy may run: when the thread ends, the kernel stops haproxy.
func (h *Host) startProcess() (*process, error) {
	fail := func(err error) (*process, error) {
		err = &worded{"HAProxy cannot be started: " + err.Error(), errors.Join(config.ErrNotRunning, err)}
		return nil, &config.Error{Stage: "start", File: h.opts.Binary, Err: err}
	}
	binary, err := haproxyctl.FindBinary(h.opts.Binary)
	if err != nil {
		return fail(err)
	}
	from, to, err := h.makePipe(pipeName)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = to.Close() }()
	pipes, stdout := []*os.File{from}, to
	if h.opts.Stdout != nil {
		if from, stdout, err = h.makePipe(stdoutName); err != nil {
			return fail(errors.Join(err, closeAll(pipes)))
		}
		defer func() { _ = stdout.Close() }()
		pipes = append(pipes, from)
	}
	cmd := exec.Command(binary, h.arguments()...)
	cmd.Dir, cmd.Env = h.opts.Dir, haproxyctl.Environment(h.opts.Env)
	cmd.Stdout, cmd.Stderr = stdout, to
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if h.opts.Temporary {
		endWithParent(cmd.SysProcAttr)
	}
	if h.account != nil {
		cmd.SysProcAttr.Credential = h.account.Credential()
		keepLowPorts(cmd.SysProcAttr)
	}
	if err := cmd.Start(); err != nil {
		return fail(errors.Join(err, closeAll(pipes)))
	}
	return h.follow(cmd.Process, pipes, cmd.Wait), nil
}

func closeAll(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// arguments returns the arguments of each haproxy that a Host starts. findOrphan recognises
// it by them.
func (h *Host) arguments() []string {
	return []string{"-W", "-S", h.opts.MasterSocket + ",level,admin,mode,600", "-f", h.layout.ConfigPath()}
}

// follow reads the output of a haproxy and notices its end. The second pipe, if there is one,
// has its standard output.
func (h *Host) follow(master *os.Process, pipes []*os.File, wait func() error) *process {
	p := &process{master: master, began: readStat(master.Pid).began, output: &output{tell: h.opts.Stderr}, ended: make(chan struct{})}
	var read sync.WaitGroup
	for i, to := range []io.Writer{p.output, &wholeLines{to: h.opts.Stdout}}[:len(pipes)] {
		read.Go(func() { _, _ = io.Copy(to, pipes[i]) })
	}
	go func() {
		p.err = wait()
		for _, from := range pipes { // workers that outlive the master keep its output open
			_ = from.SetReadDeadline(time.Now().Add(time.Second))
		}
		read.Wait()
		_ = closeAll(pipes)
		close(p.ended)
	}()
	return p
}

// pid returns the process id of the master.
func (p *process) pid() int { return p.master.Pid }

// done returns a channel that is closed when the process has ended. Without a process the
// channel is never closed.
func (p *process) done() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.ended
}

func (p *process) hasEnded() bool {
	select {
	case <-p.done():
		return true
	default:
		return false
	}
}

// graceHard is how long stop waits after each of its signals except the first.
const graceHard = 300 * time.Millisecond

// stop ends the master and all workers, at first softly for as long as grace. It returns when
// the process group is empty.
func (p *process) stop(grace time.Duration) {
	if grace > 0 {
		// Only once: a second signal cuts the requests that a worker finishes.
		_ = p.master.Signal(syscall.SIGUSR1)
		_ = pollFor(grace, p.hasEnded)
	}
	_ = p.master.Signal(syscall.SIGTERM)
	_ = pollFor(graceHard, p.hasEnded)
	p.kill()
}

// kill ends all remaining processes of the process group.
func (p *process) kill() {
	group := p.master.Pid
	if now := readStat(group); now.began != p.began && now.began != "" {
		<-p.ended // another program has the id by now
		return
	}
	_ = pollFor(graceHard, func() bool {
		if syscall.Kill(-group, syscall.SIGKILL) != nil {
			return true
		}
		// If process 1 does not reap orphans, we have to.
		_, _ = syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		return false
	})
	<-p.ended
}

// errEnded says that HAProxy ended during a call.
var errEnded = &worded{"HAProxy ended meanwhile", config.ErrNotRunning}

// worded is an error with another text.
type worded struct {
	text string
	err  error
}

func (w *worded) Error() string { return w.text }
func (w *worded) Unwrap() error { return w.err }

// pollEvery is the time between two questions of poll. HAProxy and the kernel send no notice
// of these events.
const pollEvery = 2 * time.Millisecond

func pollFor(patience time.Duration, ask func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return poll(ctx, nil, ask)
}

// poll calls ask until it returns true, or until ctx or the process ends.
func poll(ctx context.Context, ended <-chan struct{}, ask func() bool) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !ask() {
		select {
		case <-ticker.C:
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// keeps is the part of an error that says what happens while the master does not answer.
const keeps = "HAProxy keeps its last configuration"

// await asks the master until its processes are as wanted, or until ctx or the process ends.
// A master that reloads does not answer for a while. If ctx ends first, the error contains
// goesOn.
func (h *Host) await(ctx context.Context, p *process, goesOn string, wanted func(haproxyctl.Procs) bool) (procs haproxyctl.Procs, err error) {
	begin, silent := time.Now(), true
	err = poll(ctx, p.done(), func() bool {
		now, unknown := h.master.Procs(ctx)
		if ctx.Err() == nil {
			procs, silent = now, unknown != nil
		}
		return unknown == nil && wanted(now)
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		return procs, err
	}
	master := procs.MasterPID
	if p != nil {
		master = p.pid()
	}
	what, why := "the HAProxy master", ""
	if master != 0 {
		what += fmt.Sprintf(" (process %d)", master)
	}
	if silent {
		what += " did not answer"
	} else {
		what += " had no worker that serves"
	}
	if readStat(master).state == "T" {
		why = "it is stopped (SIGSTOP), and "
	}
	return procs, &late.Error{What: what, After: time.Since(begin), GoesOn: why + goesOn}
}
