// Package benchtest is for the tests of packages with benchmarks.
package benchtest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// Once runs each benchmark of the package once, on small inputs, by the program of its tests.
// A benchmark that fails so fails with the tests, and is not built a second time.
func Once(t *testing.T) {
	t.Helper()
	t.Parallel()
	out, err := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=.", "-test.benchtime=1x", "-test.short").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("\nBenchmark")) {
		t.Errorf("no benchmark ran:\n%s", out)
	}
}
