package kit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/hapticsdk/haptic/reconcile"
)

// ErrDifferent says that a dry run found a difference. Its [ExitCode] is 2.
var ErrDifferent = errors.New("the instances differ from what would be deployed")

// OnceVar declares -once and -dry-run, for [Once].
func (f *Flags) OnceVar(once, dryRun *bool) {
	f.BoolVar(once, "once", false, "render, validate and deploy once to Dataplane APIs, and exit; with -local only beside -dry-run")
	f.BoolVar(dryRun, "dry-run", false, "with -once: print the plan only; exit 0: no difference, 2: a difference, 1: an error")
}

// Once deploys once, or with dryRun only compares. It prints the plan of each instance. It
// also returns an error if there is no instance, or resources are refused or quarantined. If a
// dry run finds a difference and nothing is wrong, it returns [ErrDifferent].
func Once(ctx context.Context, loop *reconcile.Loop, dryRun bool, out io.Writer, log *slog.Logger) error {
	act := loop.Once
	if dryRun {
		act = loop.Preview
	}
	outcomes, err := act(ctx)
	if err == nil && len(outcomes) == 0 {
		err = errors.New("there is no instance: nothing was deployed or compared")
	}
	different := false
	for _, o := range outcomes {
		if o.Plan != nil {
			fmt.Fprintf(out, "%s:\n%s", o.Instance, o.Plan)
			different = different || !o.Plan.Empty()
		}
	}
	for _, refused := range loop.State().Refused {
		if refused.Warning {
			log.Warn(refused.String())
			continue
		}
		err = errors.Join(err, errors.New(refused.String()))
	}
	for _, quarantined := range loop.State().Quarantined {
		err = errors.Join(err, fmt.Errorf("in quarantine: %s", quarantined))
	}
	if err == nil && dryRun && different {
		return ErrDifferent
	}
	return err
}

// ExitCode returns the exit code for an error: 0 for nil and [flag.ErrHelp], 2 for
// [ErrDifferent], 1 for any other. It logs only an error with code 1: the plans already show
// the difference.
func ExitCode(log *Log, err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrDifferent):
		return 2
	}
	log.Fail(err)
	return 1
}

// Main is a main function. It calls run with a context that the first Ctrl-C or SIGTERM ends,
// and exits with the code of run. A second signal ends the process at once. If run makes a
// [Log] of stderr, that log also gets the process-wide lines of client-go.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, processStderr{os.Stderr}))
}

// processStderr marks the stderr of Main for [NewLog]: only there it takes over klog, which is
// global.
type processStderr struct{ io.Writer }
