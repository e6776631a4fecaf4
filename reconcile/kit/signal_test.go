package kit_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/kit"
)

// asProcess is set where this test binary is the program of TestSignals.
const asProcess = "HAPTIC_COMMAND_PROCESS"

// TestSignals: the first signal ends the context of a program, and the second one a
// program that does not end.
func TestSignals(t *testing.T) {
	if how := os.Getenv(asProcess); how != "" {
		kit.Main(func(ctx context.Context, _ []string, stdout, _ io.Writer) int {
			_, _ = io.WriteString(stdout, "runs\n")
			<-ctx.Done()
			_, _ = io.WriteString(stdout, "ends\n")
			if how == "hangs" {
				select {}
			}
			return 7
		})
	}
	for _, how := range []string{"ends", "hangs"} {
		t.Run(how, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSignals$")
			cmd.Env = append(os.Environ(), asProcess+"="+how)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			defer func() { _ = cmd.Process.Kill() }()
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan())
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.True(t, lines.Scan(), "the context ends")
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			require.Eventually(t, func() bool { // one that comes with the first is part of it
				if how == "hangs" {
					_ = cmd.Process.Signal(syscall.SIGTERM)
				}
				return len(ended) > 0
			}, time.Minute, time.Millisecond)
			<-ended
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if how == "ends" {
				require.Equal(t, 7, status.ExitStatus())
			} else {
				require.Equal(t, syscall.SIGTERM, status.Signal())
			}
		})
	}
}
