package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// Strategy says how a [Client] writes the configuration of an endpoint.
type Strategy int

// The strategies.
const (
	// Raw replaces the whole text: the endpoint belongs to us alone. It is the
	// fastest way and the only one that keeps the text as it is.
	Raw Strategy = iota

	// Transaction is for an endpoint that somebody else configures as well. What
	// is stored but neither in the desired configuration nor deployed by a Client
	// before, sections and files, belongs to the other and stays untouched. Our
	// sections change one by one in a transaction of the Dataplane API, which
	// costs more (each change writes the whole file) and always reloads; what can
	// change at runtime does so by a push of the stored text with our sections in
	// it.
	//
	// A general file haptic-owned.txt says what has been deployed. A section of
	// the desired configuration is ours, also if somebody else has made it; so
	// name defaults sections, since unnamed ones get the same name.
	Transaction
)

// String returns "raw" or "transaction".
func (s Strategy) String() string {
	switch s {
	case Raw:
		return "raw"
	case Transaction:
		return "transaction"
	}
	return fmt.Sprintf("strategy(%d)", int(s))
}

// startGrace is how long the request that opens a transaction may outlive the
// context of its call.
const startGrace = 5 * time.Second

// transact changes our sections in one transaction, whose commit reloads.
func (c *Client) transact(ctx context.Context, j *job, r *Result, written []fileWrite) (baseline, error) {
	before, _ := c.api.Process(ctx) // unknown is fine: then nothing is compared
	id, err := c.startTransaction(ctx, j.before.version)
	if err != nil {
		return baseline{}, c.errorAt("transaction", err)
	}
	err = c.fillTransaction(ctx, id, j)
	if err == nil {
		if err = c.api.Commit(ctx, id); err == nil {
			return c.committed(ctx, j, r, written, before)
		}
		switch {
		case isStatus(err, http.StatusNotAcceptable):
			e := c.errorAt("transaction", err)
			e.Err = ErrConflict
			err = e
		case dpapi.Status(err) == http.StatusBadRequest:
			// The transaction has failed: it goes before its text is looked at again.
			c.dropTransaction(ctx, id)
			return baseline{}, c.failed(ctx, j, written, j.before.version, err)
		}
	}
	c.dropTransaction(ctx, id)
	e := c.errorAt("transaction", err)
	if errors.Is(e, ErrInvalid) || errors.Is(e, ErrUnsupported) {
		c.takeBack(ctx, j, written)
	}
	return baseline{}, e
}

// startTransaction opens a transaction. A context that ends while its answer is
// on the way does not end the request at once: only that answer names the
// transaction, and one without a name is never given up. The caller's next
// request then fails with the context, which drops it.
func (c *Client) startTransaction(ctx context.Context, version int64) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(startGrace, cancel) })()
	id, err := c.api.StartTransaction(asking, version)
	if err != nil && ctx.Err() != nil && dpapi.Status(err) == 0 {
		err = context.Cause(ctx) // and not how the request ended
	}
	return id, err
}

// fillTransaction makes the changes and then reads what they would give.
func (c *Client) fillTransaction(ctx context.Context, id string, j *job) error {
	for _, change := range j.changes {
		if err := c.api.Change(ctx, id, change.method, change.target, change.body); err != nil {
			e := c.errorAt("transaction", err)
			e.Output = change.what + ": " + redactOutput(e.Output, j.text)
			return e
		}
	}
	raw, err := c.api.GetRawOf(ctx, id)
	if err != nil {
		return c.errorAt("transaction", err)
	}
	return c.checkMeaning("transaction", raw.Text, j)
}

// checkMeaning compares what the API has stored, or would, with what is wanted.
func (c *Client) checkMeaning(stage, text string, j *job) error {
	if c.sameMeaning(text, j.text) {
		return nil
	}
	wrong := &Error{Endpoint: c.Name(), Stage: stage, File: configFile, Err: ErrUnsupported}
	have, err := NewConfig(alignSections(text, j.text))
	if err != nil {
		wrong.Output = "the Dataplane API would store something that cannot be compared"
		return wrong
	}
	want, err := NewConfig(j.text)
	if err != nil {
		return err
	}
	d, err := compare(have, want, Target{})
	if err != nil {
		return err
	}
	plan := d.plan()
	if plan.Impact() == ImpactNone { // such as another order of servers that means nothing
		return nil
	}
	for _, op := range plan.Ops {
		if op.Impact != ImpactNone {
			wrong.Output = fmt.Sprintf("the Dataplane API cannot store %s %s as it is", op.Kind, op.Name)
			return wrong
		}
	}
	return nil
}

// dropTransaction gives a transaction up, also when the context of the call has
// ended or its fence is closed: one that stays open blocks a place for good, and
// HAProxy has seen nothing of it.
func (c *Client) dropTransaction(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(dpapi.WithoutFence(context.WithoutCancel(ctx)), restoreTimeout)
	defer cancel()
	if err := c.api.DeleteTransaction(ctx, id); err != nil && !isStatus(err, http.StatusNotFound) {
		c.log.Warn("a transaction could not be deleted", "transaction", id, "error", err)
	}
}

// committed follows the reload of a commit and reads what is stored now.
func (c *Client) committed(ctx context.Context, j *job, r *Result, written []fileWrite, before dpapi.Process) (baseline, error) {
	r.Files++
	r.Reloads++
	j.told = true
	if err := c.followReload(ctx, "", before, r); errors.Is(err, ErrReload) {
		return baseline{}, c.reloadFailed(ctx, j, written, j.before.version, err)
	} else if err != nil {
		return baseline{}, err
	}
	c.reloadFails = false
	raw, err := c.api.GetRaw(ctx)
	if err != nil {
		return baseline{}, c.errorAt("verify", err)
	}
	if raw.FileVersion != j.before.version+1 {
		return baseline{}, &Error{Endpoint: c.Name(), Stage: "verify", Err: ErrConflict}
	}
	if err := c.checkMeaning("transaction", raw.Text, j); err != nil {
		return baseline{}, err
	}
	return baseline{version: raw.FileVersion, text: raw.Text}, nil
}

// shared prepares a job for an endpoint that is not ours alone: text to push,
// its normal form, and what of it belongs to us. j.text is the desired one, in
// normal form, when it begins.
func (c *Client) shared(ctx context.Context, j *job) error {
	if c.owned == nil {
		if err := c.readOwned(ctx); err != nil {
			return err
		}
	}
	j.ours = ownedBy(j.desired, j.text)
	merged, err := mergeOwned(j.before.text, j.text, c.owned)
	if err != nil {
		return c.refused(err)
	}
	j.push = merged
	if j.text, err = c.merged.Normalise(merged); err != nil {
		e := c.refused(err)
		e.Line, e.Output = 0, strings.TrimSpace("in what is stored together with what is desired: "+e.Output)
		return e
	}
	return nil
}
