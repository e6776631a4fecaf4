package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// process is a haproxy in master-worker mode, in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	output *output
	ended  chan struct{} // closed when the master is gone and waited for
	err    error         // of the master, readable once ended is closed
}

// startProcess starts haproxy. Its caller must be locked to a thread that lives as
// long as haproxy may: when the thread ends, the kernel stops haproxy, so that a
// controller that is killed leaves no orphan behind.
func (h *Host) startProcess() (*process, error) {
	fail := func(err error) (*process, error) {
		return nil, &config.Error{Stage: "start", File: h.opts.Binary, Err: fmt.Errorf("%w: %w", config.ErrNotRunning, err)}
	}
	binary, err := haproxyctl.FindBinary(h.opts.Binary)
	if err != nil {
		return fail(err)
	}
	p := &process{output: &output{tell: h.opts.Stderr}, ended: make(chan struct{})}
	p.cmd = exec.Command(binary, "-W", "-S", h.opts.MasterSocket+",level,admin,mode,600", "-f", h.layout.ConfigPath())
	p.cmd.Dir, p.cmd.Env = h.opts.Dir, haproxyctl.Environment(h.opts.Env)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.WaitDelay = time.Second // workers that outlive the master hold its output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if h.account != nil {
		p.cmd.SysProcAttr.Credential = h.account.Credential()
		if canBindLowPorts() {
			p.cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_BIND_SERVICE}
		}
	}
	if err := p.cmd.Start(); err != nil {
		return fail(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// canBindLowPorts reports whether this process may pass on the right to bind to
// ports below 1024, which HAProxy keeps although it runs unprivileged.
func canBindLowPorts() bool {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Permitted&(1<<unix.CAP_NET_BIND_SERVICE) != 0
}

// done returns a channel that is closed when the process has ended. It never is
// without a process.
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

// graceHard is how long stop waits after each of its signals but the first.
const graceHard = 300 * time.Millisecond

// stop ends the master and all workers, at first softly for as long as grace. It
// returns when the process group is empty.
func (p *process) stop(grace time.Duration) {
	if grace > 0 {
		// Only once: a second one cuts the requests that a worker finishes.
		_ = p.cmd.Process.Signal(syscall.SIGUSR1)
		_ = pollFor(grace, p.hasEnded)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = pollFor(graceHard, p.hasEnded)
	p.kill()
}

// kill ends all that is left of the process group.
func (p *process) kill() {
	group := p.cmd.Process.Pid
	_ = pollFor(graceHard, func() bool {
		if syscall.Kill(-group, syscall.SIGKILL) != nil {
			return true
		}
		// Without a process 1 that reaps orphans they are ours to reap.
		_, _ = syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		return false
	})
	<-p.ended
}

// errEnded says that HAProxy ended while something was asked of it.
var errEnded = errors.Join(config.ErrNotRunning, errors.New("the master process ended"))

// pollEvery is how often poll asks for what HAProxy and the kernel give no notice of.
const pollEvery = 2 * time.Millisecond

func pollFor(patience time.Duration, ask func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return poll(ctx, nil, ask)
}

// poll asks until the answer is true, or ctx or the process ends.
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

// await asks the master until its processes are as wanted, or ctx or the process
// ends. A master that reloads is away for a while.
func (h *Host) await(ctx context.Context, p *process, wanted func(haproxyctl.Procs) bool) (procs haproxyctl.Procs, err error) {
	err = poll(ctx, p.done(), func() bool {
		var unknown error
		procs, unknown = h.master.Procs(ctx)
		return unknown == nil && wanted(procs)
	})
	return procs, err
}
