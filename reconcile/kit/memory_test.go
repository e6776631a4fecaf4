package kit

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMemoryIsGivenBack: what the last of many reconciliations left is collected once nothing
// happens, and not while there is work.
func TestMemoryIsGivenBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		completed, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- giveBack(ctx, completed) }()
		completed <- struct{}{}
		synctest.Wait()
		debug.SetGCPercent(-1) // nothing else collects
		for range 10 {
			waste = make([]byte, 10<<20)
			completed <- struct{}{}
			time.Sleep(quiet - time.Second)
		}
		waste = nil
		require.Greater(t, garbage(), uint64(50<<20))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Less(t, garbage(), uint64(worthwhile))
		cancel()
		require.NoError(t, <-ended)
	})
}

var waste []byte // escapes, so that it is garbage of the heap
