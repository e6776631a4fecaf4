package haproxytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The quick haproxy judges a configuration as the other one does, by the lines
// of its file.
func TestQuick(t *testing.T) {
	real, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is missing:", err)
		}
		t.Skip("haproxy is missing:", err)
	}
	t.Setenv("PATH", os.Getenv("PATH"))
	remove, err := Quick()
	require.NoError(t, err)
	defer remove()
	quicker, err := exec.LookPath("haproxy")
	require.NoError(t, err)
	require.NotEqual(t, real, quicker)
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	for text, want := range map[string]string{"defaults\n  bogus\n": "haproxy.cfg:2]", "frontend f\n  bind unix@/f\n  mode http\n  timeout client 1s\n": "is valid"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		for _, binary := range []string{real, quicker} {
			out, _ := exec.Command(binary, "-c", "-f", file).CombinedOutput()
			require.Contains(t, string(out), want)
		}
	}
}

// Without a haproxy nothing changes.
func TestQuickWithout(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	remove, err := Quick()
	require.NoError(t, err)
	remove()
	require.Equal(t, dir, os.Getenv("PATH"))
}
