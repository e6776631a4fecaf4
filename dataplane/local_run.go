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
)

// startRequest asks Run, which alone starts processes, for the running one.
type startRequest struct {
	start bool            // start one if none runs
	reply chan startReply // with room for the reply
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
		err = l.awaitNobody(ctx)
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

// orphansEnd is how long a HAProxy may take to end whose Run was killed.
const orphansEnd = 2 * time.Second

// awaitNobody waits until no HAProxy answers on the master socket. One that
// stays was started by somebody else: to start another one would take its
// sockets away.
func (l *Local) awaitNobody(ctx context.Context) error {
	deadline := time.Now().Add(orphansEnd)
	for {
		procs, err := l.master.Procs(ctx)
		switch {
		case err != nil, ctx.Err() != nil:
			return nil
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
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
	lastsLong  = 10 * time.Second // a HAProxy that ran that long starts anew without a pause
)

func (s *supervisor) loop(ctx context.Context) {
	l := s.l
	retry := time.NewTimer(0) // starts what is stored
	defer retry.Stop()
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	for {
		var ended chan struct{}
		if s.process != nil {
			ended = s.process.ended
		}
		select {
		case <-ctx.Done():
			if s.process != nil {
				s.process.stop(true)
			}
			if !s.started.IsZero() { // or else they are not ours
				_ = os.Remove(l.opts.MasterSocket)
				_ = os.Remove(l.opts.RuntimeSocket)
			}
			return
		case <-ended:
			s.process.kill() // its workers
			l.log.Warn("haproxy ended", "error", s.process.err, "output", l.explain("", nil, s.process.output.since(0)).Output)
			s.process = nil
			if time.Since(s.started) > lastsLong {
				s.pause = 0
			}
			retry.Reset(s.nextPause())
		case <-tidy.C:
			if s.process != nil {
				l.tidy(ctx)
			}
		case r := <-l.requests:
			if r.start {
				reply := s.start(ctx)
				if reply.err != nil {
					retry.Reset(firstPause) // with the files of before, which Sync puts back
				}
				r.reply <- reply
			} else {
				r.reply <- startReply{process: s.process}
			}
		case <-retry.C:
			if s.process == nil && l.store.exists() {
				if reply := s.start(ctx); reply.err != nil && ctx.Err() == nil {
					l.log.Error("haproxy does not start", "error", reply.err)
					retry.Reset(s.nextPause())
				}
			}
		}
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

// ask asks Run for the process, and to start one if start is set.
func (l *Local) ask(ctx context.Context, start bool) startReply {
	r := startRequest{start: start, reply: make(chan startReply, 1)}
	timer := time.NewTimer(waitForRun)
	defer timer.Stop()
	select {
	case l.requests <- r:
	case <-timer.C:
		return startReply{err: fmt.Errorf("%w: Local.Run is not running, or still busy with a start", ErrNotRunning)}
	case <-ctx.Done():
		return startReply{err: ctx.Err()}
	}
	select {
	case reply := <-r.reply:
		return reply
	case <-ctx.Done():
		return startReply{err: ctx.Err()}
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
