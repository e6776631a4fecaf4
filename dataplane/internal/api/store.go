package api

import (
	"context"
	"errors"
	"slices"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// storing is a push under way, during which Syncs keep changing the process.
type storing struct {
	late map[change.ServerRef]lateServer // the late servers that the push changes
	done chan struct{}
}

// meets reports whether a job concerns a server that the push changes.
func (s *storing) meets(j *job) bool {
	return slices.ContainsFunc(change.RuntimeChanges(j.steps), func(do change.Do) bool {
		_, ok := s.late[change.RefOf(do)]
		return ok
	})
}

// errStoring says that a job has to wait for the push under way.
var errStoring = errors.New("a push is under way")

// awaitStored gives up the turn until no push is under way.
func (c *Client) awaitStored(ctx context.Context) (err error) {
	for api := c.api; err == nil && c.storing != nil; c.api = api {
		done := c.storing.done
		c.turn <- struct{}{}
		select {
		case <-done:
		case <-ctx.Done():
			err = config.At("wait", context.Cause(ctx))
		}
		<-c.turn
	}
	return err
}

// holds reports whether the rest of a job can wait for Store, once the process has the
// changes.
func (c *Client) holds(j *job) bool {
	return j.impact() != change.Reload && j.readable && !j.repair && j.before.config != nil && (j.first || j.impact() == change.None && c.ahead != nil)
}

// hold leaves the rest of a job to Store.
func (c *Client) hold(j *job, out *change.Outcome) {
	out.Pending = true
	if c.known == nil {
		c.known = &j.before
	}
	c.know(j.stored)
	c.ahead, c.pid = j, j.pid
}

// know notes files that are stored by now.
func (c *Client) know(files []config.File) {
	c.known.config = c.known.config.WithFiles(withFiles(c.known.config.Files, files))
}

// withFiles returns the sorted files with others added or put in their places.
func withFiles(files, others []config.File) []config.File {
	files = slices.Clone(files)
	for _, f := range others {
		at, found := slices.BinarySearchFunc(files, f, config.CompareFiles)
		if found {
			files[at] = f
		} else {
			files = slices.Insert(files, at, f)
		}
	}
	return files
}

// restarted reports whether a new process runs, which has lost the changes that are not
// stored.
func (c *Client) restarted(pid int) bool {
	if c.pid == pid || c.ahead == nil && len(c.late) == 0 {
		c.pid = pid
		return false
	}
	c.log.Warn("HAProxy reloaded and lost runtime changes that were not stored yet")
	c.known, c.ahead, c.late, c.leaving = nil, nil, nil, nil
	return true
}

// Store stores the changes that Syncs made only in the process. Syncs may run meanwhile.
func (c *Client) Store(ctx context.Context, limits change.Limits) error {
	ctx, end, err := c.begin(ctx, limits)
	if err != nil {
		return err
	}
	defer end()
	if err := c.awaitStored(ctx); err != nil {
		return err
	}
	if c.ahead == nil || c.known == nil {
		c.retire(ctx)
		return nil
	}
	if err = c.store(ctx, c.ahead); err != nil {
		c.doubt = c.doubt || errors.Is(err, errNotApplied)
		c.known, c.ahead = nil, nil
	}
	return err
}

func (c *Client) store(ctx context.Context, sent *job) error {
	err := c.sameProcess(ctx)
	if err != nil {
		return err
	}
	j := &job{desired: sent.desired, wanted: sent.wanted, ledger: sent.ledger, target: sent.target, before: *c.known}
	files := c.replaceable(j, j.before.config.Files)
	j.writes, j.deletes = fileChanges(files, j.desired.Files)
	out := &change.Outcome{}
	if err := c.writeFiles(ctx, j, out); err != nil {
		return err
	}
	c.know(j.stored)
	c.meetLate(j)
	after := j.before
	if j.pushes() {
		if after, err = c.pushBeside(ctx, j, out); err != nil {
			return err
		}
	}
	if c.known == nil || c.ahead == nil {
		return &config.Error{Stage: "store", Err: config.ErrConflict}
	}
	if err := c.settle(ctx, j.late); err != nil {
		return errorAt("store", err)
	}
	if err := c.sameProcess(ctx); err != nil {
		return err
	}
	if c.ahead != sent { // there is more to store and to delete
		j.wanted = j.wanted.WithFiles(c.known.config.Files)
		c.remember(j, after)
		return nil
	}
	return c.finish(ctx, j, after, out)
}

// sameProcess fails if HAProxy has reloaded the configuration that was stored before.
func (c *Client) sameProcess(ctx context.Context) error {
	process, err := c.api.Process(ctx)
	if err != nil && dpapi.Status(err) == 0 {
		return errorAt("store", err)
	}
	if c.restarted(process.PID) {
		return &config.Error{Stage: "store", Err: config.ErrConflict, Output: "HAProxy has reloaded meanwhile"}
	}
	return nil
}

// pushBeside pushes while Syncs take their turns.
func (c *Client) pushBeside(ctx context.Context, j *job, out *change.Outcome) (known, error) {
	api, s := c.api, &storing{late: j.late, done: make(chan struct{})}
	header, _ := j.header()
	c.storing = s
	c.turn <- struct{}{}
	raw, err := api.Push(ctx, j.wanted.Main(), j.before.version, dpapi.SkipReload, header...)
	<-c.turn
	c.api, c.storing = api, nil
	close(s.done)
	if err != nil {
		return known{}, c.pushError(ctx, j, err)
	}
	return c.checkStored(j, raw)
}
