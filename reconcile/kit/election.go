package kit

import (
	"context"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// Election is a [k8swatch.Election] that publishes [reconcile.LeaderObserved],
// [reconcile.LeaderBecame] and [reconcile.LeaderLost].
type Election struct {
	*k8swatch.Election
	bus *eventbus.Bus
}

// NewElection is [k8swatch.NewElection]. It sets OnLeader, to publish on bus.
func NewElection(bus *eventbus.Bus, opts k8swatch.ElectionOptions) (*Election, error) {
	opts.OnLeader = func(id string) { eventbus.Publish(bus, reconcile.LeaderObserved{Identity: id}) }
	e, err := k8swatch.NewElection(&opts)
	return &Election{e, bus}, err
}

// Run takes part until ctx ends. At the start of each term it calls begin, with a context that
// ends with the term. When the term and begin have ended, it calls end, which may be nil.
func (e *Election) Run(ctx context.Context, begin func(ctx context.Context), end func()) error {
	return e.Election.Run(ctx, func(ctx context.Context) {
		eventbus.Publish(e.bus, reconcile.LeaderBecame{Identity: e.Identity()})
		begin(ctx)
		<-ctx.Done()
		if end != nil {
			end()
		}
		eventbus.Publish(e.bus, reconcile.LeaderLost{Identity: e.Identity()})
	})
}
