package dataplane

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// syncOnce is one attempt of a Sync. It adds to r what it did.
func (c *Client) syncOnce(ctx context.Context, desired *Config, r *Result) error {
	info, err := c.api.Info(ctx)
	if err != nil {
		return c.probeError(err)
	}
	if c.forgotten.Swap(false) {
		c.known = nil
	}
	if c.known != nil && c.known.version == info.Version && c.known.hash == desired.Hash() && !c.unsettled {
		if c.marked.late {
			c.unmark(ctx, c.known.deployed.main)
		}
		if !c.filesDue() {
			if r.Plan == nil {
				r.Plan = &Plan{}
			}
			return nil
		}
		c.known = nil // so that everything is read
	}
	j, err := c.prepare(ctx, info, desired)
	if err != nil {
		return err
	}
	if r.Plan == nil {
		r.Plan = j.plan
	}
	if err := c.apply(ctx, j, r); err != nil {
		if !c.restored(err) {
			c.known = nil
		}
		return err
	}
	return nil
}

// filesDue reports whether it is time to look at the stored files again.
func (c *Client) filesDue() bool {
	return c.opts.FileInterval > 0 && time.Since(c.looked) >= c.opts.FileInterval
}

// restored reports whether an error left everything as it was before.
func (c *Client) restored(err error) bool {
	return c.known != nil && (errors.Is(err, ErrInvalid) || errors.Is(err, ErrReload))
}

// apply does a job: files, configuration, process, deletions.
func (c *Client) apply(ctx context.Context, j *job, r *Result) error {
	// Until the process has what is stored, a failure must not make the next
	// attempt believe that nothing differs.
	j.open = c.unsettled
	if err := c.mark(ctx, j); err != nil {
		return err
	}
	if err := c.ownMore(ctx, j); err != nil {
		return err
	}
	c.unsettled = c.unsettled || j.touchesProcess()
	written, err := c.writeFiles(ctx, j, r)
	if err != nil {
		if errors.Is(err, ErrInvalid) {
			c.takeBack(ctx, j, written)
		}
		return err
	}
	after := j.before
	if j.pushes() {
		if after, err = c.push(ctx, j, r, written); err != nil {
			return err
		}
	}
	if err := c.changeProcess(ctx, j, r, written, &after); err != nil {
		return err
	}
	c.unsettled, c.late = false, lateReload{} // the process has it all
	c.unmark(ctx, j.text)
	deleted, err := c.deleteFiles(ctx, j.deletes)
	r.Files += deleted
	if err != nil {
		c.known = nil
		return err
	}
	if err := c.ownLess(ctx, j); err != nil {
		c.known = nil
		return err
	}
	return c.remember(j, after)
}

// touchesProcess reports whether the process must learn of any of it.
func (j *job) touchesProcess() bool { return j.impact() != ImpactNone }

// writeFiles stores all files. Where the process does not take a certificate
// over, the job becomes one with a reload.
func (c *Client) writeFiles(ctx context.Context, j *job, r *Result) (written []fileWrite, err error) {
	for _, w := range j.writes {
		reloadID, err := c.write(ctx, w)
		if err != nil {
			return written, err
		}
		written = append(written, w)
		r.Files++
		switch {
		case reloadID != "":
			j.fallBack(r, "the running process did not take over the certificate "+w.file.Name)
			j.told = j.told || w.swap
			j.pending = reloadID
		case w.swap || w.load:
			r.Commands++
			j.told = true
		}
	}
	return written, nil
}

// fallBack turns the job into one with a reload. The plan stays what it was.
func (j *job) fallBack(r *Result, why string) {
	p := &Plan{Ops: append([]Op(nil), j.plan.Ops...)}
	p.Ops = append(p.Ops, Op{Action: Update, Kind: "process", Impact: ImpactReload, Reason: why})
	j.plan = p
	j.forgetRuntime()
	r.Fallback = why
}

// push stores the text, without a reload if that will do.
func (c *Client) push(ctx context.Context, j *job, r *Result, written []fileWrite) (baseline, error) {
	if len(j.changes) > 0 && !j.repair { // or else it would begin with what did not load
		return c.transact(ctx, j, r, written)
	}
	if j.impact() == ImpactReload {
		return c.reload(ctx, j, r, written, j.before.version)
	}
	raw, err := c.api.Push(ctx, j.push, j.before.version, dpapi.SkipReload, j.actions...)
	switch {
	case err == nil:
		r.Files++
		r.Commands += len(j.actions)
		j.told = j.told || len(j.actions) > 0
		return c.checkStored(j, raw, j.before.version)
	case isStatus(err, http.StatusInternalServerError) && len(j.actions) > 0:
		// The text is stored, some actions are done: a reload makes it whole.
		j.told = true
		return c.fallBackToReload(ctx, j, r, written, c.errorAt("runtime", err))
	}
	return baseline{}, c.failed(ctx, j, written, j.before.version, err)
}

