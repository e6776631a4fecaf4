package dataplane

import (
	"context"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// WithFence returns a context for Sync that has fence asked right before
// whatever changes a HAProxy: each such call of a [Client], each stage of a
// [Local]. An error of fence ends the Sync, and is wrapped by its error; a
// transaction that is open then is given up, which HAProxy does not see.
//
// It is for a process that may lose the right to deploy while a Sync is under
// way, and not notice: one that was frozen goes on where it stopped, long after
// another has taken over. The fence must go by the clock, as
// k8swatch.Election.Leading does: it is all that keeps two processes apart. The
// version of a configuration refuses one that was on its way when another process
// wrote; what is on its way to a file or to the running process is not refused.
func WithFence(ctx context.Context, fence func() error) context.Context {
	return dpapi.WithFence(ctx, fence)
}
