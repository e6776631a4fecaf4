package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// apply does a job: files, configuration, process, deletions. Until the process has
// what is stored, the ledger says so, and a failure leaves doubt.
func (c *call) apply(ctx context.Context, j *job, out *change.Outcome) error {
	doubt, before := c.doubt, c.ledger
	touches := j.impact() != change.None
	if touches || c.opts.Shared && c.ledger.lacks(j.ledger) {
		open := c.ledger.open(j.ledger)
		if !touches {
			open.loaded = c.ledger.loaded
		}
		if err := c.writeLedger(ctx, open); err != nil {
			return err
		}
		c.doubt, c.closing = doubt || touches, c.closing && !touches
	}
	after, err := c.deploy(ctx, j, out)
	if err != nil {
		if c.undo(ctx, j, err) {
			c.doubt = doubt
			c.restoreLedger(ctx, before)
		}
		return err
	}
	c.doubt, c.closing = false, true // the process has it all
	deleted, err := c.deleteFiles(ctx, j.deletes)
	out.Files += deleted
	if err == nil {
		err = c.writeLedger(ctx, j.ledger)
	}
	if err != nil {
		c.known = nil
		return err
	}
	c.closing = false
	return c.remember(j, after)
}

// deploy stores files and text, and brings the process to them.
func (c *call) deploy(ctx context.Context, j *job, out *change.Outcome) (known, error) {
	if err := c.writeFiles(ctx, j, out); err != nil {
		return known{}, err
	}
	after := j.before
	if j.pushes() {
		var err error
		if after, err = c.push(ctx, j, out); err != nil {
			return known{}, err
		}
	}
	if j.impact() == change.Reload {
		return after, nil // the new process has read it all
	}
	err := c.tell(ctx, j, out)
	if err == nil {
		return after, nil
	}
	cause := errorAt("runtime", err)
	if cause.Status == 0 && !errors.Is(cause, errNotApplied) || errors.Is(cause, config.ErrUnauthorized) {
		return known{}, cause // the next attempt reloads
	}
	return c.reloadInstead(ctx, j, out, cause)
}

// writeFiles stores all files. Where the process does not take a certificate over,
// the job becomes one with a reload.
func (c *call) writeFiles(ctx context.Context, j *job, out *change.Outcome) error {
	for _, w := range j.writes {
		if w.tell {
			j.told = true // also where the answer gets lost
		}
		reloadID, err := c.write(ctx, w)
		if err != nil {
			return err
		}
		out.Files++
		switch {
		case reloadID != "":
			j.needsReload(out, "the running process did not take over the certificate "+w.file.Name)
			j.written = append(j.written, w)
		case w.tell:
			out.Commands++
		default:
			j.written = append(j.written, w)
		}
	}
	return nil
}

// needsReload turns the job into one with a reload.
func (j *job) needsReload(out *change.Outcome, why string) {
	j.steps = append(append([]change.Step(nil), j.steps...), processStep(why))
	out.Fallback = why
}

// undo puts files back after an answer that is certain. It reports whether everything
// is as it was before, so that no doubt is left.
func (c *call) undo(ctx context.Context, j *job, err error) bool {
	if errors.Is(err, config.ErrReload) {
		return !j.told // reload() has put back what is stored
	}
	var e *config.Error
	if !errors.As(err, &e) || e.Status < 400 || e.Status >= 500 || e.Stage == "runtime" || e.Stage == "verify" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if err := c.undoFiles(ctx, j.written); err != nil {
		c.log.Warn("files could not be put back", "error", err)
		c.known = nil
		return false
	}
	return !j.told
}

// restoreLedger writes the ledger of before. If that fails, the worst that comes of it
// is a needless reload by a successor.
func (c *call) restoreLedger(ctx context.Context, before ledger) {
	if !before.there {
		before = ledger{there: true, loaded: "nothing", owned: before.owned}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if err := c.writeLedger(ctx, before); err != nil {
		c.log.Warn("the ledger could not be written as it was", "error", err)
	}
}

// reloadInstead reads the version again, which has moved, and reloads.
func (c *call) reloadInstead(ctx context.Context, j *job, out *change.Outcome, cause *config.Error) (known, error) {
	c.log.Warn("changing the running process failed, reloading instead", "error", cause)
	why := "changing the running process failed"
	switch {
	case cause.Output != "":
		why += ": " + cause.Output
	case errors.Is(cause, errNotApplied):
		why += fmt.Sprintf(": %v", cause.Err)
	}
	j.needsReload(out, why)
	j.told = true
	now, err := c.api.GetRaw(ctx)
	if err != nil {
		return known{}, errorAt("read", err)
	}
	if now.Text != j.before.text && !c.sameMeaning(now.Text, j.text) {
		return known{}, &config.Error{Stage: "runtime", Err: config.ErrConflict}
	}
	return c.reload(ctx, j, out, now.Version)
}
