package main

import (
	"context"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
)

// beginTerm runs before this process deploys as leader. It reads all resources again, and
// the owners of hosts from the deployed configuration. Two processes may see the same
// changes in different batches. Without this, routes could become older again for a while,
// or a host could change hands with the leadership.
func (c *controller) beginTerm(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, syncTimeout)
	if err := c.watchers.Refresh(bounded); err != nil && ctx.Err() == nil {
		c.log.Warn("the new leader could not read all resources again: some objects may be older than what is deployed", "error", err)
	}
	cancel()
	c.feed.Load().Reread()
	bounded, cancel = context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if previous, _ := c.deployed(bounded); ingress.HasHosts(previous) { // otherwise the instance is new
		c.previous.Store(&previous)
	}
}

// deployed returns the configuration of an instance, nil for none. The error says that
// no instance could tell.
func (c *controller) deployed(ctx context.Context) (*dataplane.Config, error) {
	var previous *dataplane.Config
	var err error
	if c.local != nil {
		previous, err = c.local.Current(ctx)
	} else {
		previous, err = c.discovery.Current(ctx)
	}
	if err != nil { // the first deployment replaces it
		c.log.Warn("the stored configuration cannot be read", "error", err)
	}
	return previous, err
}
