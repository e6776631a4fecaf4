package host

import (
	"context"
	"errors"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// probe asks for the processes. A master that reloads because another program
// told it to is away for a moment, or has a worker that is loading.
func (s *syncing) probe(ctx context.Context) (procs haproxyctl.Procs, err error) {
	h := s.h
	if !h.opts.NoStart {
		reply := h.ask(ctx, false)
		if s.process = reply.process; s.process == nil {
			return procs, fail("start", reply.err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	end := poll(ctx, s.process.done(), func() bool {
		procs, err = h.master.Procs(ctx)
		if h.opts.NoStart {
			return len(procs.Loading) == 0
		}
		return err == nil && procs.WorkerPID() != 0
	})
	if s.process.hasEnded() {
		s.process = nil
		return haproxyctl.Procs{}, nil
	}
	if err := errors.Join(end, err); err != nil {
		return procs, fail("probe", errors.Join(config.ErrNotRunning, err))
	}
	return procs, nil
}

// look finds out what is stored, what runs, and what has to happen.
func (s *syncing) look(ctx context.Context, procs haproxyctl.Procs, dry bool) (err error) {
	h := s.h
	if s.stored, err = h.store.load(); err != nil && !errors.Is(err, config.ErrInvalidConfig) {
		return fail("read", err)
	}
	stored := s.stored
	if stored == nil {
		stored = config.Empty()
	}
	s.pid, s.running = procs.WorkerPID(), stored
	known := s.pid != 0 && s.pid == h.worker && h.running != nil && !h.doubt
	if known {
		s.running = h.running
	}
	if s.conn, s.target, err = h.dial(ctx, procs); err != nil {
		return fail("probe", err)
	}
	if s.conn != nil && (dry || !known || s.running.Hash() == s.desired.Hash()) {
		found, err := s.conn.Read(ctx, h.layout, s.running)
		if err != nil {
			return fail("probe", err)
		}
		if s.pid == h.worker {
			for ref := range h.leaving {
				delete(found.Servers, ref)
			}
		}
		s.running = diff.Running(s.running, found)
	}
	s.steps = diff.Compare(s.running, s.desired, s.target)
	s.steps = diff.WithDrift(s.steps, stored, s.running, s.desired, s.target)
	for i := range s.steps {
		if s.pid == 0 && !h.opts.NoStart {
			s.steps[i].Impact, s.steps[i].Reason, s.steps[i].Do = change.Start, "", nil
		}
	}
	return nil
}

func (s *syncing) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
}
