package dataplane_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/hapticsdk/haptic/internal/haproxytest"
)

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
