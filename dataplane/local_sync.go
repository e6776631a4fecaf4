package dataplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// DryRun says what [Local.Sync] would do, and changes nothing. HAProxy need not
// run.
func (l *Local) DryRun(ctx context.Context, desired *Config) (*Plan, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	disk, err := l.store.load()
	if err != nil && !errors.Is(err, ErrInvalidConfig) {
		return nil, l.fail("read", err) // a file that somebody spoilt is overwritten
	}
	running, target, same := disk, Target{}, false
	if procs, err := l.master.Procs(ctx); err == nil {
		target = l.targetOf(ctx, procs.WorkerPID(), procs.Version)
		same = procs.WorkerPID() == l.worker
		if l.applied != nil && same {
			running = l.applied
		}
	}
	d, err := withDrift(disk, running, desired, target)
	if err != nil {
		return nil, l.fail("compare", err)
	}
	if same {
		d.returning(l.leaving, nil)
	}
	return d.plan(), nil
}

// targetOf says what the running process can change at runtime. What it tells
// is remembered for as long as it runs; without a stats socket the master alone
// tells the version.
func (l *Local) targetOf(ctx context.Context, worker int, version string) Target {
	target := Target{Version: parseVersion(version)}
	if worker == 0 {
		return target
	}
	if l.known == worker {
		return l.target
	}
	conn, info, err := l.dialWorker(ctx, worker)
	if err != nil {
		// Another one answers: without the limit, more takes a reload.
		target.silent = !errors.Is(err, errAnotherWorker)
		return target
	}
	_ = conn.Close()
	if v := parseVersion(infoField(info, "Version")); v != (Version{}) {
		target.Version = v
	}
	target.hardMaxconn, _ = strconv.Atoi(infoField(info, "Hard_maxconn"))
	l.target, l.known = target, worker
	return target
}

// parseVersion reads a version as HAProxy tells it, such as "3.2.26-1". What is
// none gives the zero Version.
func parseVersion(s string) Version {
	var v Version
	if n, err := fmt.Sscanf(s, "%d.%d", &v.Major, &v.Minor); n != 2 || err != nil || v.Major < 0 || v.Minor < 0 {
		return Version{}
	}
	return v
}

// Sync brings HAProxy to the desired configuration, and returns when it serves
// with it. What can change at runtime is told to the running process, and then
// stored; everything else is stored and then takes one reload. Where HAProxy
// refuses a command, Sync reloads after all, and Result.Fallback says why.
//
// When HAProxy cannot load the configuration, the error wraps [ErrReload] and
// has HAProxy's words; the files are as before and the old process serves on.
// Files that somebody else changed are put back.
//
// A server that still has connections when it goes is put into maintenance: it
// gets no new ones and is deleted when the last has ended.
//
// Sync needs [Local.Run], which it gives a few seconds to begin, and for which it
// waits while that starts HAProxy. The Result comes with an error, too, and says
// how far it got.
func (l *Local) Sync(ctx context.Context, desired *Config) (*Result, error) {
	start := time.Now()
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	s := &syncing{l: l, desired: desired, result: &Result{}}
	if l.opts.NoStart {
		release, err := l.takeFolder(ctx)
		if err != nil {
			return nil, l.fail("folder", err)
		}
		defer release()
	}
	err := s.run(ctx)
	s.result.Duration = time.Since(start)
	return s.result, l.fail("sync", err)
}

// syncing is one Sync under way.
type syncing struct {
	l       *Local
	desired *Config
	result  *Result
	diff    *difference
	process *process // nil if none runs, or with NoStart
	worker  int      // the process that serves; 0 if none does
	target  Target   // what that can do
}

func (s *syncing) run(ctx context.Context) error {
	l := s.l
	disk, err := s.look(ctx)
	if err != nil {
		return err
	}
	running := disk
	if s.worker != l.worker {
		clear(l.leaving)
	} else if l.applied != nil {
		running = l.applied
	}
	if s.diff, err = withDrift(disk, running, s.desired, s.target); err != nil {
		return l.fail("compare", err)
	}
	s.diff.returning(l.leaving, func() {
		if dpapi.Fenced(ctx) != nil {
			return
		}
		if _, err := l.apply(ctx, s.worker, nil, nil); err != nil {
			l.log.Debug("servers that go are not gone yet", "error", err)
		}
	})
	s.result.Plan = s.diff.plan()

	w, err := l.store.stage(disk, s.desired)
	if err != nil {
		return l.fail("files", err)
	}
	s.result.Files = w.files()
	if s.worker == 0 {
		return s.byStart(ctx, w)
	}
	if l.dirty {
		s.result.Fallback = "an earlier change may be half done"
	}
	if s.result.Fallback == "" && s.result.Plan.Impact() != ImpactReload {
		done, err := s.byCommands(ctx, w)
		if done || err != nil {
			return err
		}
	}
	return s.byReload(ctx, w)
}

