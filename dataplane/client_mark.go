package dataplane

import (
	"context"
	"net/http"
	"slices"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// unfinished is a stored file that stands there from before files are written
// that the running process uses until the process has what is in them. Whoever
// finds it, such as the successor of a controller that was killed in between,
// must not take equal files for a process that has read them.
var unfinished = fileRef{dpapi.General, "haptic-unfinished.txt"}

const unfinishedContent = "Files were changed that the running HAProxy may not have read yet.\n"

// mark stores the mark where files or entries are about to change. A push of
// the text alone needs none: the text is what the next one compares.
func (c *Client) mark(ctx context.Context, j *job) error {
	changes := len(j.entries) > 0 || slices.ContainsFunc(j.writes, func(w fileWrite) bool { return !w.quiet })
	if c.marked || !changes || !j.touchesProcess() {
		return nil
	}
	err := c.api.CreateFile(ctx, unfinished.storage, unfinished.name, []byte(unfinishedContent))
	if err != nil && !isStatus(err, http.StatusConflict) {
		return c.fileError(err, unfinished.kind(), unfinished.name)
	}
	c.marked = true
	return nil
}

// unmark removes the mark: the process has what is stored. If that fails the
// worst that comes of it is a needless reload by a successor.
func (c *Client) unmark(ctx context.Context) {
	if !c.marked {
		return
	}
	err := c.api.DeleteFile(ctx, unfinished.storage, unfinished.name)
	if err != nil && !isStatus(err, http.StatusNotFound) {
		c.log.Warn("the mark of an unfinished change could not be removed", "error", err)
		return
	}
	c.marked = false
}
