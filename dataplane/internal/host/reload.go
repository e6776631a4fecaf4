package host

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// unknownEnd is the part of an error for a reload that has not ended yet.
const unknownEnd = "the reload may end yet, and the next Sync finds out"

// byFiles stores the configuration and makes HAProxy load it.
func (s *syncing) byFiles(ctx context.Context, why string) (err error) {
	if s.limits.NoReload {
		s.leave(why)
		return s.undo()
	}
	if err := s.limits.Fenced(); err != nil {
		return fail("fence", err)
	}
	if s.write == nil {
		if s.write, err = s.h.store.stage(s.to, false); err != nil {
			return s.withoutFiles(ctx, why, fail("files", err))
		}
		s.out.Files = s.write.files
	}
	done := false
	if err = s.publish(); err == nil {
		done, err = s.loads(ctx, why)
	}
	if !done {
		err = errors.Join(err, s.undo())
	}
	return err
}

// undo goes back to the former files.
func (s *syncing) undo() error {
	if s.write == nil {
		return nil
	}
	return fail("files", s.write.undo())
}

// loads makes HAProxy load the stored files. It reports false if the files must not stay.
func (s *syncing) loads(ctx context.Context, why string) (done bool, err error) {
	if s.pid == 0 && !s.h.opts.NoStart {
		fresh, err := s.byStart(ctx)
		if fresh || err != nil {
			return err == nil, err
		}
		why = "HAProxy was started meanwhile, perhaps with the previous files"
	}
	return s.byReload(ctx, why)
}

// byStart starts HAProxy. It reports false if HAProxy runs already.
func (s *syncing) byStart(ctx context.Context) (fresh bool, err error) {
	reply := s.h.ask(ctx, true)
	s.process = reply.process
	if !reply.fresh {
		return false, fail("start", reply.err)
	}
	s.out.Started = true
	s.settle(reply.worker)
	return true, nil
}

// byReload reloads HAProxy.
func (s *syncing) byReload(ctx context.Context, why string) (done bool, err error) {
	h := s.h
	s.out.Fallback = why
	pid, err := s.reload(ctx)
	if err == nil {
		h.causes[s.pid] = s.owners()
		h.failed, s.out.Reloads = false, 1
		s.settle(pid)
		return true, nil
	}
	again := h.failed
	h.failed = errors.Is(err, config.ErrReload)
	if undone := fail("files", s.write.undo()); undone != nil || !h.failed {
		return true, errors.Join(err, undone) // a reload whose end is unknown may still succeed
	}
	if why == "" && s.running == s.stored {
		h.unmark() // the process got no commands, neither now nor from a Sync that could not store them
	}
	// If a master of HAProxy 3.1 or later failed twice in a row, it does not hand its unix
	// sockets to the next worker. That worker then cannot bind them.
	if !again || s.target.Version.Compare(change.HAProxy31) < 0 || s.stored == nil {
		return true, err
	}
	pid, worse := s.reload(ctx)
	if worse != nil {
		return true, errors.Join(err, worse, h.mark(s.write.before))
	}
	h.failed, s.to, s.write.next = false, s.stored, h.store.seen
	s.settle(pid)
	s.out.Reloads, s.out.Hash = 1, ""
	return true, err
}

// publish stores the new files. Before that, it notes that the change may stay half done.
func (s *syncing) publish() error {
	if err := s.limits.Fenced(); err != nil {
		return fail("fence", err)
	}
	if err := s.h.mark(s.write.before); err != nil {
		return fail("files", err)
	}
	return fail("files", s.write.publish())
}

// reload tells the master to reload and follows it to the end. Its error wraps
// [config.ErrReload] if HAProxy could not load the configuration.
func (s *syncing) reload(ctx context.Context) (pid int, err error) {
	h := s.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	h.reloads.Store(true)
	defer h.reloads.Store(false)
	var before, after haproxyctl.Procs
	outcome, words := haproxyctl.Busy, []string(nil)
	for outcome == haproxyctl.Busy {
		// A reload by another program ends first: it may use the old files.
		if before, err = h.await(ctx, s.process, keeps, func(p haproxyctl.Procs) bool { return len(p.Loading) == 0 }); err != nil {
			return 0, fail("reload", err)
		}
		if s.process != nil {
			s.process.output.forget()
		}
		outcome, words, _ = h.master.Reload(ctx) // up to 2.6 the master may break the connection
	}
	if outcome != haproxyctl.Failed {
		after, err = h.await(ctx, s.process, unknownEnd, func(p haproxyctl.Procs) bool { return p.MasterPID != before.MasterPID || p.Reloaded(before) })
		switch {
		case err != nil:
			return 0, fail("reload", err)
		case after.MasterPID != before.MasterPID:
			return 0, fail("reload", errEnded)
		case after.WorkerPID() != before.WorkerPID() && after.WorkerPID() != 0:
			return after.WorkerPID(), nil
		}
	}
	return 0, h.explain("reload", config.ErrReload, s.words(ctx, words))
}

// printedLate bounds how long output of haproxy may take through the pipe, on a machine
// without a free processor.
const printedLate = 10 * time.Second

// words returns HAProxy's words about a failed reload. The answer of the master may have them
// already.
func (s *syncing) words(ctx context.Context, said []string) []string {
	switch {
	case slices.ContainsFunc(said, isAlert):
		return said
	case s.process != nil:
		_ = pollFor(printedLate, func() bool {
			return s.process.hasEnded() || ctx.Err() != nil || slices.ContainsFunc(s.process.output.last(), haproxyctl.ReloadFailed)
		})
		return s.process.output.last()
	}
	// Another program gets the output of HAProxy.
	binary, err := haproxyctl.FindBinary(s.h.opts.Binary)
	if err != nil {
		return []string{err.Error()}
	}
	check := exec.CommandContext(ctx, binary, "-c", "-f", s.h.layout.ConfigPath())
	check.Env = haproxyctl.Environment(s.h.opts.Env)
	if s.h.account != nil {
		check.SysProcAttr = &syscall.SysProcAttr{Credential: s.h.account.Credential()}
	}
	out, _ := check.CombinedOutput()
	return strings.Split(string(out), "\n")
}
