// Package haproxytest is for tests that start many a haproxy.
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

// quick keeps haproxy from reading the certificates of the system for the HTTP
// client in it, which no configuration of a test uses: with HAProxy 2.6 that is
// six sevenths of what a start costs, and a reload and each "haproxy -c" are
// starts as well.
const quick = "global\n    httpclient.ssl.verify none\n"

// Main is the TestMain of a package: it runs the tests, with a quick haproxy in
// PATH, and fails where they leave goroutines behind.
func Main(m *testing.M) {
	remove, err := Quick()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { remove(); os.Exit(code) }))
}

// Quick puts before the haproxy in PATH another one: that, given one line before
// its configuration. Without a haproxy, or with one that does not know the line,
// it changes nothing. The function that it returns removes what it made.
func Quick() (remove func(), err error) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		return func() {}, nil // for each test to say what that means
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
	// It ends with 2 where all is right and no frontend is there.
	var exit *exec.ExitError
	if err := exec.Command(script, "-c").Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 2) {
		remove()
		return func() {}, nil
	}
	return remove, os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// write makes the files, readable for every account that haproxy may run under.
func write(dir, script, binary string) error {
	config := filepath.Join(dir, "quick.cfg")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' -f '%s' \"$@\"\n", binary, config)
	return errors.Join(
		os.Chmod(dir, 0o755),                       //nolint:gosec // see above
		os.WriteFile(config, []byte(quick), 0o644), //nolint:gosec // see above
		os.WriteFile(script, []byte(text), 0o755),  //nolint:gosec // see above
	)
}
