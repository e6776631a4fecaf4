package host

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/dataplane/internal/socket"
)

// syncing is one Sync or DryRun under way.
type syncing struct {
	h       *Host
	desired *config.Config
	limits  change.Limits
	out     change.Outcome

	stored  *config.Config // nil if there is none, or another program spoilt it
	running *config.Config // never nil
	process *process       // nil if none runs, or with NoStart
	pid     int            // the worker that serves; 0 if none does
	target  change.Target
	conn    *socket.Worker // nil if none answers
	steps   []change.Step
}

// DryRun says what [Host.Sync] would do, and changes nothing. HAProxy need not
// run.
func (h *Host) DryRun(ctx context.Context, desired *config.Config) ([]change.Step, error) {
	if err := h.lock(ctx); err != nil {
		return nil, err
	}
	defer h.unlock()
	s := &syncing{h: h, desired: desired}
	procs, _ := h.master.Procs(ctx)
	err := s.look(ctx, procs, true)
	s.close()
	return s.steps, err
}

// Sync brings HAProxy to the desired configuration, and returns when it serves
// with it. A running HAProxy is told what changes without a reload, and then it is
// stored. Everything else is stored first, and then takes one reload.
//
// If HAProxy cannot load the configuration, the error wraps [config.ErrReload] and
// has HAProxy's words. The files are as before and the old process serves on.
//
// Sync needs [Host.Run]. The Outcome comes with an error, too, and says how far it
// got.
func (h *Host) Sync(ctx context.Context, desired *config.Config, limits change.Limits) (*change.Outcome, error) {
	s := &syncing{h: h, desired: desired, limits: limits}
	if err := h.lock(ctx); err != nil {
		return &s.out, err
	}
	defer h.unlock()
	if h.opts.NoStart {
		release, err := h.takeFolder(ctx)
		if err != nil {
			return &s.out, fail("folder", err)
		}
		defer release()
	}
	procs, err := s.probe(ctx)
	if err == nil {
		err = s.look(ctx, procs, false)
	}
	if err == nil {
		err = s.run(ctx)
	}
	s.close()
	return &s.out, fail("sync", err)
}

const halfDone = "an earlier change may be half done"

// run takes the steps.
func (s *syncing) run(ctx context.Context) error {
	if s.pid != s.h.worker { // it knows nothing of what the one of before was told
		s.h.worker, s.h.running, s.h.leaving = s.pid, nil, make(socket.Leaving)
	}
	s.out.Steps, s.out.WorkerPID = s.steps, s.pid
	to, steps, why := s.desired, s.steps, "" // why it takes a reload, whatever the steps are
	switch {
	case s.pid == 0:
		why = "HAProxy is not running"
	case s.h.doubt:
		why = halfDone
	}
	if s.limits.NoReload && why != "" {
		return s.leave(why)
	}
	if s.limits.NoReload && change.ImpactOf(steps) == change.Reload {
		to = diff.RuntimePart(s.running, s.desired, s.steps, s.target)
		steps, s.out.Left = diff.Compare(s.running, to, s.target), diff.Compare(to, s.desired, s.target)
		if to == s.running {
			return nil
		}
	}
	w, err := s.stage(to)
	if err != nil {
		return err
	}
	if why == "" && change.ImpactOf(steps) != change.Reload {
		if why, err = s.byCommands(ctx, w, change.Tells(steps)); why == "" || err != nil {
			return err
		}
		s.h.log.Warn("a runtime change takes a reload", "reason", why)
	}
	if s.limits.NoReload {
		return errors.Join(s.leave(why), fail("files", w.undo()))
	}
	if s.pid == 0 && !s.h.opts.NoStart {
		return s.byStart(ctx, w)
	}
	return s.byReload(ctx, w, why)
}

// leave leaves all steps, and a reload for that reason.
func (s *syncing) leave(reason string) error {
	reload := change.Step{Action: change.Update, Kind: "process", Impact: change.Reload, Reason: reason}
	s.out.Left = append(slices.Clone(s.steps), reload)
	return nil
}

// stage makes the new files beside those of now.
func (s *syncing) stage(to *config.Config) (*write, error) {
	if err := s.limits.Fenced(); err != nil {
		return nil, fail("fence", err)
	}
	w, err := s.h.store.stage(to)
	if err == nil {
		s.out.Files = w.files
	}
	return w, fail("files", err)
}

