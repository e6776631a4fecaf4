package dataplane

import (
	"context"
	"net/http"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// unfinished is a stored file that stands there from before anything is written
// that the running process uses until the process has it. Whoever finds it, such
// as the successor of a controller that was killed in between, must not take
// equal files and an equal text for a process that has read them.
var unfinished = fileRef{dpapi.General, "haptic-unfinished.txt"}

const unfinishedContent = "Something was changed that the running HAProxy may not have yet.\n"

// mark stores the mark where the process is about to change. A text that is
// pushed needs it as much as files do: the API stores it before it carries out
// runtime actions or reloads.
func (c *Client) mark(ctx context.Context, j *job) error {
	if c.marked || !j.touchesProcess() {
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
