package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/dataplane/internal/socket"
	"github.com/hapticsdk/haptic/internal/late"
)

// quick finds the changes for a process whose configuration is known. It reports whether
// runtime changes are all that is needed. It does not ask the master: byCommands asks
// afterwards whether that process still serves.
func (s *syncing) quick(ctx context.Context) (only bool, err error) {
	h := s.h
	if h.worker == 0 || !h.knows(h.worker) {
		return false, nil
	}
	if !h.opts.NoStart { // Run owns the folder
		s.process = h.ask(ctx, false).process
		if s.process == nil {
			return false, nil
		}
	}
	begin := time.Now()
	short, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	conn, err := socket.DialOnce(short, h.opts.RuntimeSocket, h.worker)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return false, &late.Error{What: fmt.Sprintf("the HAProxy worker (process %d) did not answer", h.worker), After: time.Since(begin)}
	case err != nil:
		return false, ctx.Err()
	}
	s.conn, s.pid, s.target.Version = conn, h.worker, conn.Version()
	if s.meet(); !h.knows(s.pid) {
		return false, nil
	}
	s.compare()
	s.ahead = change.ImpactOf(s.steps) == change.Runtime
	return s.ahead && !slices.ContainsFunc(change.RuntimeChanges(s.steps), s.returns), nil
}

// knows reports whether the configuration of that process is known.
func (h *Host) knows(pid int) bool { return pid == h.worker && h.running != nil && !h.doubt }

// byCommands changes the running process, and then stores the change. It returns why only a
// reload helps, or "".
//
// A crash in between loses nothing. If this process ends, the next one reads the changes from
// HAProxy, or reloads if HAProxy does not show them. If the host ends, so does HAProxy, and
// starts with the old files. If HAProxy restarts in between, it has another process id. The
// end of byCommands or the next Sync notices that.
func (s *syncing) byCommands(ctx context.Context, dos []change.Do) (why string, err error) {
	h := s.h
	sent := len(dos) > 0 || len(h.leaving) > 0 && s.conn != nil
	if sent {
		if err := s.limits.Fenced(); err != nil {
			return "", fail("fence", err)
		}
		h.doubt = true
		if !shows(dos) || len(h.leaving) > 0 {
			_ = h.mark(h.store.seen.generation) // on a full disk there is no mark
		}
		s.rename(dos)
		err = h.store.step("tell", func() error {
			s.out.Commands, err = s.apply(ctx, dos)
			return err
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return "", fail("runtime", err)
		case err != nil:
			return err.Error(), nil
		}
	}
	if err := fail("files", s.keep()); err != nil {
		if sent {
			h.running, h.doubt = s.to, false // the mark stays for the next process
			err = onlyTold(err)
		}
		return "", err
	}
	if sent {
		if procs, err := h.master.Procs(ctx); err != nil || procs.WorkerPID() != s.pid {
			return "the process was replaced meanwhile", nil
		}
	}
	s.settle(s.pid)
	return "", nil
}

// shows reports whether the next process can read all these changes back from HAProxy.
func shows(dos []change.Do) bool {
	return !slices.ContainsFunc(dos, func(do change.Do) bool {
		set, ok := do.(*change.SetServer)
		return !ok || slices.ContainsFunc(set.Set, func(set change.Setting) bool { return set.Row.Loaded == nil })
	})
}

// onlyTold adds to an error that only the process has the change.
func onlyTold(err error) error {
	e := *config.At("files", err)
	e.Output = "HAProxy has the change, and loses it if it starts or reloads before the next Sync has stored it"
	return &e
}

// keep stores what the process has. It puts back files that another program spoilt.
func (s *syncing) keep() error {
	if s.ahead {
		stored, err := s.load(false)
		if err != nil {
			return err
		}
		s.out.Steps = diff.WithDrift(s.steps, stored, s.running, s.desired, s.target)
	}
	write, err := s.h.store.stage(s.to, true)
	if err != nil {
		return err
	}
	s.write, s.out.Files = write, write.files
	if write.next == s.h.store.seen {
		return nil
	}
	if err = fail("fence", s.limits.Fenced()); err == nil {
		err = write.publish()
	}
	if err != nil {
		s.write = nil
		err = errors.Join(err, write.undo())
	}
	return err
}

// mark notes that a change is under way. After a crash, the next process goes back to the
// generation.
func (h *Host) mark(generation string) error {
	err := os.WriteFile(h.markPath(), []byte(generation), 0o600)
	h.doubt = h.doubt || err == nil
	return err
}

func (h *Host) unmark() {
	h.doubt = false
	_ = os.Remove(h.markPath())
}

func (h *Host) markPath() string { return h.store.path("run", "half-done") }

// recover goes back to the last good configuration if a process was killed during a change.
// If its HAProxy lives, the next Sync reloads that configuration. It needs no turn.
func (h *Host) recover(lives bool) error {
	before, err := os.ReadFile(h.markPath())
	if err != nil {
		return h.store.clean()
	}
	if _, err := os.Stat(h.store.path(string(before), mainFile)); err == nil && stored.Match(before) {
		if err := h.store.flip(string(before)); err != nil {
			return err
		}
	}
	if lives {
		h.recovered.Store(true)
		return h.store.clean()
	}
	return errors.Join(os.Remove(h.markPath()), h.store.clean())
}
