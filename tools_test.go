package haptic

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHAProxyBeside: the tool takes the package of the wanted version from an archive, here a
// folder, unpacks it and prints where its program is.
func TestHAProxyBeside(t *testing.T) {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	archive, index := t.TempDir(), ""
	for _, version := range []string{"2.9.9-1", "3.1.0-1", "3.1.7-1", "4.0.1-1"} {
		index += debianPackage(t, archive, version)
	}
	require.NoError(t, os.WriteFile(filepath.Join(archive, "Packages"), []byte(index), 0o644))
	beside := func(version string) (path string, err error) {
		cmd := exec.Command("internal/tools/haproxy-beside", version, filepath.Join(t.TempDir(), "beside"))
		cmd.Env = append(os.Environ(), "HAPROXY_ARCHIVE=[trusted=yes] file:"+archive+" ./")
		var says strings.Builder
		cmd.Stderr = &says
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, says.String())
		}
		return strings.TrimSpace(string(out)), err
	}

	path, err := beside("3.1")
	require.NoError(t, err)
	out, err := exec.Command(path).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "HAProxy version 3.1.7-1\n", string(out))
	_, err = beside("3.0")
	require.ErrorContains(t, err, "3.0")
}

// debianPackage puts a package with a program into an archive, and returns its part of the index.
func debianPackage(t *testing.T, archive, version string) string {
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	control := "Package: haproxy\nVersion: " + version + "\nArchitecture: all\nMaintainer: nobody\nDepends: libc6, adduser\nDescription: a test\n"
	for name, text := range map[string]string{"DEBIAN/control": control, "usr/sbin/haproxy": "#!/bin/sh\necho HAProxy version " + version + "\n"} {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o755))
	}
	name := "haproxy_" + version + "_all.deb"
	out, err := exec.Command("dpkg-deb", "--build", root, filepath.Join(archive, name)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(filepath.Join(archive, name))
	require.NoError(t, err)
	return fmt.Sprintf("%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n", control, name, len(text), sha256.Sum256(text))
}
