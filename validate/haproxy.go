package validate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/late"
)

// haproxy finds the binary and reads its version, once.
func (v *Validator) haproxy(ctx context.Context) (binary, version string, err error) {
	v.version.Lock()
	defer v.version.Unlock()
	if v.version.number != "" {
		return v.version.binary, v.version.number, nil
	}
	if binary, err = haproxyctl.FindBinary(v.Binary); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	out, _, err := v.run(ctx, nil, "", binary, "-v")
	if err != nil {
		return "", "", err
	}
	_, rest, _ := strings.Cut(out, "version ")
	number, _, _ := strings.Cut(append(strings.Fields(rest), "")[0], "-")
	if number == "" {
		return "", "", fmt.Errorf("%w: %s -v does not tell a version", ErrBinary, binary)
	}
	v.version.binary, v.version.number = binary, number
	return binary, number, nil
}

// waitDelay bounds how long run waits for output after the end of haproxy: a child may keep
// the output open for ever, and a busy host may be slow.
const waitDelay = 10 * time.Second

// maxOutput bounds the output that run keeps, in bytes.
const maxOutput = 4 << 20

// run runs haproxy in a process group of its own. It kills the group when ctx or the
// timeout ends. It returns the output of haproxy and its exit code. With ErrBinary, it
// returns the output before the crash.
func (v *Validator) run(ctx context.Context, account *haproxyctl.Account, dir, binary string, args ...string) (output string, code int, err error) {
	timeout := v.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := late.Context(ctx, "it did not finish", timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Env = dir, haproxyctl.Environment(v.Env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: account.Credential()}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = waitDelay
	out := &limited{}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", 0, fmt.Errorf("validate: %s: %w", strings.Join(append([]string{filepath.Base(binary)}, args...)[:2], " "), context.Cause(ctx))
	case err == nil:
		return out.String(), 0, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return out.String(), exit.ExitCode(), nil
	case errors.Is(err, fs.ErrNotExist):
		return "", 0, fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	return out.String(), -1, fmt.Errorf("%w: %w", ErrBinary, err)
}

// limited keeps the start of an output.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	l.Buffer.Write(b[:min(maxOutput-l.Len(), len(b))])
	return len(b), nil
}
