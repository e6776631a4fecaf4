package host

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// TestRunFindsHalfDone: what Run finds of a change that a killed process left counts for the
// next Sync, and a DryRun may look meanwhile.
func TestRunFindsHalfDone(t *testing.T) {
	f := newFolder(t, memory(t))
	f.put(parse(t, "global\n"), true)
	require.NoError(t, f.mark(f.store.current()))
	f.doubt = false
	var both sync.WaitGroup
	both.Go(func() { _, _ = f.DryRun(t.Context(), parse(t, "global\n")) })
	both.Go(func() { require.NoError(t, f.recover(true)) })
	both.Wait()
	require.NoError(t, f.lock(t.Context()))
	require.True(t, f.doubt)
	f.unlock()
}

// TestRunEndsAfterSync: Run keeps the folder until a Sync has ended that writes there.
func TestRunEndsAfterSync(t *testing.T) {
	t.Parallel()
	s, stop := started(t)
	s.sync(s.text("one"))
	writes, goOn, once := make(chan struct{}), make(chan struct{}), sync.Once{}
	s.SetFailpoint(func(step string) {
		if strings.HasPrefix(step, "before rename ") {
			once.Do(func() { close(writes); <-goOn })
		}
	})
	synced := make(chan error, 1)
	go func() {
		_, err := s.Sync(t.Context(), parse(t, s.text("two")), change.Limits{})
		synced <- err
	}()
	<-writes
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	eventually(t, "HAProxy is stopped", func() bool {
		_, err := os.Stat(s.opts.MasterSocket)
		return os.IsNotExist(err)
	})
	require.ErrorIs(t, newHost(t, Options{Dir: s.dir}).CheckFolder(), config.ErrBusy)
	close(goOn)
	<-synced
	<-stopped
	require.NoError(t, newHost(t, Options{Dir: s.dir}).CheckFolder())
}
