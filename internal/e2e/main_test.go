package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// insideEnv names the folder for the files of this run; it is set in the
// process that runs the tests, inside the namespaces. testsEnv lists the tests, where several
// such processes share them.
const (
	insideEnv = "HAPTIC_E2E_DIR"
	testsEnv  = "HAPTIC_E2E_TESTS"
)

// subnet is local to the namespace: a test may listen on any of its addresses.
const subnet = "198.51.100."

// env is what all tests share: the cluster and the programs.
var env struct {
	dir            string
	controller     string
	settings       string // the example of a controller whose settings are a ConfigMap
	raceController string // built for the soak alone
	cluster        *cluster
	noIPv6         error // why there is none
}

func TestMain(m *testing.M) {
	if pod := os.Getenv(podEnv); pod != "" {
		if err := runPod(pod); err != nil {
			fmt.Fprintln(os.Stderr, "pod:", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	dir := os.Getenv(insideEnv)
	switch {
	case flag.Lookup("test.list").Value.String() != "":
		os.Exit(m.Run())
	case dir == "":
		os.Exit(outside())
	default:
		os.Exit(inside(m, dir))
	}
}

// outside builds the programs, which may need the network, and runs the test
// binary again in its namespaces.
func outside() int {
	if err := needs(); err != nil {
		return missing(err)
	}
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	// HAProxy may give up root and must still reach its files.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return runShards(dir)
}

// runInside runs the test binary again in namespaces of its own.
func runInside(dir string, out io.Writer, tests []string) int {
	// Pdeathsig is sent when the thread that forked ends, not the process.
	runtime.LockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideEnv+"="+dir, testsEnv+"="+strings.Join(tests, " "), "TMPDIR="+dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return missing(fmt.Errorf("namespaces: %w", err))
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		// It is the first process of its namespace: all others end with it.
		_ = cmd.Process.Kill()
	}()
	if err := cmd.Wait(); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return 0
}

// missing ends a run for which the machine lacks something.
func missing(err error) int {
	if os.Getenv("CI") == "true" {
		fmt.Fprintln(os.Stderr, "e2e: FAIL:", err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "e2e: SKIP:", err)
	return 0
}

// inside runs the tests.
func inside(m *testing.M, dir string) int {
	stop, err := prepare(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code := 0
	if tests := strings.Fields(os.Getenv(testsEnv)); len(tests) > 0 {
		code = runClaimed(m, dir, tests)
	} else {
		code = m.Run()
	}
	stop()
	// What a killed process had open is closed by the kernel, in its own time.
	if err := poll(context.Background(), patience, func() error { return goleak.Find() }); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	return code
}

func prepare(dir string) (stop func(), err error) {
	// What is mounted here must not show outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return nil, fmt.Errorf("mounting /proc: %w", err)
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", subnet + "1/24", "dev", "lo"}, // on lo, a prefix is local as a whole
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %q: %w: %s", args, err, out)
		}
	}
	env.noIPv6 = exec.Command("ip", "-6", "addr", "add", "2001:db8::1/128", "dev", "lo").Run()
	env.dir = dir
	env.controller, env.settings, env.raceController = binary("controller"), binary("settings"), binary("controller-race")
	env.cluster, err = startCluster(filepath.Join(dir, "k8s"))
	if err != nil {
		return nil, err
	}
	return env.cluster.stop, nil
}
