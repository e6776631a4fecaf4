package e2e

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// patience is how long a condition may take that should hold in moments: wide,
// because the machine may be busy, and never a figure of merit.
const patience = 30 * time.Second

// eventually waits until check returns nil, and fails the test with its last
// error after the patience.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	eventuallyWithin(t, patience, what, check)
}

func eventuallyWithin(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := poll(t.Context(), limit, check); err != nil {
		t.Fatalf("%s, after %v: %v", what, limit, err)
	}
}

// poll waits until check returns nil and returns its last error otherwise.
func poll(ctx context.Context, limit time.Duration, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil && last == nil {
		last = err
	}
	if err == nil {
		return nil
	}
	return last
}
