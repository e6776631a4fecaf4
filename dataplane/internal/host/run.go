package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// Run starts HAProxy, starts it again when it ends, and stops it when ctx ends, as Local.Run
// in package dataplane says. With NoStart it only asks the worker whether it serves.
func (h *Host) Run(ctx context.Context) error {
	if h.opts.NoStart {
		h.watchOther(ctx)
		return nil
	}
	h.runs.Add(1)
	// This needs no turn: every Sync asks Run before it touches the folder.
	left, release, err := h.takeFolder(ctx)
	defer func() {
		h.runs.Add(-1) // a Sync that asks Run gives up
		if err == nil {
			<-h.turn // one that writes the folder ends first
			release()
			h.unlock()
		}
	}()
	if err != nil {
		return fail("folder", err)
	}
	runtime.LockOSThread() // see startProcess
	defer runtime.UnlockOSThread()
	s := &supervisor{h: h, retry: time.NewTimer(restartPause), watcher: newWatcher()}
	defer s.watcher.stop()
	defer s.retry.Stop()
	if left != nil {
		s.process, s.tried = h.adopt(left), time.Now()
		h.status.becomes(Adopted, s.process.pid(), nil)
	}
	s.startStored(ctx) // before the first request, which may store another configuration
	for {
		select {
		case <-ctx.Done():
			s.stop()
			return nil
		case <-s.process.done():
			s.lost()
		case r := <-h.requests:
			reply := startReply{process: s.process}
			if r.start {
				reply = s.start(ctx)
			}
			r.reply <- reply
		case <-s.retry.C:
			s.startStored(ctx)
		case <-s.watcher.tick.C:
			if s.process != nil {
				s.watcher.ask(ctx, h, s.process)
			}
		case a := <-s.watcher.answers:
			s.watcher.asking = false
			if a.of == s.process && ctx.Err() == nil {
				h.status.heard(s.process.pid(), a.err, a.master)
			}
		}
	}
}

const lockFile = ".lock"

// takeFolder makes the folder, locks it, and repairs it. It returns the HAProxy to adopt, if
// there is one.
func (h *Host) takeFolder(ctx context.Context) (left *orphan, release func(), err error) {
	release, err = h.lockFolder()
	if err != nil {
		return nil, nil, err
	}
	if !h.opts.NoStart {
		left, err = h.awaitOrphan(ctx)
	}
	if err == nil {
		err = h.recover(h.opts.NoStart || left != nil)
	}
	if err != nil {
		release()
	}
	return left, release, err
}

func (h *Host) lockFolder() (release func(), err error) {
	if err := h.store.prepare(); err != nil {
		return nil, err
	}
	// The lock is not in run: HAProxy may write there, and could replace the lock by a link.
	f, err := os.OpenFile(h.store.path(lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%s: %w", h.opts.Dir, config.ErrBusy)
		}
		return nil, err
	}
	return func() {
		// A process that another goroutine starts just now may have the file open for a
		// moment, too. Then closing it would not unlock it.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		_ = f.Close()
	}, nil
}

// CheckFolder makes the folder and says why Run could not take it.
func (h *Host) CheckFolder() error {
	if h.opts.NoStart {
		return nil // each Sync takes the folder and gives it back
	}
	release, err := h.lockFolder()
	if err == nil {
		release()
	}
	return fail("folder", err)
}

// startRequest asks Run for the running process. Only Run starts processes.
type startRequest struct {
	start bool            // start one if none runs
	reply chan startReply // with room for the reply
}

type startReply struct {
	process *process // nil if none runs
	fresh   bool     // it was started for this request, with the current files
	worker  int      // the worker that serves then
	err     error
}

