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

// restoreTimeout bounds a restore, which also runs after the context of the call has ended.
const restoreTimeout = 30 * time.Second

func restoring(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
}

// push stores the text, without a reload if possible.
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
		j.sent = j.sent || len(header) > 0
		return c.checkStored(j, raw)
	case isStatus(err, http.StatusInternalServerError) && len(header) > 0:
		// The text is stored and some actions are done: a reload completes the rest.
		return c.reloadInstead(ctx, j, out, errorAt("runtime", err))
	}
	return known{}, c.pushError(ctx, j, err)
}

// reload stores the text, makes HAProxy load it, and waits for the new worker.
func (c *Client) reload(ctx context.Context, j *job, out *change.Outcome) (known, error) {
	before, _ := c.api.Process(ctx) // if it fails, awaitWorker compares nothing
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
		j.sent = true // the API says that it has reloaded: the process may have everything
		return known{}, c.reloadFailed(ctx, j, err)
	} else if err != nil {
		return known{}, err
	}
	c.failedReload, c.late, c.leaving = false, nil, nil
	return c.checkStored(j, raw)
}

// awaitWorker waits until another worker serves. A HAProxy before 2.7 does not report how a
// reload ended, and the API then reports success. Only the process id of the worker proves
// it.
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

// reloadFailed restores the last good files and text at once. The API has restored the text
// on disk, but it keeps the failed text in memory. It would write that text with the next
// change by any client.
func (c *Client) reloadFailed(ctx context.Context, j *job, cause error) error {
	ctx, cancel := restoring(ctx)
	defer cancel()
	again := c.failedReload && j.target.Version.Compare(change.HAProxy31) >= 0
	c.failedReload = !again
	err := c.undoFiles(ctx, j.written)
	j.sent = j.sent || err != nil
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

// restoreText pushes with the version number of our failed text. If another writer has
// written since, the push fails and the other text stays.
//
// From HAProxy 3.1 on, a master whose last load failed does not hand its unix sockets to the
// next worker. That worker binds them anew and, if it fails as well, leaves none. So HAProxy
// loads the text again after a second failure.
func (c *Client) restoreText(ctx context.Context, j *job, again bool) error {
	text := j.before.text
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if was := j.before.config; was != nil {
		text = was.Main() // here proxies name their defaults; the API strips those names
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
		j.sent = false // the process runs what is stored
	}
	if c.known != nil {
		c.known.version, c.known.text = raw.FileVersion, raw.Text
	}
	return nil
}

// checkStored checks the text that the API has stored.
func (c *Client) checkStored(j *job, raw dpapi.Raw) (known, error) {
	if raw.FileVersion != j.before.version+1 {
		// Another writer wrote between our write and the answer.
		return known{}, &config.Error{Stage: "verify", Err: config.ErrConflict}
	}
	if err := c.checkMeaning(raw.Text, j); err != nil {
		return known{}, err
	}
	return known{version: raw.FileVersion, text: raw.Text}, nil
}

// sameMeaning reports whether a stored text equals a normalised one, or does after
// normalisation.
func (c *Client) sameMeaning(stored, normal string) bool {
	if stored == normal || !c.comparable(stored, normal) {
		return stored == normal
	}
	n, err := c.stored.Normalise(stored)
	return err == nil && n == normal
}

// checkMeaning compares the stored text with the wanted one. Another form is harmless: the
// API omits "from" before its first write, for example.
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
