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

// apply carries out a job. If the process can be changed on its own, apply does that first,
// and otherwise after files and text. Deletions come last. Until the process has what is
// stored, the ledger says that a change is open, and a failure leaves doubt. With later,
// Store stores what needs no reload.
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
	case err == nil && c.storing != nil: // the job needs a reload by now
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
		if undone || j.complete && j.readable { // the next attempt can read what is stored and what the process has
			c.doubt = doubt
		}
		if !undone || errors.Is(err, config.ErrConflict) {
			c.known, c.ahead = nil, nil // read everything again
		}
		return err
	}
	c.doubt, c.closing = false, true // the process has everything
	return c.finish(ctx, j, after, out)
}

// finish deletes files that nothing needs any more, closes the ledger, and remembers what is
// deployed.
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

// tellAhead makes all changes in the process before anything else is stored, if the job
// allows it. If that fails, the job becomes one with a reload, unless the outcome is open.
func (c *Client) tellAhead(ctx context.Context, j *job, out *change.Outcome) error {
	if !j.first {
		return nil
	}
	if err := c.storeTold(ctx, j, out); err != nil || j.impact() == change.Reload {
		return err
	}
	err := c.sendRuntime(ctx, j, out)
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

// isOpen reports whether the outcome is open: the next attempt has to read everything, and to
// reload.
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
	j.sent = true
}

// deploy stores files and text, and makes the process use them.
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
		return after, nil // the new process has read everything
	}
	err := c.settle(ctx, j.late)
	if err == nil && !j.first {
		err = c.sendRuntime(ctx, j, out)
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

// writeFiles stores all files. If the process does not take over a certificate, the job
// becomes one with a reload.
func (c *Client) writeFiles(ctx context.Context, j *job, out *change.Outcome) error {
	for _, w := range j.writes {
		if err := c.writeFile(ctx, j, w, out); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) writeFile(ctx context.Context, j *job, w fileWrite, out *change.Outcome) error {
	if w.runtime {
		j.sent = true // even if the answer gets lost
	}
	reloadID, err := c.write(ctx, w)
	if err != nil {
		return err
	}
	out.Files++
	j.stored = append(j.stored, w.file)
	if w.runtime && reloadID == "" {
		out.Commands++
		return nil
	}
	j.written = append(j.written, w)
	if w.runtime {
		j.needsReload(out, "the running process did not take over the certificate "+w.file.Name)
	}
	return nil
}

// needsReload turns the job into one with a reload.
func (j *job) needsReload(out *change.Outcome, why string) {
	j.steps = append(slices.Clip(j.steps), reloadStep("process", why)) // out may share the steps
	out.Fallback = why
}

// undo restores files and ledger after a failure whose outcome is certain. It reports whether
// everything is as it was before. Then no doubt is left.
func (c *Client) undo(ctx context.Context, j *job, cause error, before ledger) bool {
	ctx, cancel := restoring(ctx)
	defer cancel()
	e := config.At("", cause)
	switch {
	case errors.Is(cause, config.ErrReload): // reload() has restored what is stored
	case e.Status < 400 || e.Status >= 500 || e.Stage == "runtime" || e.Stage == "verify":
		return false
	default:
		if err := c.undoFiles(ctx, j.written); err != nil {
			c.log.Warn("could not restore the files after a failed change", "error", err)
			return false
		}
	}
	if j.complete && errors.Is(cause, config.ErrInvalid) {
		if err := c.takeBack(ctx, j); err != nil {
			c.log.Warn("HAProxy could not load the stored configuration again", "error", err)
			return false
		}
	}
	if j.sent {
		return false
	}
	if err := c.writeLedger(ctx, before); err != nil { // the cost: a successor reloads once, without need
		c.log.Warn("could not restore the ledger after a failed change", "error", err)
	}
	return true
}

// takeBack makes HAProxy load the stored configuration again. The process has changes that
// the API then refused to store.
func (c *Client) takeBack(ctx context.Context, j *job) error {
	_, err := c.api.Push(ctx, j.before.config.Main(), j.before.version, dpapi.ForceReload)
	if err == nil {
		j.sent, c.late, c.leaving, c.known, c.ahead = false, nil, nil, nil, nil
	}
	return err
}

// reloadInstead reloads after a failed runtime change. It first reads the version again,
// because the version has moved.
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
