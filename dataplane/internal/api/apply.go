package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// apply does a job: files, configuration, process, deletions. Until the process has
// what is stored, the ledger says so, and a failure leaves doubt.
func (c *Client) apply(ctx context.Context, j *job, out *change.Outcome) error {
	doubt, before := c.doubt, c.ledger
	touches := j.impact() != change.None
	open := before.open(j.ledger)
	if !touches {
		open.loaded = before.loaded
	}
	if touches || c.opts.Shared && len(open.owned) > len(before.owned) {
		if err := c.writeLedger(ctx, open); err != nil {
			return err
		}
		c.doubt, c.closing = doubt || touches, c.closing && !touches
	}
	after, err := c.deploy(ctx, j, out)
	if err != nil {
		undone := c.undo(ctx, j, err, before)
		if undone {
			c.doubt = doubt
		}
		if !undone || errors.Is(err, config.ErrConflict) {
			c.known = nil // read again
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
	c.remember(j, after)
	return nil
}

// deploy stores files and text, and brings the process to them.
func (c *Client) deploy(ctx context.Context, j *job, out *change.Outcome) (known, error) {
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
func (c *Client) writeFiles(ctx context.Context, j *job, out *change.Outcome) error {
	for _, w := range j.writes {
		if w.tell {
			j.told = true // also where the answer gets lost
		}
		reloadID, err := c.write(ctx, w)
		if err != nil {
			return err
		}
		out.Files++
		if w.tell && reloadID == "" {
			out.Commands++
			continue
		}
		j.written = append(j.written, w)
		if w.tell {
			j.needsReload(out, "the running process did not take over the certificate "+w.file.Name)
		}
	}
	return nil
}

// needsReload turns the job into one with a reload.
func (j *job) needsReload(out *change.Outcome, why string) {
	j.steps = append(slices.Clip(j.steps), reloadStep("process", why)) // out may share the steps
	out.Fallback = why
}

// undo puts files and ledger back after an answer that is certain. It reports whether
// everything is as it was before, so that no doubt is left.
func (c *Client) undo(ctx context.Context, j *job, cause error, before ledger) bool {
	ctx, cancel := restoring(ctx)
	defer cancel()
	e := config.At("", cause)
	switch {
	case errors.Is(cause, config.ErrReload): // reload() has put back what is stored
	case e.Status < 400 || e.Status >= 500 || e.Stage == "runtime" || e.Stage == "verify":
		return false
	default:
		if err := c.undoFiles(ctx, j.written); err != nil {
			c.log.Warn("files could not be put back", "error", err)
			return false
		}
	}
	if j.told {
		return false
	}
	if err := c.writeLedger(ctx, before); err != nil { // a successor reloads once, without need
		c.log.Warn("the ledger could not be written as it was", "error", err)
	}
	return true
}

// reloadInstead reads the version again, which has moved, and reloads.
func (c *Client) reloadInstead(ctx context.Context, j *job, out *change.Outcome, cause *config.Error) (known, error) {
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
	if now.Text != j.before.text && !c.sameMeaning(now.Text, j.wanted.Main()) {
		return known{}, &config.Error{Stage: "runtime", Err: config.ErrConflict}
	}
	j.before.version = now.Version
	return c.reload(ctx, j, out)
}
