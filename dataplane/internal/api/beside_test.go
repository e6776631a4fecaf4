package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// TestEachFieldIsSent: each field of a server in the table that the Dataplane API changes
// is sent. A field that nothing sends is an error, which takes a reload, and not dropped.
func TestEachFieldIsSent(t *testing.T) {
	server, ok := config.ParseServer([]string{"server", "s", "192.0.2.1:80"})
	require.True(t, ok)
	sent := 0
	for _, row := range change.Table() {
		if row.ServerField == nil || row.API == (change.Version{}) {
			continue
		}
		value, _ := row.Value(&change.ServerChange{Old: &server, New: &server})
		fields, ready, err := serverFields(&change.SetServer{Server: &server, Set: []change.Setting{{Row: &row, Value: value}}})
		require.NoError(t, err, "Fields of %s", row.Field)
		require.True(t, ready || len(fields) > 0, row.Field)
		sent++
	}
	require.Positive(t, sent)

	calls, err := (&Client{}).setServer(t.Context(), &job{direct: true},
		&change.SetServer{Server: &server, Set: []change.Setting{{Row: &change.Row{Field: "slowstart"}, Value: "7"}}})
	require.ErrorIs(t, err, errNotApplied)
	require.ErrorContains(t, err, "slowstart")
	require.Zero(t, calls)
	require.False(t, isOpen(errorAt("runtime", err)), "the job becomes one with a reload")
}
