package dataplane

import (
	"errors"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
)

// SyncOption bounds what one Sync may do.
type SyncOption struct{ set func(*change.Limits) }

// WithoutReload applies at once what changes at runtime, and leaves the rest in
// [Result.Left]. That way an address, a weight, a map entry or a certificate never waits
// until a reload is due. It also leaves changes that make no sense before that reload, such
// as a map entry that leads to a future backend.
func WithoutReload() SyncOption {
	return SyncOption{func(l *change.Limits) { l.NoReload = true }}
}

// StoreLater returns as soon as the running process has the change, if the change can be made
// there on its own. It then sets [Result.Pending], and the caller has to call [Client.Store].
// A [Local] stores at once.
func StoreLater() SyncOption {
	return SyncOption{func(l *change.Limits) { l.Later = true }}
}

// WithFence makes the Sync call fence right before each change of the HAProxy. An error of
// fence ends the Sync, and the error of the Sync wraps it.
//
// It is for a process that may lose the right to deploy during a Sync without noticing. A
// process that was frozen, for example, goes on where it stopped, long after another process
// has taken over. The fence must go by the clock, as k8swatch.Election.Leading does: nothing
// else keeps the two processes apart.
func WithFence(fence func() error) SyncOption {
	return SyncOption{func(l *change.Limits) { l.Fence = fence }}
}

// SyncLimits are the options of a Sync as values. A fake target gets them from [LimitsOf].
type SyncLimits struct {
	WithoutReload bool
	StoreLater    bool
	Fence         func() error // nil for none
}

// LimitsOf converts the options of a Sync to values.
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
