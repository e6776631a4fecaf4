package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// recorded puts a haproxy into PATH that notes under which account, with which
// arguments and in which environment it was started.
func recorded(tb testing.TB) (calls func() []string) {
	needHAProxy(tb)
	binary, err := exec.LookPath("haproxy")
	require.NoError(tb, err)
	dir, err := os.MkdirTemp("", "recorded-")
	require.NoError(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	notes := filepath.Join(dir, "notes")
	require.NoError(tb, os.Mkdir(notes, 0o700))
	require.NoError(tb, os.Chmod(dir, 0o755))
	require.NoError(tb, os.Chmod(notes, 0o777)) // for any account
	script := fmt.Sprintf("#!/bin/sh\n{ echo \"uid=$(id -u) args=$*\"; env; } > '%s'/$$\nexec '%s' \"$@\"\n", notes, binary)
	require.NoError(tb, os.WriteFile(filepath.Join(dir, "haproxy"), []byte(script), 0o755))
	tb.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() (calls []string) {
		files, err := os.ReadDir(notes)
		require.NoError(tb, err)
		for _, f := range files {
			note, err := os.ReadFile(filepath.Join(notes, f.Name()))
			require.NoError(tb, err)
			calls = append(calls, string(note))
		}
		return calls
	}
}

// TestRightsOfHAProxy: no haproxy that the controller starts, to serve or to check, is
// root or knows a credential.
func TestRightsOfHAProxy(t *testing.T) {
	calls := recorded(t)
	for _, name := range []string{"HAPTIC_DATAPLANE_USERNAME", "HAPTIC_DATAPLANE_PASSWORD", "HAPTIC_TOKEN", "KUBECONFIG", "KUBERNETES_SERVICE_HOST",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET", "VAULT_TOKEN", "GITHUB_TOKEN",
		"HTTPS_PROXY", "API_KEY", "DB_PASSWORD", "SSH_AUTH_SOCK", "LD_PRELOAD_TOKEN"} {
		t.Setenv(name, "very-secret")
	}
	startDemo(t).stop()
	kinds := map[string]bool{}
	for _, call := range calls() {
		first, _, _ := strings.Cut(call, "\n")
		require.NotContains(t, call, "very-secret", first)
		_, args, _ := strings.Cut(first, "args=")
		kind, _, _ := strings.Cut(args, " ")
		kinds[kind] = true
		if kind != "-v" && os.Geteuid() == 0 { // which reads nothing
			require.NotEmpty(t, dataplane.DefaultUser())
			require.NotContains(t, first, "uid=0 ")
		}
	}
	require.True(t, kinds["-c"] && kinds["-W"], "it checks and it serves: %v", kinds)
}
