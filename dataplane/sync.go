package dataplane

import (
	"errors"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
)

// SyncOption bounds what one Sync may do.
type SyncOption struct{ set func(*change.Limits) }

// WithoutReload applies at once what changes at runtime, and leaves the rest:
// [Result.Left] tells it. So an address, a weight, a map entry or a certificate
// never waits until a reload is due. What makes no sense before that reload is left
// too, such as a map entry that leads to a backend that is to come.
func WithoutReload() SyncOption {
	return SyncOption{func(l *change.Limits) { l.NoReload = true }}
}

// StoreLater returns as soon as the running process has the change, where that can be
// told it by itself. Then [Result.Pending] is set, and a call of [Client.Store] has to
// follow. A [Local] stores at once.
func StoreLater() SyncOption {
	return SyncOption{func(l *change.Limits) { l.Later = true }}
}

// WithFence has fence asked right before each change of the HAProxy. Its error ends
// the Sync, and is wrapped by the error of the Sync.
//
// It is for a process that may lose the right to deploy while a Sync is under way,
// and not notice: one that was frozen goes on where it stopped, long after another
// has taken over. The fence must go by the clock, as k8swatch.Election.Leading does:
// it is all that keeps two processes apart.
func WithFence(fence func() error) SyncOption {
	return SyncOption{func(l *change.Limits) { l.Fence = fence }}
}

// SyncLimits are what the options of a Sync come to. A fake reads them by [LimitsOf].
type SyncLimits struct {
	WithoutReload bool
	StoreLater    bool
	Fence         func() error // nil for none
}

// LimitsOf returns what the options of a Sync come to.
func LimitsOf(options ...SyncOption) SyncLimits {
	l := limitsOf(options)
	return SyncLimits{WithoutReload: l.NoReload, StoreLater: l.Later, Fence: l.Fence}
}

func limitsOf(options []SyncOption) change.Limits {
	var l change.Limits
	for _, o := range options {
		o.set(&l)
	}
	return l
}

var errNoConfig = errors.New("no desired configuration")
