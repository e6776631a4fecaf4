package reconcile

import (
	"context"

	"github.com/hapticsdk/haptic/dataplane"
)

// Prober is a [Target] that says what it is before anything is deployed to it,
// as [dataplane.Client] does. One that cannot be reached is probed again as a
// failed deployment is tried again; where its version does not fit (its error
// is [dataplane.ErrUnsupported]), or the credentials are wrong, after 5 s,
// doubling to 60 s. What it is stands in [InstanceState].
type Prober interface {
	Target
	Probe(ctx context.Context) (dataplane.Target, error)
}
