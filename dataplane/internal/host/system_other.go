//go:build !linux

package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// supported returns an error where this package cannot run HAProxy. The package only compiles
// there, so that importers can build and test the rest.
func supported() error {
	return fmt.Errorf("a HAProxy on the same host needs Linux, and this is %s: use a Dataplane API: %w", runtime.GOOS, errors.ErrUnsupported)
}

const closeOnExec = 0

func setFSUID(int) (was int)             { return -1 }
func widen(*os.File, int)                {}
func endWithParent(*syscall.SysProcAttr) {}
func keepLowPorts(*syscall.SysProcAttr)  {}
func syncAll(*os.File) error             { return errors.ErrUnsupported }
func exchange(_, _ string) error         { return errors.ErrUnsupported }
