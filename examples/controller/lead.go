package main

import (
	"context"

	"github.com/hapticsdk/haptic/dataplane"
)

// beginTerm makes this process know, before it deploys as leader, all that the leader
// before it may have known: the resources, and who has which host by the deployed
// configuration. Otherwise routes may be older again for a while, and a host may change
// hands together with the leadership, as two processes see the same changes in other
// portions.
func (c *controller) beginTerm(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, syncTimeout)
	if err := c.watchers.Refresh(bounded); err != nil && ctx.Err() == nil {
		c.log.Warn("leads without having read all resources again: some may be older than what is deployed", "error", err)
	}
	cancel()
	c.following.forget()
	bounded, cancel = context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	previous, _ := c.deployed(bounded)
	c.hosts.Remember(previous)
}

// deployed is what an instance has, nil for nothing. The error says that none can tell.
func (c *controller) deployed(ctx context.Context) (*dataplane.Config, error) {
	var previous *dataplane.Config
	var err error
	if c.local != nil {
		previous, err = c.local.Current(ctx)
	} else {
		previous, err = c.discovery.Current(ctx)
	}
	if err != nil { // the first deployment writes it anew
		c.log.Warn("the stored configuration cannot be read", "error", err)
	}
	return previous, err
}