// look finds out what is stored and what runs.
func (s *syncing) look(ctx context.Context) (*Config, error) {
	l := s.l
	if l.opts.NoStart {
		l.dirty = l.dirty || l.marked()
	} else {
		reply := l.ask(ctx, startRequest{})
		if reply.err != nil {
			return nil, l.fail("start", reply.err)
		}
		s.process = reply.process
	}
	disk, err := l.store.load()
	if err != nil && !errors.Is(err, ErrInvalidConfig) {
		return nil, l.fail("read", err) // a file that somebody spoilt is overwritten
	}
	if s.process == nil && !l.opts.NoStart {
		return disk, nil
	}
	return disk, s.probe(ctx)
}

// probe asks for the worker. A master that reloads, because somebody else told
// it to, is away for a moment, or has a worker that is loading.
func (s *syncing) probe(ctx context.Context) error {
	probing, cancel := context.WithTimeout(ctx, s.l.timeout)
	defer cancel()
	for {
		procs, err := s.l.master.Procs(probing)
		s.worker = procs.WorkerPID()
		s.target = Target{Version: parseVersion(procs.Version)}
		loading := len(procs.Loading) > 0
		if loading {
			err = errors.New("its worker has yet to load the configuration")
		}
		switch {
		case err == nil && (s.worker != 0 || s.l.opts.NoStart):
			s.target = s.l.targetOf(ctx, s.worker, procs.Version)
			return nil
		case s.process != nil && s.process.hasEnded():
			s.process, s.worker = nil, 0
			return nil
		case probing.Err() != nil, s.process == nil && !loading:
			return s.l.fail("probe", errors.Join(ErrNotRunning, err, ctx.Err()))
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-timer.C:
		case <-probing.Done():
			timer.Stop()
		}
	}
}

// waitForMaster is how long a worker that serves may not be the one that
// answers on the stats socket.
const waitForMaster = 10 * time.Second

// withDrift compares what runs with what is desired, and adds what differs only
// on the disk, because somebody else changed the files.
func withDrift(disk, running, desired *Config, target Target) (*difference, error) {
	d, err := compare(running, desired, target)
	if err != nil || disk == running {
		return d, err
	}
	drift, err := compare(disk, desired, target)
	if err != nil {
		return nil, err
	}
	for _, st := range drift.steps {
		same := func(other step) bool {
			return other.op.Kind == st.op.Kind && other.op.Name == st.op.Name && other.op.Parent == st.op.Parent
		}
		if !slices.ContainsFunc(d.steps, same) {
			st.do, st.op.Impact, st.op.Reason = nil, ImpactNone, "only the stored file differs: somebody else changed it"
			d.steps = append(d.steps, st)
		}
	}
	return d, nil
}

// byStart stores the configuration and starts HAProxy with it.
func (s *syncing) byStart(ctx context.Context, w *write) error {
	l := s.l
	if l.opts.NoStart {
		return s.byReload(ctx, w)
	}
	if err := dpapi.Fenced(ctx); err != nil {
		w.undo()
		return l.fail("fence", err)
	}
	if err := w.publish(); err != nil {
		w.undo()
		return l.fail("files", err)
	}
	l.applied = nil
	settled := make(chan struct{})
	defer close(settled)
	reply := l.ask(ctx, startRequest{start: true, settled: settled})
	if reply.err != nil {
		l.mark(ctx.Err() != nil) // it may start all the same
		w.undo()
		return l.fail("start", reply.err)
	}
	s.process = reply.process
	if !reply.fresh {
		// Run was faster, and nobody knows which files it has loaded.
		l.mark(true)
		s.result.Fallback = "it was started meanwhile"
		return s.byReload(ctx, w)
	}
	procs, err := l.master.Procs(ctx)
	if err != nil || procs.WorkerPID() == 0 {
		l.mark(true) // it may serve all the same
		w.undo()
		return l.fail("verify", cmp.Or(err, ErrNotRunning))
	}
	return s.settle(w, procs.WorkerPID())
}

