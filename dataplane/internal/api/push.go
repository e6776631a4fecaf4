package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// restoreTimeout bounds putting things back, which also happens when the context of
// the call has ended.
const restoreTimeout = 30 * time.Second

func restoring(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
}

// push stores the text, without a reload if that will do.
func (c *Client) push(ctx context.Context, j *job, out *change.Outcome) (known, error) {
	if j.impact() == change.Reload {
		return c.reload(ctx, j, out)
	}
	header, sets := j.header()
	raw, err := c.api.Push(ctx, j.wanted.Main(), j.before.version, dpapi.SkipReload, header...)
	switch {
	case err == nil:
		out.Files++
		out.Commands += sets
		j.told = j.told || len(header) > 0
		return c.checkStored(j, raw)
	case isStatus(err, http.StatusInternalServerError) && len(header) > 0:
		// The text is stored, some actions are done: a reload makes it whole.
		return c.reloadInstead(ctx, j, out, errorAt("runtime", err))
	}
	return known{}, c.pushError(ctx, j, err)
}

// reload stores the text, has HAProxy load it, and waits for the new worker.
func (c *Client) reload(ctx context.Context, j *job, out *change.Outcome) (known, error) {
	before, _ := c.api.Process(ctx) // if unknown, nothing is compared
	raw, err := c.api.Push(ctx, j.wanted.Main(), j.before.version, dpapi.ForceReload)
	if err != nil {
		e := errorAt("configuration", err)
		if e.Status == http.StatusBadRequest && strings.HasPrefix(strings.ToLower(e.Output), "reload failed") {
			e.Stage, e.Err, e.Output = "reload", config.ErrReload, redactOutput(e.Output, j.wanted.Main())
			return known{}, c.reloadFailed(ctx, j, e)
		}
		return known{}, c.pushError(ctx, j, err)
	}
	out.Files++
	out.Reloads++
	if err := c.awaitWorker(ctx, before, out); errors.Is(err, config.ErrReload) {
		j.told = true // the API says that it has reloaded: the process may have it all
		return known{}, c.reloadFailed(ctx, j, err)
	} else if err != nil {
		return known{}, err
	}
	c.failedReload, c.late, c.leaving = false, nil, nil
	return c.checkStored(j, raw)
}

// awaitWorker waits until another worker serves. A HAProxy before 2.7 does not tell how
// a reload ended, so that the API calls it a success: only the worker's process id
// proves it.
func (c *Client) awaitWorker(ctx context.Context, before dpapi.Process, out *change.Outcome) error {
	if before.PID == 0 {
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, c.opts.ReloadTimeout)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		now, err := c.api.Process(limit)
		switch {
		case err == nil && now.PID != 0 && now.PID != before.PID:
			out.WorkerPID = now.PID
			return nil
		case sleep(limit, wait):
		case ctx.Err() != nil:
			return config.At("reload", context.Cause(ctx))
		default:
			return &config.Error{Stage: "reload", Output: "no new worker process within " + c.opts.ReloadTimeout.String(), Err: config.ErrReload}
		}
	}
}

// reloadFailed puts the last good files and text back at once. On disk the API has
// done so with the text, but it keeps the failed one in memory, and would write it
// with the next change that anyone makes.
func (c *Client) reloadFailed(ctx context.Context, j *job, cause error) error {
	ctx, cancel := restoring(ctx)
	defer cancel()
	again := c.failedReload && j.target.Version.Compare(change.HAProxy31) >= 0
	c.failedReload = !again
	err := c.undoFiles(ctx, j.written)
	j.told = j.told || err != nil
	if err == nil {
		err = c.restoreText(ctx, j, again)
	}
	if err != nil {
		c.known = nil
		e := config.At("reload", cause)
		e.Output = strings.TrimSpace(e.Output + "\nputting the last good configuration back failed as well: " + err.Error())
	}
	return cause
}

// restoreText pushes under the version that our failed text got, so that what another
// writer has written since stays.
//
// From HAProxy 3.1 on, a master whose last load failed does not hand its unix sockets
// to the next worker. That binds them anew and, if it fails as well, leaves none. So
// HAProxy loads the text again after a second failure.
func (c *Client) restoreText(ctx context.Context, j *job, again bool) error {
	text := j.before.text
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if was := j.before.config; was != nil {
		text = was.Main() // in which proxies name their defaults, which the API parts them from
	}
	mode := dpapi.SkipReload
	if again {
		mode = dpapi.ForceReload
	}
	raw, err := c.api.Push(ctx, text, j.before.version+1, mode)
	if err != nil {
		return errorAt("restore", err)
	}
	if again {
		j.told = false // it runs what is stored
	}
	if c.known != nil {
		c.known.version, c.known.text = raw.FileVersion, raw.Text
	}
	return nil
}

// checkStored checks what the API says it has stored.
func (c *Client) checkStored(j *job, raw dpapi.Raw) (known, error) {
	if raw.FileVersion != j.before.version+1 {
		// Between our write and the answer another writer wrote.
		return known{}, &config.Error{Stage: "verify", Err: config.ErrConflict}
	}
	if err := c.checkMeaning(raw.Text, j); err != nil {
		return known{}, err
	}
	return known{version: raw.FileVersion, text: raw.Text}, nil
}

// sameMeaning reports whether a stored text is a normalised one, or normalises to it.
func (c *Client) sameMeaning(stored, normal string) bool {
	if stored == normal || !c.comparable(stored, normal) {
		return stored == normal
	}
	n, err := c.stored.Normalise(stored)
	return err == nil && n == normal
}

// checkMeaning compares what the API has stored with what is wanted. Another form is
// harmless: before its first write, for one, the API leaves "from" away.
func (c *Client) checkMeaning(text string, j *job) error {
	if c.sameMeaning(text, j.wanted.Main()) {
		return nil
	}
	wrong := &config.Error{Stage: "verify", File: config.MainFile, Err: config.ErrUnsupported}
	have, err := config.New(text)
	if err != nil || !c.comparable(text, j.wanted.Main()) {
		wrong.Output = "the Dataplane API has stored something that cannot be compared"
		return wrong
	}
	for _, step := range diff.Compare(have, j.wanted.WithFiles(nil), change.Target{}) {
		if step.Impact != change.None {
			wrong.Output = fmt.Sprintf("the Dataplane API cannot store %s %s as it is", step.Kind, step.Name)
			return wrong
		}
	}
	return nil
}
