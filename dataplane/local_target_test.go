package dataplane_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// A file that somebody spoilt stops neither DryRun nor Sync.
func TestLocalSpoiltFiles(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	last := h.sync(h.web("server a " + one))
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, "haproxy.cfg"), []byte("global\x00"), 0o640))
	desired := h.config(h.web("server a " + two))
	plan, err := h.local.DryRun(t.Context(), desired)
	require.NoError(t, err)
	require.Equal(t, dataplane.ImpactRuntime, plan.Impact(), "%s", plan)
	result := h.sync(desired.Main())
	require.Equal(t, plan.String(), result.Plan.String())
	require.Zero(t, result.Reloads)
	require.Equal(t, last.WorkerPID, result.WorkerPID)
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body)
	current, err := h.local.Current(t.Context())
	require.NoError(t, err)
	require.Equal(t, desired.Main(), current.Main())
}
