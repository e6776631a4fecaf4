package k8swatch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChangesSayNoZeros: what a line of the log says of changes is short.
func TestChangesSayNoZeros(t *testing.T) {
	require.Equal(t, "2 modified", Changes{Modified: 2}.String())
	require.Equal(t, "1 created, 3 deleted", Changes{Created: 1, Deleted: 3, InitialSync: true}.String())
	require.Equal(t, "no changes", Changes{}.String())
}
