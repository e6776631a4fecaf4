package dataplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// HAProxies that end soon are started with growing pauses, which are bounded.
func TestLocalPauses(t *testing.T) {
	s := &supervisor{}
	var pauses []time.Duration
	for range 10 {
		pauses = append(pauses, s.nextPause())
	}
	const ms = time.Millisecond
	require.Equal(t, []time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, maxPause, maxPause}, pauses)
}
