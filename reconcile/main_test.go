package reconcile

import (
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rise makes most at least n.
func rise(most *atomic.Int32, n int32) {
	for {
		if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
			return
		}
	}
}
