package dataplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// startRequest asks Run, which alone starts processes, for the running one.
type startRequest struct {
	start   bool            // start one if none runs
	settled <-chan struct{} // closed when the files are in order again after a start that failed
	reply   chan startReply // with room for the reply
}

type startReply struct {
	process *process // nil if none runs
	fresh   bool     // it was started for this request, with the files of now
	err     error
}

// ErrBusy says that another process, or another Run, has the folder.
var ErrBusy = errors.New("the folder is in use by another process")

// Run starts HAProxy as soon as a configuration is stored, starts it again when
// it ends, and stops it when ctx ends: softly at first, for good after a little
// more than a second. It returns nil then, and leaves no process behind. With
// [LocalOptions.NoStart] it only waits for ctx to end.
//
// A HAProxy that cannot start with the stored configuration is tried again
// with growing pauses, and at once by the next [Local.Sync].
func (l *Local) Run(ctx context.Context) error {
	if l.opts.NoStart {
		tidy := time.NewTicker(tidyEvery)
		defer tidy.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tidy.C:
				l.tidy(ctx)
			}
		}
	}
	l.runs.Add(1)
	defer l.runs.Add(-1)
	// It needs no turn: every Sync asks Run before it touches the folder.
	release, err := l.takeFolder(ctx)
	if err != nil {
		return l.fail("folder", err)
	}
	defer release()
	// See startProcess.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &supervisor{l: l}
	s.loop(ctx)
	return nil
}

