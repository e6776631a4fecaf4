package main

import (
	"context"
	"sync/atomic"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// handover stands between the loop and the election: in each term the loop deploys
// only what it rendered after it read who has which host by the deployed
// configuration. Otherwise a host may change hands together with the leadership, as
// two processes see the same changes in other portions. All methods may be called
// concurrently.
type handover struct {
	*render.Templates
	election reconcile.Leader
	loop     *reconcile.Loop

	terms                 atomic.Uint64 // that began
	term, rendered, ready atomic.Uint64 // what is read, rendered, and valid is of this term; 0: of none
}

// begin opens a term, at the end of which the caller calls end.
func (h *handover) begin() {
	h.term.Store(h.terms.Add(1))
	h.loop.Trigger("this process leads")
}

func (h *handover) end() { h.term.Store(0) }

// Leading implements [reconcile.Leader].
func (h *handover) Leading() bool {
	term := h.term.Load()
	return term != 0 && h.ready.Load() == term && h.election.Leading()
}

// leads returns the number of the term in which this process deploys; 0: it does not.
func (h *handover) leads() uint64 {
	if term := h.term.Load(); h.Leading() {
		return term
	}
	return 0
}

// Render implements [reconcile.Renderer].
func (h *handover) Render(ctx context.Context) (*reconcile.Rendered, error) {
	h.rendered.Store(h.term.Load())
	return h.Templates.Render(ctx)
}

// Settle implements [reconcile.Settler]. The loop calls it for what it accepted
// while this process does not lead.
func (h *handover) Settle(cfg *dataplane.Config, err error) (again bool) {
	again = h.Templates.Settle(cfg, err)
	if term := h.rendered.Load(); err == nil && term != 0 && h.ready.Swap(term) != term {
		h.loop.LeadershipChanged()
	}
	return again
}

// begin is the begin of a term as leader.
func (c *controller) begin(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, syncTimeout)
	previous, _ := c.deployed(bounded)
	c.hosts.Remember(previous)
	cancel()
	c.handover.begin()
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
