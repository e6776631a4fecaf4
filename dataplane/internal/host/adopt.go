package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// orphan is the master of a HAProxy that was left when the process of its Run was killed.
type orphan struct {
	*os.Process
	began  string // start time in the kernel, because another process may get the same id
	binary string
}

// findOrphan finds the HAProxy of this folder by its command line. That way it also finds one
// that is about to start or that hangs. It returns nil if there is none. The error wraps
// [config.ErrBusy] if another program or account runs it. The error is errReloads if
// findOrphan cannot tell now.
func (h *Host) findOrphan() (*orphan, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found *orphan
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if len(line) == 0 {
			if now := readStat(pid); !now.ended() && strings.HasPrefix(now.name, "haproxy") {
				return nil, errReloads
			}
		}
		if !slices.Contains(h.argumentsIn(line, pid), "-W") {
			continue
		}
		process, err := os.FindProcess(pid) // from here on no other process gets the id
		args, now := h.masterArguments(pid), readStat(pid)
		switch {
		case err != nil || now.ended():
			continue
		case args == nil:
			return nil, errReloads
		case len(args) <= len(h.arguments()) || !slices.Equal(args[len(args)-len(h.arguments()):], h.arguments()):
			return nil, h.foreign(pid)
		case now.user != h.user():
			return nil, fmt.Errorf("%s: %w: the HAProxy of this folder, process %d, has user id %d in place of %d: stop it, or set LocalOptions.User to its account",
				h.opts.Dir, config.ErrBusy, pid, now.user, h.user())
		case found != nil:
			return nil, fmt.Errorf("%s: %w: two processes run HAProxy here, %d and %d: stop one", h.opts.Dir, config.ErrBusy, found.Pid, pid)
		}
		found = &orphan{Process: process, began: now.began, binary: args[0]}
	}
	return found, nil
}

// errReloads is for a HAProxy without a command line: it has none for a moment while it
// replaces itself in a reload.
var errReloads = errors.New("a HAProxy reloads")

// masterArguments returns the command line of a process that leads its process group, as each
// master does, and that reads the configuration of this folder. It returns nil for any other
// process.
func (h *Host) masterArguments(pid int) []string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty: no process, or one that reloads
	return h.argumentsIn(line, pid)
}

// argumentsIn is masterArguments for a command line that was read.
func (h *Host) argumentsIn(line []byte, pid int) []string {
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	n := len(args)
	if n < 3 || args[n-2] != "-f" || args[n-1] != h.layout.ConfigPath() || readStat(pid).group != pid {
		return nil
	}
	return args
}

// adopt takes over a HAProxy that is not a child of this process.
func (h *Host) adopt(left *orphan) *process {
	binary, err := haproxyctl.FindBinary(h.opts.Binary)
	if err == nil && left.binary != binary {
		h.log.Warn("HAProxy runs another binary until it is restarted", "runs", left.binary, "wanted", binary)
	}
	from, err := h.openPipe(pipeName, os.O_RDONLY)
	pipes := []*os.File{from}
	if h.opts.Stdout != nil {
		stdout, e := h.openPipe(stdoutName, os.O_RDONLY)
		pipes, err = append(pipes, stdout), errors.Join(err, e)
	}
	if err != nil {
		h.log.Warn("the output of HAProxy is lost until it is restarted", "error", err)
	}
	return h.follow(left.Process, pipes, func() error {
		ticker := time.NewTicker(lookForEnd)
		defer ticker.Stop()
		for now := readStat(left.Pid); !now.ended() && now.began == left.began; now = readStat(left.Pid) {
			<-ticker.C
		}
		return errors.New("its exit status is not known, as another process started it")
	})
}

// lookForEnd is the time between two checks whether an adopted HAProxy still runs.
const lookForEnd = 50 * time.Millisecond

// awaitOrphan returns the HAProxy to adopt. If there is none, it waits until no other HAProxy
// listens on the master socket, because starting another one would take its sockets away.
func (h *Host) awaitOrphan(ctx context.Context) (left *orphan, err error) {
	var master int
	late := pollFor(h.orphans, func() bool {
		if left, err = h.findOrphan(); left != nil || err != nil {
			return !errors.Is(err, errReloads)
		}
		procs, unknown := h.master.Procs(ctx)
		master = procs.MasterPID
		return haproxyctl.Absent(unknown) || ctx.Err() != nil
	})
	if late != nil {
		err = h.foreign(master)
	}
	return left, err
}

func (h *Host) foreign(pid int) error {
	return fmt.Errorf("%s: %w: another program started a HAProxy here, process %d: LocalOptions.NoStart attaches to it", h.opts.Dir, config.ErrBusy, pid)
}

// user returns the id of the user that HAProxy runs as.
func (h *Host) user() int {
	if h.account != nil {
		return h.account.UID
	}
	return os.Geteuid()
}

// procStat is the description of a process by the kernel, see proc_pid_stat(5).
type procStat struct {
	name, state, began string
	group, user        int
}

// ended is also true for a zombie, which only waits for its parent.
func (s procStat) ended() bool { return s.state == "" || strings.Contains("ZX", s.state) }

// readStat returns the zero procStat if the process no longer exists.
func readStat(pid int) (s procStat) {
	raw, err1 := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	info, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	// The name stands in parentheses and may contain any character.
	begin, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	fields := strings.Fields(string(raw[end+1:]))
	_, users, _ := strings.Cut(string(info), "\nUid:")
	if errors.Join(err1, err2) != nil || len(fields) < 20 {
		return s
	}
	s.name, s.state, s.began = string(raw[begin+1:end]), fields[0], fields[19]
	_, err1 = fmt.Sscan(fields[2], &s.group)
	_, err2 = fmt.Sscan(users, new(int), &s.user)
	if errors.Join(err1, err2) != nil {
		return procStat{}
	}
	return s
}
