package dataplanetest

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

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// HAProxy says which haproxy stands behind a [Server].
type HAProxy struct {
	Binary string // zero means haproxy in PATH, or where packages put it
	Dir    string // folder for its files, absolute and short, for sockets lie there; zero means one of its own
}

// startTimeout bounds the start, a reload and the stop of a haproxy.
const startTimeout = time.Minute

// daemon is a haproxy in master-worker mode in a folder of its own.
type daemon struct {
	s      *Server
	binary string
	layout dataplane.Layout
	master haproxyctl.Master
	cmd    *exec.Cmd
	done   chan struct{} // closed when the master has ended
	log    string        // file with what it printed: a pipe could be slower than its sockets
}

// startHAProxy starts the haproxy of the options, over the files that are there.
func (s *Server) startHAProxy(binary string) error {
	d := &daemon{s: s, binary: binary, layout: s.opts.Layout, done: make(chan struct{})}
	s.proc = d
	dir := filepath.Dir(d.layout.ConfigPath())
	d.master.Path, d.log = filepath.Join(dir, "master.sock"), filepath.Join(dir, "haproxy.log")
	if err := d.start(); err != nil {
		return fmt.Errorf("haproxy: %w\n%s", err, d.printed(0))
	}
	return nil
}

func (d *daemon) start() error {
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		close(d.done)
		return err
	}
	defer func() { _ = log.Close() }()
	d.cmd = exec.Command(d.binary, "-W", "-db", "-S", d.master.Path+",level,admin", "-f", d.layout.ConfigPath())
	d.cmd.Dir = filepath.Dir(d.layout.ConfigPath())
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		close(d.done)
		d.cmd = nil
		return err
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.done)
	}()
	_, err = d.await(func(p haproxyctl.Procs) bool { return p.WorkerPID() != 0 })
	return err
}

// printed is what haproxy has printed, but for so many bytes at the beginning.
func (d *daemon) printed(seen int) string {
	all, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(all[min(seen, len(all)):]))
}

// await asks the master until its processes are as wanted.
func (d *daemon) await(wanted func(haproxyctl.Procs) bool) (haproxyctl.Procs, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		procs, err := d.master.Procs(ctx)
		if err == nil && wanted(procs) {
			return procs, nil
		}
		select {
		case <-tick.C:
		case <-d.done:
			return haproxyctl.Procs{}, errors.New("it has ended")
		case <-ctx.Done():
			return haproxyctl.Procs{}, fmt.Errorf("it does not get there: %+v, %w", procs, errors.Join(err, ctx.Err()))
		}
	}
}

func (d *daemon) stop() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(startTimeout):
		_ = d.cmd.Process.Kill()
		<-d.done
	}
}

func (d *daemon) reload() error {
	before, err := d.await(func(haproxyctl.Procs) bool { return true })
	if err != nil {
		return err
	}
	var seen int
	if info, err := os.Stat(d.log); err == nil {
		seen = int(info.Size())
	}
	if err := d.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		return err
	}
	after, err := d.await(func(p haproxyctl.Procs) bool { return p.Reloaded(before) })
	if err != nil {
		return err
	}
	if after.WorkerPID() == before.WorkerPID() {
		return errors.New(d.printed(seen))
	}
	return nil
}

// pid waits for an answer: a master that is asked in the middle of something
// may break a connection off.
func (d *daemon) pid() int {
	procs, err := d.await(func(p haproxyctl.Procs) bool { return p.WorkerPID() != 0 })
	if err != nil {
		return 0
	}
	return procs.WorkerPID()
}

// command sends a command in the words of client-native's runtime client. Before
// HAProxy 2.7 the master relays but the first command of a line: severities are
// not to be had then, and errors look like answers.
func (d *daemon) command(command string) (string, error) {
	return d.send("set severity-output number;@1 " + command + ";quit\n")
}

func (d *daemon) ask(command string) (string, error) { return d.worker(command) }

// worker sends one command to the worker, through the master, which closes the
// connection when it has seen the end of what we have to say.
func (d *daemon) worker(command string) (string, error) { return d.send("@1 " + command + "\n") }

func (d *daemon) send(line string) (string, error) {
	conn, err := net.DialTimeout("unix", d.master.Path, startTimeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, line); err != nil {
		return "", err
	}
	if unix, ok := conn.(*net.UnixConn); ok {
		if err := unix.CloseWrite(); err != nil {
			return "", err
		}
	}
	out, err := io.ReadAll(conn)
	return strings.TrimSpace(string(out)), err
}

// ReloadCommand returns a command, words parted by blanks, that makes the
// haproxy behind the server reload, and its master socket: what a real
// Dataplane API needs to be put in place of this one. Both are "" without a
// haproxy.
func (s *Server) ReloadCommand() (command, masterSocket string) {
	d, ok := s.proc.(*daemon)
	if !ok {
		return "", ""
	}
	return "kill -USR2 " + strconv.Itoa(d.cmd.Process.Pid), d.master.Path
}
