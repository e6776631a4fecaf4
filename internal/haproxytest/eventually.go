package haproxytest

import (
	"testing"
	"time"
)

// Patience is for what happens at once on a machine that has nothing else to do.
const Patience = time.Minute

// Eventually polls until the condition holds, and ends the test where it does not.
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
