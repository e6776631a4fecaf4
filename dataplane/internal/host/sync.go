package host

import (
	"context"
	"errors"
	"slices"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/dataplane/internal/socket"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// syncing is one Sync or DryRun under way.
type syncing struct {
	h       *Host
	desired *config.Config
	limits  change.Limits
	out     change.Outcome

	stored  *config.Config // nil if there is none, or another program spoilt it
	ahead   bool           // the process gets the changes before stored is known
	running *config.Config // never nil
	process *process       // nil if none runs, or with NoStart
	pid     int            // the worker that serves; 0 if none
	target  change.Target
	conn    *socket.Worker // nil if none answers
	steps   []change.Step
	held    error          // why no reload is possible now
	to      *config.Config // the configuration to store and run
	write   *write
}

// DryRun says what [Host.Sync] would do, and changes nothing. HAProxy need not
// run.
func (h *Host) DryRun(ctx context.Context, desired *config.Config) ([]change.Step, error) {
	if err := h.lock(ctx); err != nil {
		return nil, err
	}
	defer h.unlock()
	s := &syncing{h: h, desired: desired}
	defer s.close()
	procs, _ := h.master.Procs(ctx)
	err := s.look(ctx, procs, true)
	return s.steps, fail("probe", err)
}

// Sync brings HAProxy to the desired configuration, as Local.Sync in package dataplane says.
// It returns an Outcome even with an error.
func (h *Host) Sync(ctx context.Context, desired *config.Config, limits change.Limits) (*change.Outcome, error) {
	s := &syncing{h: h, desired: desired, limits: limits}
	if err := h.lock(ctx); err != nil {
		return &s.out, err
	}
	defer h.unlock()
	defer s.close()
	if h.opts.NoStart {
		_, release, err := h.takeFolder(ctx)
		if err != nil {
			return &s.out, fail("folder", err)
		}
		defer release()
		h.learn()
	}
	if err := s.begin(ctx); err != nil {
		return &s.out, fail("probe", err)
	}
	err := fail("sync", s.run(ctx))
	if err == nil && len(s.out.Left) > 0 && !limits.NoReload {
		err = s.held
	}
	return &s.out, err
}

// begin finds out what has to change.
func (s *syncing) begin(ctx context.Context) error {
	if only, err := s.quick(ctx); only || err != nil {
		return err
	}
	procs, err := s.probe(ctx)
	if err == nil {
		err = s.look(ctx, procs, false)
	}
	if err == nil {
		s.mayReload(procs)
	}
	return err
}

func (s *syncing) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	s.conn = nil
}

// dial connects to the stats socket of the worker, and finds out the version of HAProxy. If
// no socket answers, every change takes a reload. Its only error is the end of ctx.
func (s *syncing) dial(ctx context.Context, procs haproxyctl.Procs) (err error) {
	pid := procs.WorkerPID()
	s.target.Version = change.ParseVersion(procs.Version)
	if pid == 0 {
		return nil
	}
	s.conn, err = socket.Dial(ctx, s.h.opts.RuntimeSocket, pid, func(ctx context.Context) bool {
		now, err := s.h.master.Procs(ctx)
		return err == nil && now.WorkerPID() == pid && len(now.Old)+len(now.Loading) == 0
	})
	if err == nil {
		s.target.Version = s.conn.Version()
		return nil
	}
	s.h.log.Debug("the stats socket does not answer", "error", err)
	s.target.Silent = true
	if ctx.Err() != nil {
		return err
	}
	return nil
}

