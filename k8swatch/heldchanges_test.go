package k8swatch_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestHeldChanges: a Change that somebody keeps costs what differs, not its snapshot:
// 1,000 of 5,000 objects take less than 64 MB.
func TestHeldChanges(t *testing.T) {
	src := k8swatchtest.NewSource()
	for i := range 5000 {
		src.Apply(ingress("a", fmt.Sprint(i), "host"))
	}
	var rec recorder
	w := mustNew(t, src, ingresses, &k8swatch.Options{OnChange: rec.onChange, Debounce: -1, IndexBy: []string{"metadata.name"}})
	start(t, w)
	synced(t, w, 5000)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 1000 {
		src.Apply(ingress("a", fmt.Sprint(i*7%5000), fmt.Sprint(i)))
		eventually(t, "it is told", func() bool { return len(rec.all()) > i })
	}
	used := int64(heap() - before)
	t.Logf("%d calls hold %d KB", len(rec.all()), used>>10)
	require.LessOrEqual(t, used, int64(64<<20), "%d calls hold %d MB", len(rec.all()), used>>20)
	runtime.KeepAlive(&rec)
}
