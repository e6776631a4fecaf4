package haproxytest

import (
	"testing"
	"time"
)

// Patience is the time limit for events that take next to no time on an idle machine.
const Patience = time.Minute

// Eventually polls until the condition holds. If that takes longer than [Patience], it ends
// the test.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}
