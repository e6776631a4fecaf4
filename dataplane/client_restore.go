package dataplane

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// restoreTimeout bounds putting things back, which also happens when the
// context of the call has ended.
const restoreTimeout = 30 * time.Second

// losesSockets is the version of HAProxy from which on a reload that fails after
// another one takes unix sockets away.
var losesSockets = Version{3, 1}

// failed sorts out what a refused push means: bad text, a reload that did not
// work, or anything else.
func (c *Client) failed(ctx context.Context, j *job, written []fileWrite, version int64, err error) error {
	e := c.errorAt("configuration", err)
	if !errors.Is(e.Err, ErrInvalid) {
		return e
	}
	if e.Status == http.StatusBadRequest && strings.HasPrefix(strings.ToLower(e.Output), "reload failed") {
		e.Stage, e.Err, e.Output = "reload", ErrReload, redactOutput(e.Output, j.text)
		return c.reloadFailed(ctx, j, written, version, e)
	}
	e = c.pushError(ctx, err, j)
	c.takeBack(ctx, j, written)
	return e
}

// takeBack puts files back after the text was refused.
func (c *Client) takeBack(ctx context.Context, j *job, written []fileWrite) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if err := c.undoFiles(ctx, written); err != nil {
		c.log.Warn("files could not be put back", "error", err)
		c.known = nil
		return
	}
	c.asBefore(ctx, j)
}

// asBefore notes that what is stored is as it was before a job. What the
// process was told meanwhile only a reload undoes.
func (c *Client) asBefore(ctx context.Context, j *job) {
	if j.owned != nil {
		if err := c.own(ctx, j.owned); err != nil {
			c.log.Warn("what belongs to us could not be written as it was", "error", err)
			c.known = nil
		}
	}
	c.unsettled = j.open || j.told
	if !c.unsettled {
		c.unmark(ctx, j.text)
	}
}

// reloadFailed puts the last good text and files back at once: on disk the API
// has done so itself, but it keeps the failed text in memory and would write it
// with the next change that anybody makes.
func (c *Client) reloadFailed(ctx context.Context, j *job, written []fileWrite, version int64, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	again := c.reloadFails && j.target.Version.Compare(losesSockets) >= 0
	c.reloadFails = true
	err := c.undoFiles(ctx, written)
	if err == nil {
		c.asBefore(ctx, j)
		err = c.restoreText(ctx, j, version+1, again)
	}
	if err != nil {
		c.known = nil
		var e *Error
		if errors.As(cause, &e) {
			e.Output = strings.TrimSpace(e.Output + "\nputting the last good configuration back failed as well: " + err.Error())
		}
	}
	return cause
}

// restoreText pushes under the version that our failed text got, so that what
// somebody else has written since stays.
//
// From HAProxy 3.1 on, a master whose last load failed does not hand its unix
// sockets to the next worker, which binds them anew and, if it fails as well,
// leaves nobody there. So HAProxy loads the text again after a second failure.
func (c *Client) restoreText(ctx context.Context, j *job, version int64, again bool) error {
	if strings.TrimSpace(j.before.text) == "" {
		return nil
	}
	text := j.before.text
	if was := j.before.deployed; was != nil && severalDefaults(was.main) && !keepsDefaults(text) {
		text = was.main
	}
	mode := dpapi.SkipReload
	if again {
		mode = dpapi.ForceReload
	}
	raw, err := c.api.Push(ctx, text, version, mode)
	if err != nil {
		return c.errorAt("restore", err)
	}
	if again {
		c.log.Warn("HAProxy has loaded the last good configuration again, since another failed reload has taken its unix sockets away")
		c.reloadFails, c.unsettled, c.late = false, false, lateReload{} // it runs what is stored
		c.unmark(ctx, j.text)
	}
	if c.known != nil {
		c.known.version, c.known.text = raw.FileVersion, raw.Text
	}
	return nil
}
