package e2e

import (
	"context"
	"testing"
	"time"
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

// poll waits until check returns nil and returns its last error otherwise. It
// asks often at first, for what is measured by it, and then less often: what it
// waits for needs the processor too.
func poll(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	pause, often := 2*time.Millisecond, time.Now().Add(2*time.Second)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(often) {
			pause = 50 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
