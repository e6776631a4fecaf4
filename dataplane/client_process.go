package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// calls is how many calls the endpoints of the running process get.
func (j *job) calls() int {
	n := len(j.entries) + len(j.replaces) + len(j.lists) + len(j.forgets) + len(j.cas)
	for _, do := range j.patterns {
		n += len(do.changes)
	}
	for _, s := range j.servers {
		if s.comes != nil || s.gone {
			n++
		}
	}
	return n
}

// changeProcess makes those changes of the running process that are no runtime
// actions, and then checks all that changed at runtime. What did not arrive
// takes a reload.
func (c *Client) changeProcess(ctx context.Context, j *job, r *Result, written []fileWrite, after *baseline) error {
	j.told = j.told || j.calls() > 0
	err := c.callProcess(ctx, j)
	if err == nil {
		err = c.verifyRuntime(ctx, j, written)
	}
	if err == nil {
		r.Commands += j.calls()
		return nil
	}
	cause := c.errorAt("runtime", err)
	if cause.Status == 0 && !errors.Is(cause, errNotApplied) || errors.Is(cause, ErrUnauthorized) {
		return cause // the next attempt will reload
	}
	*after, err = c.fallBackToReload(ctx, j, r, written, cause)
	return err
}

// callProcess makes the changes in an order in which what is referred to is
// there before what refers to it, and stays until that is gone.
func (c *Client) callProcess(ctx context.Context, j *job) error {
	for _, s := range j.servers {
		if s.comes == nil {
			continue
		}
		if err := c.callAddServer(ctx, s); err != nil {
			return c.errorAt("runtime", err)
		}
	}
	if err := c.changeMaps(ctx, j); err != nil {
		return err
	}
	for _, do := range j.patterns {
		if err := c.callPatterns(ctx, do); err != nil {
			return c.errorAt("runtime", err)
		}
	}
	for _, f := range j.cas {
		if err := c.api.SetCAFile(ctx, c.opts.Layout.Path(f.Kind, f.Name), f.Content); err != nil {
			return c.errorAt("runtime", err)
		}
	}
	for _, l := range j.lists {
		if err := c.callList(ctx, l); err != nil {
			return c.errorAt("runtime", err)
		}
	}
	for _, f := range j.forgets {
		if err := c.api.ForgetCertificate(ctx, c.opts.Layout.Path(f.Kind, f.Name)); err != nil && !isStatus(err, http.StatusNotFound) {
			return c.errorAt("runtime", err)
		}
	}
	deadline := time.Now().Add(serverLeaves)
	for _, s := range j.servers {
		if !s.gone {
			continue
		}
		if err := c.callDeleteServer(ctx, s, deadline); err != nil {
			return c.errorAt("runtime", err)
		}
	}
	return nil
}

func (c *Client) callAddServer(ctx context.Context, s serverChange) error {
	err := c.api.AddServer(ctx, s.backend, s.comes)
	if err != nil {
		return err
	}
	for _, f := range s.fields {
		if f.name == "state" && f.value == "ready" {
			err = c.api.SetServerState(ctx, s.backend, s.server, f.value)
		}
	}
	return err
}

// serverLeaves is how long servers may take, all together, until their last
// connection has ended. After that a reload is the better way: the old process
// serves the connections to their end.
const serverLeaves = time.Second

func (c *Client) callDeleteServer(ctx context.Context, s serverChange, deadline time.Time) error {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		err := c.api.DeleteServer(ctx, s.backend, s.server)
		switch status := dpapi.Status(err); {
		case err == nil || status == http.StatusNotFound:
			return nil
		case status != http.StatusInternalServerError || time.Now().Add(wait).After(deadline) || !sleep(ctx, wait):
			return err
		}
	}
}

func (c *Client) callList(ctx context.Context, l listChange) error {
	if l.kind != addCrtListEntry {
		if err := c.api.DeleteCrtListEntry(ctx, l.list, l.entry.File); err != nil {
			return err
		}
	}
	if l.kind == deleteCrtListEntry {
		return nil
	}
	return c.api.AddCrtListEntry(ctx, l.list, l.entry)
}

// fallBackToReload reads the version again, which has moved, and reloads.
func (c *Client) fallBackToReload(ctx context.Context, j *job, r *Result, written []fileWrite, cause *Error) (baseline, error) {
	c.log.Warn("changing the running process failed, reloading instead", "error", cause)
	why := "changing the running process failed"
	switch {
	case cause.Output != "":
		why += ": " + cause.Output
	case errors.Is(cause, errNotApplied):
		why += fmt.Sprintf(": %v", cause.Err)
	}
	j.fallBack(r, why)
	now, err := c.api.GetRaw(ctx)
	if err != nil {
		return baseline{}, c.errorAt("read", err)
	}
	if now.Text != j.before.text && !c.sameMeaning(now.Text, j.text) {
		return baseline{}, &Error{Endpoint: c.Name(), Stage: "runtime", Err: ErrConflict}
	}
	return c.reload(ctx, j, r, written, now.Version)
}
