package dataplane_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

// controllerDir makes the test binary a controller that runs a Local over that
// folder until it is killed.
const controllerDir = "HAPTIC_TEST_CONTROLLER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(controllerDir); dir != "" {
		controller(dir)
		return
	}
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir)
		return
	}
	// A test waits for HAProxy most of its time. The command line may say otherwise.
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	haproxytest.Main(m)
}

func controller(dir string) {
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: dir})
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		err = local.Run(ctx)
	}
	fmt.Fprintln(os.Stderr, "controller ended:", err)
	os.Exit(1)
}
