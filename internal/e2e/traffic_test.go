package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// traffic is visitors that never stop asking, to see whether anything a test
// does to the controller or the cluster costs a request.
type traffic struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	requests int
	failures int
	slowest  time.Duration
	examples []string // of failures, the first few
}

// startTraffic asks for the host about 200 times a second on new connections.
// Anything but status 200 is a failure.
func startTraffic(t testing.TB, v *visitor, host string) *traffic {
	t.Helper()
	return startTrafficAt(t, v, host, 200)
}

// startTrafficAt does so at most this often in a second.
func startTrafficAt(t testing.TB, v *visitor, host string, rate int) *traffic {
	t.Helper()
	const visitors = 4
	ctx, cancel := context.WithCancel(context.Background())
	tr := &traffic{cancel: cancel}
	t.Cleanup(func() { tr.stop() })
	for range visitors {
		tr.wg.Go(func() {
			tick := time.NewTicker(visitors * time.Second / time.Duration(rate))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					start := time.Now()
					err := v.expectStatus(host, "/", 200)()
					tr.count(err, time.Since(start))
				}
			}
		})
	}
	return tr
}

func (tr *traffic) count(err error, took time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.requests++
	tr.slowest = max(tr.slowest, took)
	if err != nil {
		tr.failures++
		if len(tr.examples) < 10 {
			tr.examples = append(tr.examples, time.Now().Format("15:04:05.000 ")+err.Error())
		}
	}
}

// answered is how many requests have come back well so far.
func (tr *traffic) answered() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.requests - tr.failures
}

func (tr *traffic) stop() {
	tr.cancel()
	tr.wg.Wait()
}

// noFailures ends the traffic, once there was enough of it to prove something,
// and fails the test if a request failed.
func (tr *traffic) noFailures(t testing.TB, atLeast int) {
	t.Helper()
	eventually(t, "there is traffic", tr.reaches(atLeast))
	tr.stop()
	t.Logf("%d requests, %d failed, the slowest took %v", tr.requests, tr.failures, tr.slowest.Round(time.Millisecond))
	if tr.failures > 0 {
		t.Errorf("%d of %d requests failed: %q", tr.failures, tr.requests, tr.examples)
	}
}

// reaches is a condition: that so many requests were made in all.
func (tr *traffic) reaches(goal int) func() error {
	return func() error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if tr.requests < goal {
			return fmt.Errorf("%d requests were made, waiting for %d", tr.requests, goal)
		}
		return nil
	}
}

// keepsFlowing is a condition: that this many more requests are answered.
func (tr *traffic) keepsFlowing(more int) func() error {
	goal := tr.answered() + more
	return func() error {
		if n := tr.answered(); n < goal {
			return fmt.Errorf("%d requests were answered, waiting for %d", n, goal)
		}
		return nil
	}
}
