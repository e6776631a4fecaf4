package host

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// reload tells the master to reload and follows it to the end. Its error wraps
// [config.ErrReload] if HAProxy could not load the configuration.
func (s *syncing) reload(ctx context.Context) (pid int, err error) {
	h := s.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	var before haproxyctl.Procs
	outcome, words := haproxyctl.Busy, []string(nil)
	for outcome == haproxyctl.Busy {
		// A reload by another program ends first: it may be with the old files.
		if before, err = s.await(ctx, func(p haproxyctl.Procs) bool { return len(p.Loading) == 0 }); err != nil {
			return 0, fail("reload", err)
		}
		if s.process != nil {
			s.process.output.forget()
		}
		if outcome, words, err = h.master.Reload(ctx); err != nil && ctx.Err() != nil {
			return 0, fail("reload", ctx.Err())
		}
	}
	if outcome != haproxyctl.Failed {
		after, err := s.await(ctx, func(p haproxyctl.Procs) bool { return p.MasterPID != before.MasterPID || p.Reloaded(before) })
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

// await asks the master until its processes are as wanted. A master that reloads
// is away for a while.
func (s *syncing) await(ctx context.Context, wanted func(haproxyctl.Procs) bool) (procs haproxyctl.Procs, err error) {
	err = poll(ctx, s.process.done(), func() bool {
		p, err := s.h.master.Procs(ctx)
		procs = p
		return err == nil && wanted(p)
	})
	return procs, err
}

// printedLate is how long what haproxy has printed may take through the pipe, on
// a machine without a free processor.
const printedLate = 10 * time.Second

// words returns what HAProxy said about a reload that failed. The master may have
// said it already.
func (s *syncing) words(ctx context.Context, said []string) []string {
	if slices.ContainsFunc(said, isAlert) {
		return said
	}
	if s.process != nil {
		ctx, cancel := context.WithTimeout(ctx, printedLate)
		defer cancel()
		_ = poll(ctx, s.process.ended, func() bool {
			return slices.ContainsFunc(s.process.output.last(), haproxyctl.ReloadFailed)
		})
		return s.process.output.last()
	}
	// Another program has its output.
	if logs, err := s.h.master.StartupLogs(ctx); err == nil && slices.ContainsFunc(logs, isAlert) {
		return logs
	}
	binary, err := haproxyctl.FindBinary(s.h.opts.Binary)
	if err != nil {
		return []string{err.Error()}
	}
	out, _ := exec.CommandContext(ctx, binary, "-c", "-f", s.h.layout.ConfigPath()).CombinedOutput()
	return strings.Split(string(out), "\n")
}