// takeFolder makes the folder, locks it, and puts it in order.
func (l *Local) takeFolder(ctx context.Context) (release func(), err error) {
	if err := l.store.prepare(); err != nil {
		return nil, err
	}
	release, err = l.flock()
	if err != nil {
		return nil, err
	}
	if !l.opts.NoStart {
		err = l.awaitNobody(ctx, orphansEnd)
	}
	if err == nil {
		err = l.recover()
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// orphansEnd is how long a HAProxy may take to end whose Run was killed: on a
// busy host, too, where its workers get no processor for seconds.
const orphansEnd = 10 * time.Second

// awaitNobody waits until nobody listens on the master socket. A HAProxy that
// stays was started by somebody else: to start another one would take its
// sockets away. One that only does not answer is still there.
func (l *Local) awaitNobody(ctx context.Context, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		procs, err := l.master.Procs(ctx)
		switch {
		case haproxyctl.Absent(err), ctx.Err() != nil:
			return nil
		case time.Now().After(deadline) && err != nil:
			return fmt.Errorf("%s: %w: whoever listens on the master socket does not answer: %w", l.opts.Dir, ErrBusy, err)
		case time.Now().After(deadline):
			return fmt.Errorf("%s: %w: a HAProxy that somebody else started runs here, process %d; LocalOptions.NoStart attaches to it",
				l.opts.Dir, ErrBusy, procs.MasterPID)
		}
		wait(20 * time.Millisecond)
	}
}

// recover puts the folder in order. What a HAProxy that has outlived a
// controller has loaded, the old files or the new ones, nobody knows then.
func (l *Local) recover() error {
	return l.store.recover(func() {
		if l.opts.NoStart {
			l.mark(true)
		}
	})
}

func (l *Local) flock() (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(l.opts.Dir, "run", "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("%s: %w", l.opts.Dir, err)
	}
	return func() {
		// Closing would not do: a process that another goroutine is starting
		// just now has the file for a moment, too.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		_ = f.Close()
	}, nil
}

// supervisor is the state of one Run.
type supervisor struct {
	l       *Local
	process *process
	started time.Time
	pause   time.Duration
	retry   *time.Timer     // starts what is stored
	settled <-chan struct{} // of a start that failed; nil if none did
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
	lastsLong  = 10 * time.Second // a HAProxy that ran that long starts anew without a pause
)

func (s *supervisor) loop(ctx context.Context) {
	s.retry = time.NewTimer(maxPause)
	defer s.retry.Stop()
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	// Before the first request, which may be about to store something else.
	s.startStored(ctx)
	for {
		var ended chan struct{}
		if s.process != nil {
			ended = s.process.ended
		}
		select {
		case <-ctx.Done():
			s.stop()
			return
		case <-ended:
			s.lost()
		case <-tidy.C:
			if s.process != nil {
				s.l.tidy(ctx)
			}
		case r := <-s.l.requests:
			s.take(ctx, r)
		case <-s.settled:
			s.settled = nil
			s.retry.Reset(firstPause)
		case <-s.retry.C:
			s.startStored(ctx)
		}
	}
}

// stop ends the process, and what it leaves behind.
func (s *supervisor) stop() {
	if s.process != nil {
		s.process.stop(true)
	}
	if !s.started.IsZero() { // or else they are not ours
		_ = os.Remove(s.l.opts.MasterSocket)
		_ = os.Remove(s.l.opts.RuntimeSocket)
	}
}

// lost is for a process that has ended.
func (s *supervisor) lost() {
	l := s.l
	s.process.kill() // its workers
	l.log.Warn("haproxy ended", "error", s.process.err, "output", l.explain("", nil, s.process.output.since(0)).Output)
	s.process = nil
	if time.Since(s.started) > lastsLong {
		s.pause = 0
	}
	s.retry.Reset(s.nextPause())
}

// take answers a request. After a start that failed, the next one waits for the
// files of before, which Sync puts back.
func (s *supervisor) take(ctx context.Context, r startRequest) {
	if !r.start {
		r.reply <- startReply{process: s.process}
		return
	}
	reply := s.start(ctx)
	if reply.err != nil {
		s.retry.Stop()
		s.settled = r.settled
	}
	r.reply <- reply
}

// startStored starts haproxy with what is stored, and once more after a pause
// if it does not start.
func (s *supervisor) startStored(ctx context.Context) {
	s.retry.Stop()
	if s.process != nil || ctx.Err() != nil || !s.l.store.exists() {
		return
	}
	if reply := s.start(ctx); reply.err != nil && ctx.Err() == nil {
		s.l.log.Error("haproxy does not start", "error", reply.err)
		s.retry.Reset(s.nextPause())
	}
}

// nextPause is how long to wait before the next start: not at all at first, then
// twice as long each time.
func (s *supervisor) nextPause() time.Duration {
	pause := s.pause
	s.pause = min(max(2*pause, firstPause), maxPause)
	return pause
}

// start starts haproxy unless it runs, and waits until it serves.
func (s *supervisor) start(ctx context.Context) startReply {
	if s.process != nil && !s.process.hasEnded() {
		return startReply{process: s.process}
	}
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
	p, err := s.l.startProcess()
	if err != nil {
		return startReply{err: err}
	}
	if err := s.l.awaitStart(ctx, p); err != nil {
		p.stop(false)
		return startReply{err: err}
	}
	s.process, s.started = p, time.Now()
	s.l.log.Info("haproxy started", "pid", p.cmd.Process.Pid)
	return startReply{process: p, fresh: true}
}

// waitForRun is how long a Sync waits for Run to begin.
const waitForRun = 5 * time.Second

// ask asks Run for the process, and to start one if the request says so.
func (l *Local) ask(ctx context.Context, r startRequest) startReply {
	r.reply = make(chan startReply, 1)
	if err := l.hand(ctx, r); err != nil {
		return startReply{err: err}
	}
	select {
	case reply := <-r.reply:
		return reply
	case <-ctx.Done():
		return startReply{err: ctx.Err()}
	}
}

// hand gives a request to Run. One that is busy with a start takes it when that
// is over.
func (l *Local) hand(ctx context.Context, r startRequest) error {
	late := time.NewTicker(waitForRun)
	defer late.Stop()
	for {
		select {
		case l.requests <- r:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			if err := ctx.Err(); err != nil {
				return err
			}
			if l.runs.Load() == 0 {
				return fmt.Errorf("%w: Local.Run is not running", ErrNotRunning)
			}
		}
	}
}

// pollEvery is how often sockets are asked for what they give no notice of.
const pollEvery = 2 * time.Millisecond

// awaitStart waits until the master has a worker that serves, which is after
// all sockets have been bound. It needs nothing of the configuration.
func (l *Local) awaitStart(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout, fmt.Errorf("%w: it was not ready within %s", ErrNotRunning, l.timeout))
	defer cancel()
	for {
		select {
		case <-p.ended:
			return l.explain("start", ErrReload, p.output.since(0))
		default:
		}
		if procs, err := l.master.Procs(ctx); err == nil && procs.MasterPID == p.cmd.Process.Pid && procs.WorkerPID() != 0 {
			return nil
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-p.ended:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if p.hasEnded() {
				continue // that it ended says more than that it took too long
			}
			return l.explain("start", context.Cause(ctx), p.output.since(0))
		}
		timer.Stop()
	}
}
