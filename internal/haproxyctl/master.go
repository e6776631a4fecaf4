package haproxyctl

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// Master speaks to the master process of a HAProxy in master-worker mode. It
// holds no connection: the master closes them all when it reloads.
type Master struct {
	Path string // of the master socket
}

// Procs is the answer to "show proc" (management manual, section 9.4.1).
type Procs struct {
	MasterPID int
	Reloads   int // of the master since it started
	Failed    int // reloads that failed since the last that did not
	Version   string
	Workers   []Proc // that serve; empty while none could be started
	Old       []Proc // that finish what they have
}

// Proc is one worker.
type Proc struct {
	PID     int
	Reloads int // that this worker has survived
}

// WorkerPID returns the process that serves, 0 if there is none.
func (p Procs) WorkerPID() int {
	if len(p.Workers) == 0 {
		return 0
	}
	return p.Workers[0].PID
}

// Procs asks the master for its processes.
func (m Master) Procs(ctx context.Context) (Procs, error) {
	answer, err := m.command(ctx, "show proc")
	if err != nil {
		return Procs{}, err
	}
	return ParseProcs(answer)
}

// Reload tells the master to reload. From HAProxy 2.7 on it waits for the
// outcome and returns what HAProxy says about it; before, the answer is empty
// and the outcome is for the caller to watch.
func (m Master) Reload(ctx context.Context) (string, error) {
	return m.command(ctx, "reload")
}

func (m Master) command(ctx context.Context, command string) (string, error) {
	d := net.Dialer{Timeout: answerTimeout}
	conn, err := d.DialContext(ctx, "unix", m.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	stop, err := arm(ctx, conn)
	if err != nil {
		return "", err
	}
	defer stop()
	if _, err := conn.Write([]byte(command + "\n")); err != nil {
		return "", contextError(ctx, err)
	}
	// The master answers and closes when it sees the end of the commands.
	if unixConn, ok := conn.(*net.UnixConn); ok {
		if err := unixConn.CloseWrite(); err != nil {
			return "", contextError(ctx, err)
		}
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	if err != nil {
		return string(answer), contextError(ctx, err)
	}
	return string(answer), nil
}

// ParseProcs reads the answer to "show proc".
func ParseProcs(answer string) (Procs, error) {
	var p Procs
	part := "" // title of the list that follows
	for line := range strings.Lines(answer) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if strings.HasPrefix(words[0], "#") {
			part = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "# "))
			continue
		}
		pid, err := strconv.Atoi(words[0])
		if err != nil || pid <= 0 || len(words) < 3 {
			return Procs{}, fmt.Errorf("show proc: cannot read %q", strings.TrimSpace(line))
		}
		reloads, err := strconv.Atoi(words[2])
		if err != nil {
			return Procs{}, fmt.Errorf("show proc: cannot read %q", strings.TrimSpace(line))
		}
		switch {
		case words[1] == "master":
			p.MasterPID, p.Reloads, p.Failed = pid, reloads, failedCount(line)
			p.Version = words[len(words)-1]
		case words[1] == "worker" && part == "old workers":
			p.Old = append(p.Old, Proc{pid, reloads})
		case words[1] == "worker":
			p.Workers = append(p.Workers, Proc{pid, reloads})
		}
	}
	if p.MasterPID == 0 {
		return Procs{}, fmt.Errorf("show proc: no master in %q", answer)
	}
	return p, nil
}

// failedCount reads "[failed: 2]".
func failedCount(line string) int {
	_, rest, _ := strings.Cut(line, "[failed:")
	digits, _, ok := strings.Cut(rest, "]")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return 0
	}
	return n
}
