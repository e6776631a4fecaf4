package haproxyctl

import (
	"errors"
	"os/exec"
	"path/filepath"
)

// FindBinary returns the absolute path of a haproxy binary. For an empty name it searches
// PATH, and then the folders of packages, which the PATH of an ordinary user often lacks.
func FindBinary(name string) (string, error) {
	names := []string{name}
	if name == "" {
		names = []string{"haproxy", "/usr/sbin/haproxy", "/usr/local/sbin/haproxy"}
	}
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return filepath.Abs(path)
		} else if name != "" {
			return "", err
		}
	}
	return "", errors.New("haproxy is neither in PATH, nor in /usr/sbin or /usr/local/sbin")
}