// byCommands tells the running process what changes, and stores it. It reports
// false where only a reload can help.
func (s *syncing) byCommands(ctx context.Context, w *write) (done bool, err error) {
	l := s.l
	if err := dpapi.Fenced(ctx); err != nil {
		w.undo()
		return false, l.fail("fence", err)
	}
	actions := s.diff.actions()
	if len(actions) > 0 || len(l.leaving) > 0 {
		l.mark(true)
		sent, err := l.apply(ctx, s.worker, actions, s.desired)
		s.result.Commands = sent
		if ctx.Err() != nil {
			w.undo()
			return false, l.fail("runtime", ctx.Err())
		}
		if err != nil {
			l.log.Warn("reload instead of a runtime change", "reason", err)
			s.result.Fallback = err.Error()
			return false, nil
		}
	}
	if err := w.publish(); err != nil {
		// The process is ahead of the disk. The next Sync sees that.
		w.undo()
		l.applied, l.worker = s.desired, s.worker
		l.dirty = false // the mark stays, for one who has not seen it
		return false, l.fail("files", err)
	}
	procs, err := l.master.Procs(ctx)
	if err != nil || procs.WorkerPID() != s.worker {
		// It ended meanwhile, and may have started from half the files.
		s.result.Fallback = "the process was replaced meanwhile"
		return false, nil
	}
	return true, s.settle(w, s.worker)
}

// settle remembers that the desired configuration is stored and runs.
func (s *syncing) settle(w *write, worker int) error {
	l := s.l
	l.applied, l.worker = s.desired, worker
	l.mark(false)
	s.result.Hash, s.result.WorkerPID = s.desired.Hash(), worker
	if err := w.finish(); err != nil {
		return l.fail("clean up", err)
	}
	return nil
}

// byReload stores the configuration and reloads HAProxy with it.
func (s *syncing) byReload(ctx context.Context, w *write) error {
	l := s.l
	if err := dpapi.Fenced(ctx); err != nil {
		w.undo()
		return l.fail("fence", err)
	}
	if err := w.publish(); err != nil {
		w.undo()
		return l.fail("files", err)
	}
	worker, err := s.reload(ctx)
	if err != nil {
		// Commands that went before the reload stay applied, and a reload
		// that nobody waited for may still succeed. Who comes after a crash
		// must know that before the files are the old ones again.
		if s.result.Commands > 0 || !errors.Is(err, ErrReload) {
			l.applied = nil
			l.mark(true)
		}
		w.undo()
		if errors.Is(err, ErrReload) {
			s.keepSockets(ctx)
		}
		return err
	}
	s.result.Reloads = 1
	clear(l.leaving)
	return s.settle(w, worker)
}

// mark notes, also for a controller that comes after this one, that commands
// may be half done.
func (l *Local) mark(dirty bool) {
	l.dirty = dirty
	if !l.opts.NoStart {
		return // the process ends with this one
	}
	if dirty {
		if f, err := os.Create(l.markPath()); err == nil {
			_ = f.Close()
		}
		return
	}
	_ = os.Remove(l.markPath())
}

func (l *Local) marked() bool {
	_, err := os.Lstat(l.markPath())
	return err == nil
}

func (l *Local) markPath() string { return filepath.Join(l.opts.Dir, "run", "half-done") }

// reload tells the master to reload and follows it to the end.
func (s *syncing) reload(ctx context.Context) (worker int, err error) {
	l := s.l
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	mark := 0
	var before haproxyctl.Procs
	outcome, words := haproxyctl.Busy, []string(nil)
	for outcome == haproxyctl.Busy {
		// Somebody else's reload ends first: it may be with the old files.
		if before, err = s.await(ctx, func(p haproxyctl.Procs) bool { return len(p.Loading) == 0 }); err != nil {
			return 0, l.fail("reload", err)
		}
		if s.process != nil {
			mark = s.process.output.mark()
		}
		outcome, words, err = l.master.Reload(ctx)
		if err != nil && ctx.Err() != nil {
			return 0, l.fail("reload", ctx.Err())
		}
	}
	if outcome == haproxyctl.Failed {
		return 0, l.explain("reload", ErrReload, s.words(ctx, mark, words))
	}
	after, err := s.await(ctx, func(p haproxyctl.Procs) bool { return p.MasterPID != before.MasterPID || p.Reloaded(before) })
	switch {
	case err != nil:
		return 0, l.fail("reload", err)
	case after.MasterPID != before.MasterPID:
		return 0, l.fail("reload", errors.Join(ErrNotRunning, errors.New("the master ended")))
	case after.WorkerPID() != before.WorkerPID() && after.WorkerPID() != 0:
		return after.WorkerPID(), nil
	}
	return 0, l.explain("reload", ErrReload, s.words(ctx, mark, words))
}

// await asks the master until its processes are as wanted. A master that
// reloads is away for a while.
func (s *syncing) await(ctx context.Context, wanted func(haproxyctl.Procs) bool) (haproxyctl.Procs, error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var ended chan struct{}
	if s.process != nil {
		ended = s.process.ended
	}
	for {
		procs, err := s.l.master.Procs(ctx)
		if err == nil && wanted(procs) {
			return procs, nil
		}
		select {
		case <-ticker.C:
		case <-ended:
			return procs, errors.Join(ErrNotRunning, errors.New("the master ended"))
		case <-ctx.Done():
			return procs, ctx.Err()
		}
	}
}
