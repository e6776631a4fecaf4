package haproxyctl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

func TestFindBinary(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "haproxy")
	require.NoError(t, os.WriteFile(own, []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", dir)
	got, err := haproxyctl.FindBinary("")
	require.NoError(t, err)
	require.Equal(t, own, got, "PATH goes first")

	_, err = haproxyctl.FindBinary("no-such-haproxy")
	require.ErrorContains(t, err, "no-such-haproxy")
	_, err = haproxyctl.FindBinary(filepath.Join(dir, "missing"))
	require.ErrorContains(t, err, "missing")
}
