package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCopyBuildsElsewhere does what a user does: copies this folder, with its tests,
// into a module of their own and has go find there all that it imports and embeds.
func TestCopyBuildsElsewhere(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	module := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(module, "mycontroller"), os.DirFS(".")))

	// The folder ingress is theirs as well.
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob(filepath.Join(module, "mycontroller", pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			text = bytes.ReplaceAll(text, []byte("github.com/hapticsdk/haptic/examples/controller"), []byte("example.com/mine/mycontroller"))
			require.NoError(t, os.WriteFile(file, text, 0o644))
		}
	}

	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	theirs := strings.Replace(string(gomod), "module github.com/hapticsdk/haptic", "module example.com/mine", 1) +
		"\nrequire github.com/hapticsdk/haptic v0.0.0\nreplace github.com/hapticsdk/haptic => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte(theirs), 0o644))
	gosum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.sum"), gosum, 0o644))

	// It says what a build elsewhere would say, of the tests, too: the compiler itself has
	// seen these files, and does not ask where they are.
	list := exec.Command("go", "list", "-mod=mod", "-deps", "-test", "./mycontroller/...")
	list.Dir = module
	out, err := list.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "\nexample.com/mine/mycontroller\n")
}