// ask asks Run for the process. A Run that is busy with a start replies after the start. The
// caller has the turn.
func (h *Host) ask(ctx context.Context, start bool) startReply {
	r := startRequest{start: start, reply: make(chan startReply, 1)}
	begin := time.Now()
	patience := time.NewTicker(h.waitForRun)
	defer patience.Stop()
	requests := h.requests
	for {
		select {
		case requests <- r:
			requests = nil
		case reply := <-r.reply:
			h.learn()
			return reply
		case <-ctx.Done():
			return startReply{err: waited(ctx, begin, "Run, which starts HAProxy, did not answer")}
		case <-patience.C:
			if h.runs.Load() == 0 && ctx.Err() == nil {
				return startReply{err: &worded{"Run, which starts HAProxy, was not called", config.ErrNotRunning}}
			}
		}
	}
}

// supervisor is the state of one Run.
type supervisor struct {
	h       *Host
	process *process
	tried   time.Time   // end of the last start
	retry   *time.Timer // starts the stored configuration
	watcher *watcher
}

// restartPause is the least time between two starts.
const restartPause = time.Second

// stop ends the process, and removes its sockets and pipes.
func (s *supervisor) stop() {
	if s.process != nil {
		s.process.stop(s.h.grace)
	}
	s.h.status.ends()
	if !s.tried.IsZero() {
		_ = os.Remove(s.h.opts.MasterSocket)
		_ = os.Remove(s.h.opts.RuntimeSocket)
		_ = os.Remove(s.h.store.path(pipeName))
		_ = os.Remove(s.h.store.path(stdoutName))
	}
}

// lost handles the end of a process.
func (s *supervisor) lost() {
	s.process.kill() // kills its workers
	how := fmt.Sprintf("HAProxy (process %d) ended: %v", s.process.pid(), cmp.Or(s.process.err, errors.New("exit status 0")))
	s.h.status.becomes(Ended, s.process.pid(), s.h.explain("process", &worded{how, config.ErrNotRunning}, s.process.output.last()))
	s.process = nil
	s.retry.Reset(time.Until(s.tried.Add(restartPause)))
}

// startStored starts haproxy with the stored configuration.
func (s *supervisor) startStored(ctx context.Context) {
	if _, err := os.Stat(s.h.layout.ConfigPath()); err != nil || s.process != nil || ctx.Err() != nil {
		return
	}
	if reply := s.start(ctx); reply.err != nil && ctx.Err() == nil {
		s.h.status.becomes(StartFailed, 0, reply.err)
	}
}

// start starts haproxy unless it runs, and waits until it serves. If it does not start, the
// timer starts the stored configuration later.
func (s *supervisor) start(ctx context.Context) startReply {
	if s.process != nil && !s.process.hasEnded() {
		return startReply{process: s.process}
	}
	if s.process != nil {
		s.lost()
	}
	p, err := s.h.startProcess()
	worker := 0
	if err == nil {
		if worker, err = s.h.awaitStart(ctx, p); err != nil {
			p.stop(0)
		}
	}
	s.tried = time.Now()
	if err != nil {
		s.retry.Reset(restartPause) // by then a Sync has restored the former files
		return startReply{err: err}
	}
	s.retry.Stop()
	s.process = p
	s.h.status.becomes(Started, p.pid(), nil)
	return startReply{process: p, fresh: true, worker: worker}
}

// awaitStart waits until the master has a worker that serves. By then all sockets are bound.
func (h *Host) awaitStart(ctx context.Context, p *process) (worker int, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	procs, err := h.await(ctx, p, "it is ended, and started again", func(procs haproxyctl.Procs) bool {
		return procs.MasterPID == p.master.Pid && procs.WorkerPID() != 0
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = &worded{err.Error(), errors.Join(config.ErrNotRunning, err)}
	}
	if p.hasEnded() {
		err = &worded{"start failed", config.ErrReload} // clearer than an error about time
	}
	if err != nil {
		e := h.explain("start", err, p.output.last())
		if who := h.listensInstead(); who != "" {
			e.Output = strings.TrimSpace(e.Output + "\n" + who)
		}
		e.Output = strings.ReplaceAll(e.Output, "\n", "; ") // one line in the log
		return 0, e
	}
	return procs.WorkerPID(), nil
}
