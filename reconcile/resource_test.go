package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch"
)

// TestSourceAnnotation: a place in a folder is known by the annotation of k8swatch.
func TestSourceAnnotation(t *testing.T) {
	require.Equal(t, k8swatch.SourceAnnotation, sourceAnnotation)
}
