package k8swatch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFolderReplacedWhileItIsRead: a file that is not there because its folder is
// away for a moment was not deleted, although the folder is back when that is
// looked for.
func TestFolderReplacedWhileItIsRead(t *testing.T) {
	const replacements = 500
	top := t.TempDir()
	dir := filepath.Join(top, "manifests")
	path := func(n int) string { return filepath.Join(top, fmt.Sprint(n)) }
	text := []byte("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")
	for n := range replacements {
		require.NoError(t, os.Mkdir(path(n), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path(n), "a.yaml"), text, 0o600))
	}
	require.NoError(t, os.Rename(path(0), dir))
	f, err := NewFolder(dir, nil)
	require.NoError(t, err)
	replaced := make(chan error, 1)
	go func() {
		for n := range replacements - 1 {
			// The old ones stay, so that each has an inode of its own.
			if err := os.Rename(dir, path(n)); err != nil {
				replaced <- err
				return
			}
			if err := os.Rename(path(n+1), dir); err != nil {
				replaced <- err
				return
			}
		}
		replaced <- nil
	}()
	name := filepath.Join(dir, "a.yaml")
	for {
		_ = f.look(true)
		require.NotNil(t, f.files[name], "taken for deleted")
		require.Len(t, f.files[name].good, 1, "taken for deleted")
		select {
		case err := <-replaced:
			require.NoError(t, err)
			return
		default:
		}
	}
}