// reload stores the text and has HAProxy load it, and waits for the new worker.
func (c *Client) reload(ctx context.Context, j *job, r *Result, written []fileWrite, version int64) (baseline, error) {
	before, _ := c.api.Process(ctx) // unknown is fine: then nothing is compared
	if c.pendingIsOver(ctx, j) {
		r.Reloads++ // it was faster than we
	}
	raw, err := c.api.Push(ctx, j.push, version, dpapi.ForceReload)
	if err != nil {
		return baseline{}, c.failed(ctx, j, written, version, err)
	}
	r.Files++
	r.Reloads++
	if j.pending != "" && !c.pendingIsOver(ctx, j) {
		// A synchronous reload takes a scheduled one over; this one has not.
		raw.ReloadID = j.pending
		r.Reloads++
	}
	// The API says that it has reloaded: from here on the process may have it all.
	toldBefore := j.told || j.open
	j.told = true
	if err := c.followReload(ctx, raw.ReloadID, before, r); errors.Is(err, ErrReload) {
		if toldBefore {
			c.late = lateReload{} // it is not for the reload alone that another is needed
		}
		return baseline{}, c.reloadFailed(ctx, j, written, version, err)
	} else if err != nil {
		return baseline{}, err
	}
	c.reloadFails = false
	return c.checkStored(j, raw, version)
}

// pendingIsOver reports whether the reload that the API has scheduled for a
// certificate has taken place, so that ours is another one.
func (c *Client) pendingIsOver(ctx context.Context, j *job) bool {
	if j.pending == "" {
		return false
	}
	// One that is not known any more has been lost, or is long over.
	reload, err := c.api.Reload(ctx, j.pending)
	if err == nil && reload.Status == "in_progress" {
		return false
	}
	j.pending = ""
	return err == nil
}

// followReload waits until the reload is through and another worker serves.
// An HAProxy before 2.7 does not tell how a reload ended, so that the API calls
// it a success: only the worker's process id proves it.
func (c *Client) followReload(ctx context.Context, id string, before dpapi.Process, r *Result) error {
	call := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.ReloadTimeout, errors.New("no new worker process within "+c.opts.ReloadTimeout.String()))
	defer cancel()
	wait := 10 * time.Millisecond
	for id != "" {
		reload, err := c.api.Reload(ctx, id)
		switch {
		case err == nil && reload.Status == "failed":
			return &Error{Endpoint: c.Name(), Stage: "reload", Output: strings.TrimSpace(reload.Response), Err: ErrReload}
		case err == nil && reload.Status == "succeeded":
			id = ""
			continue
		case err != nil && isStatus(err, http.StatusNotFound):
			return &Error{Endpoint: c.Name(), Stage: "reload", Output: "the Dataplane API has forgotten the reload", Err: ErrReload}
		}
		if !sleep(ctx, wait) {
			return c.reloadTimeout(call, ctx)
		}
		wait = min(2*wait, time.Second)
	}
	if before.PID == 0 {
		return nil
	}
	for wait = 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		now, err := c.api.Process(ctx)
		if err == nil && now.PID != 0 && now.PID != before.PID {
			r.WorkerPID = now.PID
			return nil
		}
		if !sleep(ctx, wait) {
			if call.Err() == nil {
				c.late = lateReload{pid: before.PID, settled: time.Now().Add(3 * c.opts.ReloadTimeout)}
			}
			return c.reloadTimeout(call, ctx)
		}
	}
}

// lateReload is a reload of which no new worker has been seen. Where the old one
// still serves long after, it has failed, and nobody will load what was taken
// back meanwhile; before that, another reload makes sure.
type lateReload struct {
	pid     int
	settled time.Time
}

// hasFailed reports whether it is certain by now that the reload has come to
// nothing.
func (l lateReload) hasFailed(pid int) bool {
	return l.pid != 0 && l.pid == pid && time.Now().After(l.settled)
}

// reloadTimeout tells a worker that does not show from a call that was given up.
func (c *Client) reloadTimeout(call, ctx context.Context) error {
	if call.Err() != nil {
		return c.errorAt("reload", context.Cause(call))
	}
	return &Error{Endpoint: c.Name(), Stage: "reload", Output: context.Cause(ctx).Error(), Err: ErrReload}
}

// checkStored checks what the API says it has stored.
func (c *Client) checkStored(j *job, raw dpapi.Raw, version int64) (baseline, error) {
	if raw.FileVersion != version+1 {
		// Between our write and the answer somebody else wrote.
		return baseline{}, &Error{Endpoint: c.Name(), Stage: "verify", Err: ErrConflict}
	}
	// Harmless where only the form differs: before its first write, for one, the
	// API leaves "from" away. But a directive may be missing.
	if raw.Text != j.text {
		if err := c.checkMeaning("verify", raw.Text, j); err != nil {
			return baseline{}, err
		}
	}
	return baseline{version: raw.FileVersion, text: raw.Text}, nil
}

// remember keeps what is deployed now, so that the next call need not ask.
func (c *Client) remember(j *job, after baseline) error {
	deployed, err := NewConfig(j.text, j.desired.files...)
	if err != nil {
		return &Error{Endpoint: c.Name(), Stage: "check", File: configFile, Err: err}
	}
	c.known = &baseline{hash: j.desired.Hash(), version: after.version, deployed: deployed, text: after.text}
	return nil
}
