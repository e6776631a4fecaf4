package dataplanetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
const startTimeout = 15 * time.Second

// daemon is a haproxy in master-worker mode in a folder of its own.
type daemon struct {
	s      *Server
	binary string
	layout dataplane.Layout
	master haproxyctl.Master
	cmd    *exec.Cmd
	done   chan struct{} // closed when the master has ended
	log    lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startHAProxy starts the haproxy of the options, over the files that are there.
func (s *Server) startHAProxy(binary string) error {
	d := &daemon{s: s, binary: binary, layout: s.opts.Layout, done: make(chan struct{})}
	s.proc = d
	d.master.Path = filepath.Join(filepath.Dir(d.layout.ConfigPath()), "master.sock")
	if err := d.start(); err != nil {
		return fmt.Errorf("haproxy: %w\n%s", err, d.log.String())
	}
	return nil
}

func (d *daemon) start() error {
	d.cmd = exec.Command(d.binary, "-W", "-db", "-S", d.master.Path+",level,admin", "-f", d.layout.ConfigPath())
	d.cmd.Dir = filepath.Dir(d.layout.ConfigPath())
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	if err := d.cmd.Start(); err != nil {
		close(d.done)
		d.cmd = nil
		return err
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.done)
	}()
	_, err := d.await(func(p haproxyctl.Procs) bool { return p.WorkerPID() != 0 })
	return err
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
	seen := len(d.log.String())
	if err := d.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		return err
	}
	after, err := d.await(func(p haproxyctl.Procs) bool { return p.Reloaded(before) })
	if err != nil {
		return err
	}
	if after.WorkerPID() == before.WorkerPID() {
		return errors.New(strings.TrimSpace(d.log.String()[seen:]))
	}
	return nil
}

func (d *daemon) pid() int {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	procs, err := d.master.Procs(ctx)
	if err != nil {
		return 0
	}
	return procs.WorkerPID()
}

func (d *daemon) action(words []string) error {
	if command := actionCommand(words); command != "" {
		return d.quiet(command)
	}
	return nil
}

// quiet runs a command that answers only if something is wrong, or with what
// it has changed.
func (d *daemon) quiet(command string) error {
	out, err := d.worker(command)
	if err != nil || out == "" || strings.Contains(out, "changed from") {
		return err
	}
	return errors.New(out)
}

// worker sends one command to the worker, through the master, which closes the
// connection when it has seen the end of what we have to say.
func (d *daemon) worker(command string) (string, error) {
	conn, err := net.DialTimeout("unix", d.master.Path, startTimeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "@1 "+command+"\n"); err != nil {
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

func (d *daemon) servers(backend string) ([]loadedServer, error) {
	out, err := d.worker("show servers state " + backend)
	if err != nil {
		return nil, err
	}
	servers := []loadedServer{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 19 || f[0] == "#" {
			continue
		}
		srv := loadedServer{Name: f[3], Address: f[4], AdminState: "ready", Operational: "up"}
		srv.Port, _ = strconv.Atoi(f[18])
		// 0x01 set to maintenance, 0x02 with a tracked server, 0x20 without an address;
		// 0x04 only says that the configuration has it disabled (management manual, "show servers state").
		if admin, _ := strconv.Atoi(f[6]); admin&0x23 != 0 {
			srv.AdminState = "maint"
		}
		servers = append(servers, srv)
	}
	if len(servers) == 0 {
		return nil, errors.New(out)
	}
	return servers, nil
}

func (d *daemon) entries(path string) ([]entry, error) {
	out, err := d.worker("show map " + path)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(out, "Unknown map") {
		return nil, errors.New(out)
	}
	entries := []entry{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 3 {
			entries = append(entries, entry{f[1], f[2]})
		}
	}
	return entries, nil
}

func (d *daemon) addEntry(path, key, value string) error {
	return d.quiet("add map " + path + " " + key + " " + value)
}

func (d *daemon) setEntry(path, key, value string) error {
	return d.quiet("set map " + path + " " + key + " " + value)
}

func (d *daemon) deleteEntry(path, key string) error { return d.quiet("del map " + path + " " + key) }

func (d *daemon) swap(path string, content []byte, create bool) error {
	if create {
		if out, err := d.worker("new ssl cert " + path); err != nil || !strings.Contains(out, "New empty certificate store") {
			return errors.Join(err, errors.New(out))
		}
	}
	out, err := d.worker("set ssl cert " + path + " <<\n" + string(content) + "\n")
	if err == nil && !strings.Contains(out, "ransaction") {
		err = errors.New(out)
	}
	if err != nil {
		return err
	}
	if out, err = d.worker("commit ssl cert " + path); err == nil && !strings.Contains(out, "Success") {
		err = errors.New(out)
	}
	return err
}

func (d *daemon) fingerprint(path string) (string, error) {
	out, err := d.worker("show ssl cert " + path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if sum, ok := strings.CutPrefix(line, "SHA1 FingerPrint: "); ok {
			return strings.TrimSpace(sum), nil
		}
	}
	return "", errors.New(out)
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