// begin notes before a change that it may stay half done.
func (s *syncing) begin(w *write) error {
	if err := s.limits.Fenced(); err != nil {
		return fail("fence", errors.Join(err, w.undo()))
	}
	if err := s.h.mark(w.before); err != nil {
		return fail("files", errors.Join(err, w.undo()))
	}
	return nil
}

// publish stores the new files.
func (s *syncing) publish(w *write) error {
	if err := s.begin(w); err != nil {
		return err
	}
	if err := w.publish(); err != nil {
		return fail("files", errors.Join(err, w.undo()))
	}
	return nil
}

// byCommands tells the running process what changes, and stores it. It returns
// why only a reload helps, or "".
func (s *syncing) byCommands(ctx context.Context, w *write, tells []*change.Do) (why string, err error) {
	h := s.h
	if len(tells) > 0 || len(h.leaving) > 0 && s.conn != nil {
		if err := s.begin(w); err != nil {
			return "", err
		}
		s.out.Commands, err = s.conn.Apply(ctx, h.layout, h.leaving, tells)
		switch {
		case ctx.Err() != nil:
			return "", fail("runtime", errors.Join(ctx.Err(), w.undo()))
		case err != nil:
			return err.Error(), nil
		}
	}
	if w.next != nil {
		if err := s.publish(w); err != nil {
			return "", err
		}
	}
	if h.doubt {
		if procs, err := h.master.Procs(ctx); err != nil || procs.WorkerPID() != s.pid {
			return "the process was replaced meanwhile", nil
		}
	}
	s.settle(w, s.pid)
	return "", nil
}

// byStart stores the configuration and starts HAProxy with it.
func (s *syncing) byStart(ctx context.Context, w *write) error {
	if err := s.publish(w); err != nil {
		return err
	}
	reply := s.h.ask(ctx, true)
	if reply.err != nil {
		return fail("start", errors.Join(reply.err, w.undo()))
	}
	s.process = reply.process
	if !reply.fresh {
		return s.byReload(ctx, w, "HAProxy was started meanwhile, perhaps with the files of before")
	}
	procs, err := s.h.master.Procs(ctx)
	if err != nil || procs.WorkerPID() == 0 {
		return fail("verify", errors.Join(config.ErrNotRunning, err, w.undo()))
	}
	s.out.Started = true
	s.settle(w, procs.WorkerPID())
	return nil
}

// byReload stores the configuration and reloads HAProxy with it.
func (s *syncing) byReload(ctx context.Context, w *write, why string) error {
	h := s.h
	s.out.Fallback = why
	if err := s.publish(w); err != nil {
		return err
	}
	pid, err := s.reload(ctx)
	if err == nil {
		s.out.Reloads = 1
		s.settle(w, pid)
		return nil
	}
	undone := w.undo()
	if undone != nil || !errors.Is(err, config.ErrReload) {
		return errors.Join(err, undone) // a reload whose end is not known may still succeed
	}
	if why == "" {
		h.unmark() // no commands went before
	}
	// A master of HAProxy 3.1 and later whose last load failed does not hand its
	// unix sockets to the next worker, which then cannot bind them.
	if s.target.Version.Compare(change.HAProxy31) < 0 || s.stored == nil {
		return err
	}
	pid, again := s.reload(ctx)
	if again != nil {
		return errors.Join(err, again, h.mark(w.before))
	}
	s.settle(&write{desired: s.stored}, pid)
	s.out.Reloads, s.out.Hash = 1, ""
	return err
}

// settle remembers that the configuration is stored and runs.
func (s *syncing) settle(w *write, pid int) {
	h := s.h
	if pid != h.worker {
		h.leaving = make(socket.Leaving) // they went with their process
	}
	h.running, h.worker = w.desired, pid
	h.unmark()
	s.out.Hash, s.out.WorkerPID = w.desired.Hash(), pid
	if err := w.finish(); err != nil {
		h.log.Warn("files of an earlier configuration stay", "error", err)
	}
}

// mark notes that a change is under way. A process that comes after this one goes
// back to the generation.
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

// recover goes back to the last good configuration, if there is one and a process
// was killed while it changed something.
func (h *Host) recover() error {
	before, err := os.ReadFile(h.markPath())
	if err != nil {
		return h.store.clean()
	}
	if _, err := os.Stat(h.store.path(string(before), mainFile)); err == nil && stored.Match(before) {
		if err := h.store.flip(string(before)); err != nil {
			return err
		}
	}
	if h.opts.NoStart {
		h.doubt = true // its HAProxy lives on
		return h.store.clean()
	}
	return errors.Join(os.Remove(h.markPath()), h.store.clean())
}
