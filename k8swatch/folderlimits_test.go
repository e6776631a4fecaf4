package k8swatch_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch"
)

// TestFolderLimits: what is too large is named with its bound, and stops no other.
func TestFolderLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good.yaml"), fmt.Sprintf(ingressYAML, "good", "good.test"))
	large := fmt.Sprintf(ingressYAML, "large", strings.Repeat("a", 3<<20))
	write(t, filepath.Join(dir, "object.yaml"), large)
	write(t, filepath.Join(dir, "file.yaml"), large+large)
	folder, err := k8swatch.NewFolder(dir, &k8swatch.FolderOptions{MaxFile: 5 << 20})
	require.NoError(t, err)
	const unused = "; no earlier version of it is known: none of it is in use"
	want := []string{
		"file.yaml: it has more than 5242880 bytes (FolderOptions.MaxFile)" + unused,
		"object.yaml:1: Ingress: it has 3145841 bytes as JSON, more than the 3145728 of one object" + unused,
	}
	got := folder.Errors()
	require.Len(t, got, len(want))
	for i, err := range got {
		require.True(t, strings.HasSuffix(err.Error(), want[i]), "%v, want %s", err, want[i])
	}
	require.Error(t, errOf(k8swatch.ParseManifests("x.yaml", []byte(large))), "an object beyond the bound was taken")
}
