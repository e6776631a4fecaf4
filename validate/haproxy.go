package validate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// binary finds haproxy.
func (v *Validator) binary() (string, error) {
	path, err := haproxyctl.FindBinary(v.Binary)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	return path, nil
}

// run runs haproxy in a process group of its own, which is killed when ctx
// ends or the time-out is over, and returns what it wrote and its exit code. With
// ErrBinary comes what it wrote before it broke, and a code other than zero.
func (v *Validator) run(ctx context.Context, dir, binary string, args ...string) (output string, code int, err error) {
	timeout := v.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = waitDelay
	out := &limited{max: 4 << 20}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", 0, fmt.Errorf("validate: %s did not finish: %w", filepath.Base(binary), ctx.Err())
	case err == nil:
		return out.String(), 0, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return out.String(), exit.ExitCode(), nil
	case errors.Is(err, fs.ErrNotExist):
		return "", 0, fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	return out.String(), -1, fmt.Errorf("%w: %w", ErrBinary, err)
}

// waitDelay is how long what haproxy wrote may take to arrive once it has ended:
// a child that keeps the output open must not hold up the check for ever, and a
// host without a free processor must not spoil it.
const waitDelay = 10 * time.Second

// limited keeps the start of an output.
type limited struct {
	bytes.Buffer
	max int
}

func (l *limited) Write(b []byte) (int, error) {
	if room := l.max - l.Len(); room > 0 {
		l.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// identity tells one binary from another at the same path.
func identity(binary string) string {
	info, err := os.Stat(binary)
	if err != nil {
		return binary
	}
	return fmt.Sprintf("%s %d %d", binary, info.Size(), info.ModTime().UnixNano())
}

// versionCache remembers the version of one binary.
type versionCache struct {
	mu       sync.Mutex
	identity string
	version  string
}

// versionOf asks a binary for its version, once.
func (v *Validator) versionOf(ctx context.Context, binary, identity string) (string, error) {
	v.version.mu.Lock()
	defer v.version.mu.Unlock()
	if v.version.identity == identity {
		return v.version.version, nil
	}
	out, _, err := v.run(ctx, "", binary, "-v")
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(out, "version ")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return "", fmt.Errorf("%w: %s -v does not tell a version", ErrBinary, binary)
	}
	number, _, _ := strings.Cut(words[0], "-")
	v.version.identity, v.version.version = identity, number
	return number, nil
}
