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

// failed sorts out what a refused push means: bad text, a reload that did not
// work, or anything else.
func (c *Client) failed(ctx context.Context, j *job, r *Result, written []fileWrite, err error) error {
	e := c.errorAt("configuration", err)
	if !errors.Is(e.Err, ErrInvalid) {
		return e
	}
	if e.Status == http.StatusBadRequest && strings.HasPrefix(strings.ToLower(e.Output), "reload failed") {
		e.Stage, e.Err = "reload", ErrReload
		return c.reloadFailed(ctx, j, written, e)
	}
	e = c.pushError(ctx, err, j.desired, j.before.version)
	c.takeBack(ctx, j, written, false)
	return e
}

// takeBack puts files back after nothing else has changed.
func (c *Client) takeBack(ctx context.Context, j *job, written []fileWrite, unsettled bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if err := c.undoFiles(ctx, written); err != nil {
		c.log.Warn("files could not be put back", "error", err)
		return
	}
	c.unsettled = unsettled
}

// reloadFailed puts the last good text and files back at once: on disk the API
// has done so itself, but it keeps the failed text in memory and would write it
// with the next change that anybody makes.
func (c *Client) reloadFailed(ctx context.Context, j *job, written []fileWrite, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	err := c.undoFiles(ctx, written)
	if err == nil {
		err = c.restoreText(ctx, j)
	}
	if err != nil {
		c.known = nil
		var e *Error
		if errors.As(cause, &e) {
			e.Output = strings.TrimSpace(e.Output + "\nputting the last good configuration back failed as well: " + err.Error())
		}
		return cause
	}
	c.unsettled = false
	return cause
}

func (c *Client) restoreText(ctx context.Context, j *job) error {
	now, err := c.api.GetRaw(ctx)
	if err != nil {
		return c.errorAt("restore", err)
	}
	if strings.TrimSpace(j.before.text) == "" {
		return nil
	}
	raw, err := c.api.Push(ctx, j.before.text, now.Version, dpapi.SkipReload)
	if err != nil {
		return c.errorAt("restore", err)
	}
	if c.known != nil {
		c.known.version = raw.FileVersion
	}
	return nil
}
