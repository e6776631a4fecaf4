package ingress

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchmarks runs each benchmark once, by the program of these tests.
func TestBenchmarks(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=.", "-test.benchtime=1x", "-test.short").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "\nBenchmark")
}
