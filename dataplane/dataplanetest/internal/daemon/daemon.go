// Package daemon runs a real haproxy for tests, in master-worker mode. Its master socket and
// its log lie beside its configuration.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// patience bounds the start, a reload, an answer and the stop.
const patience = time.Minute

// Process is a haproxy in master-worker mode.
type Process struct {
	master haproxyctl.Master
	cmd    *exec.Cmd
	done   chan struct{} // closed when the master has ended
	log    string        // file for its output: a pipe could be slower than its sockets
}

// Start starts the haproxy over a configuration, and waits until it serves.
func Start(binary, config string) (*Process, error) {
	dir := filepath.Dir(config)
	p := &Process{done: make(chan struct{}), log: filepath.Join(dir, "haproxy.log")}
	p.master.Path = filepath.Join(dir, "master.sock")
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(binary, "-W", "-db", "-S", p.master.Path+",level,admin", "-f", config)
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	if _, err := p.await(func(procs haproxyctl.Procs) bool { return procs.WorkerPID() != 0 }); err != nil {
		p.Stop()
		return nil, fmt.Errorf("haproxy: %w\n%s", err, p.printed(0))
	}
	return p, nil
}

// printed returns what haproxy has printed after the first seen bytes.
func (p *Process) printed(seen int64) string {
	all, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(all[min(seen, int64(len(all))):]))
}

// await asks the master until its processes are as wanted.
func (p *Process) await(wanted func(haproxyctl.Procs) bool) (haproxyctl.Procs, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		procs, err := p.master.Procs(ctx)
		if err == nil && wanted(procs) {
			return procs, nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return haproxyctl.Procs{}, errors.New("it has ended")
		case <-ctx.Done():
			return haproxyctl.Procs{}, fmt.Errorf("it does not get there: %+v, %w", procs, errors.Join(err, ctx.Err()))
		}
	}
}

// Stop ends the haproxy and waits for its end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Reload reloads and waits. The error has what haproxy printed.
func (p *Process) Reload() error {
	before, err := p.await(func(haproxyctl.Procs) bool { return true })
	if err != nil {
		return err
	}
	info, err := os.Stat(p.log)
	if err != nil {
		return err
	}
	if err := p.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		return err
	}
	after, err := p.await(func(procs haproxyctl.Procs) bool { return procs.Reloaded(before) })
	if err == nil && after.WorkerPID() == before.WorkerPID() {
		err = errors.New(p.printed(info.Size()))
	}
	return err
}

// PID returns the process that serves, 0 if there is none. It asks repeatedly, because a busy
// master may drop a connection.
func (p *Process) PID() int {
	procs, _ := p.await(func(procs haproxyctl.Procs) bool { return procs.WorkerPID() != 0 })
	return procs.WorkerPID()
}

// Command sends a command in the words of client-native's runtime client. Before HAProxy 2.7
// the master relays only the first command of a line, so answers then have no severities.
func (p *Process) Command(command string) (string, error) {
	return p.send("set severity-output number;@1 " + command + ";quit\n")
}

// Ask sends one command to the worker, through the master. The master closes the connection
// after it has seen the end of the input.
func (p *Process) Ask(command string) (string, error) { return p.send("@1 " + command + "\n") }

func (p *Process) send(line string) (string, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.master.Path, Net: "unix"})
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, line); err != nil {
		return "", err
	}
	if err := conn.CloseWrite(); err != nil {
		return "", err
	}
	out, err := io.ReadAll(conn)
	return strings.TrimSpace(string(out)), err
}

// ReloadCommand returns a command that makes this haproxy reload, and the path
// of its master socket.
func (p *Process) ReloadCommand() (command, masterSocket string) {
	return "kill -USR2 " + strconv.Itoa(p.cmd.Process.Pid), p.master.Path
}
