// Package haproxytest is for tests that start haproxy many times.
package haproxytest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// quick keeps haproxy from reading the certificates of the system for its HTTP client, which
// no configuration of a test uses. With HAProxy 2.6 that takes six sevenths of a start. Each
// reload and each "haproxy -c" is a start as well.
const quick = "global\n    httpclient.ssl.verify none\n"

// Main is the TestMain of a package. It runs the tests with a quick haproxy in PATH, and
// fails if they leave goroutines behind.
func Main(m *testing.M) {
	remove, err := Quick()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { remove(); os.Exit(code) }))
}

// Quick puts a script before the haproxy in PATH. The script runs that haproxy with one line
// before its configuration. Without a haproxy, or with one that does not know the line, Quick
// changes nothing. The returned function removes the script.
func Quick() (remove func(), err error) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		return func() {}, nil // each test says what that means
	}
	dir, err := os.MkdirTemp("", "quick")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	script := filepath.Join(dir, "haproxy")
	if err := write(dir, script, binary); err != nil {
		remove()
		return nil, err
	}
	// Without a frontend, a correct check ends with status 2.
	var exit *exec.ExitError
	if err := exec.Command(script, "-c").Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 2) {
		remove()
		return func() {}, nil
	}
	return remove, os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// write makes the files. Every account that haproxy may run under can read them.
func write(dir, script, binary string) error {
	config := filepath.Join(dir, "quick.cfg")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' -f '%s' \"$@\"\n", binary, config)
	return errors.Join(
		os.Chmod(dir, 0o755),                       //nolint:gosec // see above
		os.WriteFile(config, []byte(quick), 0o644), //nolint:gosec // see above
		os.WriteFile(script, []byte(text), 0o755),  //nolint:gosec // see above
	)
}
