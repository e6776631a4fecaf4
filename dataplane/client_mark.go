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

// settledContent stands in the mark where it would cost too much to remove it:
// the API looks through the whole configuration before it deletes a file.
const settledContent = "All that was changed has reached the running HAProxy.\n"

// largeText is the size of a configuration from which on the mark stays.
const largeText = 128 << 10

// markState is what is known of the mark of an endpoint.
type markState struct {
	set  bool // it says that a change is unfinished
	file bool // there is such a file, whatever it says
	late bool // set, but the change is finished and whether the mark could be removed is not known
}

// mark stores the mark where the process is about to change. A text that is
// pushed needs it as much as files do: the API stores it before it carries out
// runtime actions or reloads.
func (c *Client) mark(ctx context.Context, j *job) error {
	if c.marked.set && !c.marked.late || !j.touchesProcess() {
		return nil
	}
	if err := c.writeMark(ctx, unfinishedContent); err != nil {
		return c.fileError(err, unfinished.kind(), unfinished.name)
	}
	c.marked.set, c.marked.late = true, false
	return nil
}

func (c *Client) writeMark(ctx context.Context, content string) error {
	_, err := c.write(ctx, fileWrite{
		create: !c.marked.file,
		file:   File{Kind: unfinished.kind(), Name: unfinished.name, Content: []byte(content)},
	})
	c.marked.file = c.marked.file || err == nil
	return err
}

// unmark removes the mark: the process has what is stored, that text. If that
// fails the worst that comes of it is a needless reload by a successor, until a
// later Sync tries again that finds all as this one leaves it.
func (c *Client) unmark(ctx context.Context, text string) {
	if !c.marked.set {
		return
	}
	var err error
	if len(text) >= largeText {
		err = c.writeMark(ctx, settledContent)
	} else if err = c.api.DeleteFile(ctx, unfinished.storage, unfinished.name); err == nil || isStatus(err, http.StatusNotFound) {
		c.marked.file, err = false, nil
	}
	if err != nil {
		c.marked.late = true
		c.log.Warn("the mark of an unfinished change could not be removed", "error", err)
		return
	}
	c.marked.set, c.marked.late = false, false
}

// readMark finds out what a mark that is there says.
func (c *Client) readMark(ctx context.Context) error {
	content, err := c.api.ReadFile(ctx, unfinished.storage, unfinished.name)
	switch {
	case isStatus(err, http.StatusNotFound):
		return nil
	case err != nil:
		return c.fileError(err, unfinished.kind(), unfinished.name)
	}
	c.marked = markState{set: string(content) != settledContent, file: true}
	c.unsettled = c.unsettled || c.marked.set
	return nil
}