// probe asks for the processes. If another program made the master reload, the master does
// not answer for a moment, or has a worker that is loading.
func (s *syncing) probe(ctx context.Context) (procs haproxyctl.Procs, err error) {
	h := s.h
	ready := func(p haproxyctl.Procs) bool { return p.WorkerPID() != 0 }
	if h.opts.NoStart {
		ready = func(p haproxyctl.Procs) bool { return len(p.Loading) == 0 }
		switch _, err = h.master.Procs(ctx); {
		case haproxyctl.Absent(err):
			return procs, &worded{"no HAProxy listens on the master socket: " + err.Error(), config.ErrNotRunning}
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return procs, err
		case err != nil: // perhaps it does not answer because it reloads
			return procs, &worded{"the HAProxy master gives no answer: " + err.Error(), errors.Join(config.ErrSilent, err)}
		}
	} else {
		reply := h.ask(ctx, false)
		s.process = reply.process
		if s.process == nil {
			return procs, fail("start", reply.err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	procs, err = h.await(ctx, s.process, keeps, ready)
	if s.process.hasEnded() {
		s.process = nil
		return haproxyctl.Procs{}, nil
	}
	return procs, err
}

// look finds out what runs, what is stored, and which steps are needed. If the process is
// known and only needs runtime changes, keep reads the stored files later.
func (s *syncing) look(ctx context.Context, procs haproxyctl.Procs, dry bool) (err error) {
	h := s.h
	if pid := procs.WorkerPID(); s.conn == nil || s.pid != pid {
		s.close()
		s.pid, s.running = pid, nil
		if err := s.dial(ctx, procs); err != nil {
			return err
		}
	}
	s.meet()
	known := s.pid != 0 && h.knows(s.pid)
	if known && s.running == nil {
		s.compare()
	}
	s.ahead = known && !dry && change.ImpactOf(s.steps) == change.Runtime
	if s.ahead {
		return nil
	}
	stored, err := s.load(true)
	if err != nil {
		return err
	}
	was := s.running
	if !known {
		s.running = stored
		h.doubt = h.doubt || s.pid != 0 && !namesFit(s.target.Names, stored)
	}
	if s.conn != nil && (dry || !known || len(s.steps) == 0) {
		found, err := s.conn.Read(ctx, h.layout, s.running)
		if err != nil {
			return err
		}
		for ref := range h.leaving {
			delete(found.Servers, ref)
		}
		s.running = diff.Running(s.running, found)
	}
	if s.running != was {
		s.steps = diff.Compare(s.running, s.desired, s.target)
	}
	s.steps = diff.WithDrift(s.steps, stored, s.running, s.desired, s.target)
	for i := range s.steps {
		if s.pid == 0 && !h.opts.NoStart {
			s.steps[i].Impact, s.steps[i].Reason, s.steps[i].Do = change.Start, "", nil
		}
	}
	return nil
}

// compare finds the steps from the known configuration of the process.
func (s *syncing) compare() {
	s.running = s.h.running
	s.steps = diff.Compare(s.running, s.desired, s.target)
}

// load reads the stored configuration. It returns an empty one if there is none, or if
// another program spoilt it.
func (s *syncing) load(all bool) (stored *config.Config, err error) {
	s.stored, err = s.h.store.load(all)
	if err != nil && !errors.Is(err, config.ErrInvalidConfig) {
		return nil, fail("read", err)
	}
	if s.stored == nil {
		return config.Empty(), nil
	}
	return s.stored, nil
}

const halfDone = "an earlier change may be half done"

// run carries out the steps.
func (s *syncing) run(ctx context.Context) (err error) {
	h := s.h
	s.out.Steps, s.out.WorkerPID = s.steps, s.pid
	s.to = s.desired
	steps, why := s.steps, "" // why a reload is needed, whatever the steps are
	switch {
	case s.pid == 0:
		why = "HAProxy is not running"
	case h.doubt:
		why = halfDone
	}
	if s.limits.NoReload && why != "" {
		s.leave(why)
		return nil
	}
	if s.limits.NoReload {
		if err := s.holdReturning(ctx); err != nil {
			return err
		}
	}
	if s.limits.NoReload && change.ImpactOf(steps) == change.Reload {
		s.to = diff.RuntimePart(s.running, s.desired, s.steps, s.target)
		steps = diff.Compare(s.running, s.to, s.target)
		then := s.target
		then.Names = then.Names.After(change.RuntimeChanges(steps))
		s.out.Left = diff.Compare(s.to, s.desired, then)
		if s.to == s.running {
			return nil
		}
	}
	if why == "" && change.ImpactOf(steps) != change.Reload {
		if why, err = s.byCommands(ctx, change.RuntimeChanges(steps)); why == "" || err != nil {
			return err
		}
		h.log.Warn("a runtime change takes a reload", "reason", why)
		procs, err := s.probe(ctx)
		if err != nil {
			return err
		}
		s.mayReload(procs)
	}
	return s.byFiles(ctx, why)
}

// holdReturning makes a server wait if it comes back while its old self still has
// connections. HAProxy would refuse it, and the refusal would hold up all other runtime
// changes.
func (s *syncing) holdReturning(ctx context.Context) error {
	returning := slices.DeleteFunc(change.RuntimeChanges(s.steps), func(do change.Do) bool { return !s.returns(do) })
	if len(returning) == 0 || s.conn == nil {
		return nil
	}
	if err := s.limits.Fenced(); err != nil {
		return fail("fence", err)
	}
	// This deletes servers whose last connection has ended.
	if _, err := s.apply(ctx, nil); ctx.Err() != nil {
		return fail("runtime", err)
	}
	for i := range s.steps {
		if do := s.steps[i].Do; slices.Contains(returning, do) && s.returns(do) {
			s.steps[i].Needs("a removed server of this name still has connections")
		}
	}
	return nil
}

// returns reports whether a change adds a server that has not gone yet.
func (s *syncing) returns(do change.Do) bool {
	if add, ok := do.(*change.AddServer); ok {
		_, leaves := s.h.leaving[add.Ref]
		return leaves
	}
	return slices.ContainsFunc(change.ServersOf(do), s.returns)
}

// leave leaves all steps, and adds a reload for that reason.
func (s *syncing) leave(reason string) {
	reload := change.Step{Action: change.Update, Kind: "process", Impact: change.Reload, Reason: reason}
	s.out.Left = append(slices.Clone(s.steps), reload)
}

// settle notes that the configuration is stored and runs.
func (s *syncing) settle(pid int) {
	h := s.h
	if pid != h.worker { // they ended with their process
		h.leaving = make(socket.Leaving)
		h.forgetNames()
	}
	h.running, h.worker = s.to, pid
	h.unmark()
	s.out.Hash, s.out.WorkerPID = s.to.Hash(), pid
	if err := s.write.finish(); err != nil {
		h.log.Warn("files of an earlier configuration stay", "error", err)
	}
}
