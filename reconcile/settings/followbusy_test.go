package settings

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestFollowFileInABusyFolder: the file is read soon after it changed, however often
// others in its folder do.
func TestFollowFileInABusyFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "settings.yaml")
	save := func(n int) {
		text := fmt.Sprintf("haproxyConfig: {template: \"global\\n    maxconn %d\\n\"}\n", n)
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	save(1)
	applied := make(chan struct{}, 100)
	bus := eventbus.New(nil)
	eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[Applied]) { applied <- struct{}{} })
	bus.Start()
	live, err := NewLive(LiveOptions{Source: k8swatchtest.NewSource(), Bus: bus})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { _ = live.Run(ctx) })
	wg.Go(func() { _ = live.FollowFile(ctx, file) })
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := os.WriteFile(filepath.Join(dir, "busy"), fmt.Append(nil, n), 0o600); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	<-applied
	for n := range 5 {
		begun := time.Now()
		save(n + 2)
		<-applied
		t.Log(time.Since(begun))
		require.Less(t, time.Since(begun), 2*time.Second)
	}
	require.NoError(t, bus.Close(context.Background()))
}
