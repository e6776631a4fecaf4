package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// apply does a job. Where all changes of the process can be told by themselves, they go
// first; then come files, text, process, deletions. Until the process has what is
// stored, the ledger says so, and a failure leaves doubt. With later, what needs no
// reload is stored by Store.
func (c *Client) apply(ctx context.Context, j *job, out *change.Outcome, later bool) error {
	doubt, before := c.doubt, c.ledger
	touches := j.impact() != change.None
	open := before.open(j.ledger)
	switch {
	case !touches:
		open.loaded = before.loaded
	case j.first && j.readable:
		open.loaded = ledgerTold
	}
	if touches || c.opts.Shared && len(open.owned) > len(before.owned) {
		if err := c.writeLedger(ctx, open); err != nil {
			return err
		}
		c.doubt, c.closing = doubt || touches, c.closing && !touches
	}
	err := c.tellAhead(ctx, j, out)
	switch {
	case err == nil && later && c.holds(j):
		c.doubt = doubt
		c.hold(j, out)
		return nil
	case err == nil && c.storing != nil: // it has come to need a reload
		c.known, c.ahead = nil, nil
		return errStoring
	case err == nil && j.impact() == change.Reload:
		open.loaded = ""
		err = c.writeLedger(ctx, open)
	}
	var after known
	if err == nil {
		after, err = c.deploy(ctx, j, out)
	}
	if err != nil {
		undone := c.undo(ctx, j, err, before)
		if undone || j.complete && j.readable { // what is stored and what the process has can be read
			c.doubt = doubt
		}
		if !undone || errors.Is(err, config.ErrConflict) {
			c.known, c.ahead = nil, nil // read again
		}
		return err
	}
	c.doubt, c.closing = false, true // the process has it all
	return c.finish(ctx, j, after, out)
}

// finish deletes what nothing needs any more, closes the ledger, and remembers.
func (c *Client) finish(ctx context.Context, j *job, after known, out *change.Outcome) error {
	deleted, err := c.deleteFiles(ctx, j.deletes)
	out.Files += deleted
	if err == nil {
		err = c.writeLedger(ctx, j.ledger)
	}
	if err != nil {
		c.known = nil
		return err
	}
	c.closing, c.ahead = false, nil
	c.remember(j, after)
	return nil
}

// tellAhead tells the process everything before anything else is stored, if that can
// be. A job that fails at it becomes one with a reload, unless the outcome is open.
func (c *Client) tellAhead(ctx context.Context, j *job, out *change.Outcome) error {
	if !j.first {
		return nil
	}
	if err := c.storeTold(ctx, j, out); err != nil || j.impact() == change.Reload {
		return err
	}
	err := c.tell(ctx, j, out)
	if err == nil {
		j.complete = true
		return nil
	}
	cause := errorAt("runtime", err)
	if isOpen(cause) {
		return cause
	}
	c.failedToTell(j, out, cause)
	return nil
}

// isOpen reports whether the next attempt has to find out, and to reload.
func isOpen(cause *config.Error) bool {
	return cause.Status == 0 && !errors.Is(cause, errNotApplied) || errors.Is(cause, config.ErrUnauthorized)
}

// failedToTell turns the job into one with a reload.
func (c *Client) failedToTell(j *job, out *change.Outcome, cause *config.Error) {
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
}

// deploy stores files and text, and brings the process to them.
func (c *Client) deploy(ctx context.Context, j *job, out *change.Outcome) (known, error) {
	if err := c.writeFiles(ctx, j, out); err != nil {
		return known{}, err
	}
	c.meetLate(j)
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
	err := c.settle(ctx, j.late)
	if err == nil && !j.first {
		err = c.tell(ctx, j, out)
	}
	if err == nil {
		return after, nil
	}
	cause := errorAt("runtime", err)
	if isOpen(cause) {
		return known{}, cause
	}
	return c.reloadInstead(ctx, j, out, cause)
}

// writeFiles stores all files. Where the process does not take a certificate over,
// the job becomes one with a reload.
func (c *Client) writeFiles(ctx context.Context, j *job, out *change.Outcome) error {
	for _, w := range j.writes {
		if err := c.writeFile(ctx, j, w, out); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) writeFile(ctx context.Context, j *job, w fileWrite, out *change.Outcome) error {
	if w.tell {
		j.told = true // also where the answer gets lost
	}
	reloadID, err := c.write(ctx, w)
	if err != nil {
		return err
	}
	out.Files++
	j.stored = append(j.stored, w.file)
	if w.tell && reloadID == "" {
		out.Commands++
		return nil
	}
	j.written = append(j.written, w)
	if w.tell {
		j.needsReload(out, "the running process did not take over the certificate "+w.file.Name)
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
	if j.complete && errors.Is(cause, config.ErrInvalid) {
		if err := c.takeBack(ctx, j); err != nil {
			c.log.Warn("HAProxy could not load again what it had", "error", err)
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

// takeBack has HAProxy load what is stored again, after it was told what the API then
// refused to store.
func (c *Client) takeBack(ctx context.Context, j *job) error {
	_, err := c.api.Push(ctx, j.before.config.Main(), j.before.version, dpapi.ForceReload)
	if err == nil {
		j.told, c.late, c.leaving, c.known, c.ahead = false, nil, nil, nil, nil
	}
	return err
}

// reloadInstead reads the version again, which has moved, and reloads.
func (c *Client) reloadInstead(ctx context.Context, j *job, out *change.Outcome, cause *config.Error) (known, error) {
	c.failedToTell(j, out, cause)
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
