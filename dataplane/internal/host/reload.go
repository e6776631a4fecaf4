package host

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// unknownEnd is for a reload that the master was told, and that is not over.
const unknownEnd = "the reload may end yet, and the next Sync finds out"

// reload tells the master to reload and follows it to the end. Its error wraps
// [config.ErrReload] if HAProxy could not load the configuration, and [config.ErrListen]
// if the master was not told.
func (s *syncing) reload(ctx context.Context) (pid int, err error) {
	h := s.h
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	h.reloads.Store(true)
	defer h.reloads.Store(false)
	var before, after haproxyctl.Procs
	outcome, words := haproxyctl.Busy, []string(nil)
	for outcome == haproxyctl.Busy {
		// A reload by another program ends first: it may be with the old files.
		if before, err = h.await(ctx, s.process, keeps, func(p haproxyctl.Procs) bool { return len(p.Loading) == 0 }); err != nil {
			return 0, fail("reload", err)
		}
		if err = h.tryToMakeSockets(s.to, s.to, before); err != nil { // it may have changed since held
			return 0, err
		}
		if s.process != nil {
			s.process.output.forget()
		}
		outcome, words, _ = h.master.Reload(ctx) // up to 2.6 the connection may break
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

// printedLate is how long what haproxy has printed may take through the pipe, on
// a machine without a free processor.
const printedLate = 10 * time.Second

// words returns what HAProxy said about a reload that failed. The master may have
// said it already.
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
	// Another program has its output.
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
