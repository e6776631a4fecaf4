package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// LocalOptions say where a [Local] keeps its state and which HAProxy it runs.
type LocalOptions struct {
	// Dir is the folder for haproxy.cfg, maps/, ssl/, general/ and run/ (the
	// sockets). It is made where it is missing. One Dir serves one HAProxy.
	Dir string

	// Binary is the haproxy to run. Zero means haproxy in PATH, or else
	// /usr/sbin/haproxy, /usr/local/sbin/haproxy.
	Binary string

	// User is the account that HAProxy runs under, if this process is root.
	// Zero means haproxy, or nobody where there is no such account. The files
	// are readable for its group and for nobody else.
	User string

	// NoStart attaches to a HAProxy in master-worker mode that somebody else
	// starts with Dir/haproxy.cfg, instead of running one.
	NoStart bool

	// MasterSocket is the path of the master socket, with level admin. Zero
	// means Dir/run/master.sock.
	MasterSocket string

	// RuntimeSocket is the path that the configuration gives to "stats socket".
	// Zero means Dir/run/haproxy.sock.
	RuntimeSocket string

	// StartTimeout bounds how long HAProxy may take to start or to reload.
	// Zero means 30 s.
	StartTimeout time.Duration

	// Logger hears of starts, ends and fall-backs. Zero means none does.
	Logger *slog.Logger

	// Stderr gets every line that HAProxy prints, from one goroutine at a time.
	Stderr func(line string)
}

// Local is one HAProxy on this host. It writes the files itself, tells the
// running process through its stats socket what can change without a reload,
// and reloads through the master socket where it must. It is safe for
// concurrent use; calls of Sync run one after the other.
//
// The configuration must contain, in its global section,
//
//	stats socket PATH level admin expose-fd listeners
//
// with the path that [Local.RuntimeSocket] returns. Without it every change
// takes a reload.
type Local struct {
	opts    LocalOptions
	layout  Layout
	log     *slog.Logger
	account *account // nil: HAProxy runs as this process does
	master  haproxyctl.Master
	store   *store
	timeout time.Duration

	turn chan struct{} // holds one token: who has it may touch what follows

	applied *Config // what the worker runs; nil if not known for sure
	worker  int     // the process that applied is about
	dirty   bool    // commands may be half done: only a reload will help
	target  Target  // what targetOf found out about the process known
	known   int
	leaving map[serverRef][]string // the words of servers that go, and still have connections

	requests chan startRequest // to Run
	runs     atomic.Int32      // of Run, under way
	grace    time.Duration     // for requests under way when Run ends
}

// serverRef names a server of a backend.
type serverRef struct{ backend, server string }

// account is who HAProxy runs as.
type account struct {
	name     string
	uid, gid int
}

// maxSocketPath leaves room for what HAProxy appends to the path while it
// binds, within the 108 bytes of sockaddr_un.
const maxSocketPath = 90

// NewLocal prepares a Local. It does not touch the disk.
func NewLocal(opts LocalOptions) (*Local, error) {
	fail := func(err error) (*Local, error) { return nil, &Error{Endpoint: "local", Stage: "options", Err: err} }
	if opts.Dir == "" {
		return fail(errors.New("no folder for the state (LocalOptions.Dir)"))
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return fail(err)
	}
	opts.Dir = dir
	if opts.MasterSocket == "" {
		opts.MasterSocket = filepath.Join(dir, "run", "master.sock")
	}
	if opts.RuntimeSocket == "" {
		opts.RuntimeSocket = filepath.Join(dir, "run", "haproxy.sock")
	}
	for _, path := range []string{opts.MasterSocket, opts.RuntimeSocket} {
		if len(path) > maxSocketPath {
			return fail(fmt.Errorf("the path of a socket has %d bytes, more than %d: %s", len(path), maxSocketPath, path))
		}
	}
	l := &Local{
		opts:     opts,
		layout:   Layout{Base: dir},
		log:      opts.Logger,
		master:   haproxyctl.Master{Path: opts.MasterSocket},
		timeout:  opts.StartTimeout,
		turn:     make(chan struct{}, 1),
		leaving:  make(map[serverRef][]string),
		requests: make(chan startRequest),
		grace:    graceSoft,
	}
	l.turn <- struct{}{}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.timeout <= 0 {
		l.timeout = 30 * time.Second
	}
	if l.account, err = findAccount(opts.User, opts.NoStart); err != nil {
		return fail(err)
	}
	l.store = newStore(dir, l.account, opts.NoStart)
	return l, nil
}

// findAccount looks the account up that HAProxy shall run under.
func findAccount(name string, noStart bool) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil // only root can choose
	}
	candidates := []string{name}
	if name == "" {
		candidates = []string{"haproxy", "nobody"}
	}
	var firstErr error
	for _, candidate := range candidates {
		u, err := user.Lookup(candidate)
		if err != nil {
			if firstErr == nil {
				firstErr = err
			}
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		if uid == 0 {
			return nil, nil
		}
		return &account{name: candidate, uid: uid, gid: gid}, nil
	}
	if noStart && name == "" {
		return nil, nil
	}
	return nil, fmt.Errorf("no account for HAProxy to run under: %w", firstErr)
}

// Name returns "local", by which errors and events speak of this HAProxy.
func (l *Local) Name() string { return "local" }

// Layout returns where this HAProxy finds its files.
func (l *Local) Layout() Layout { return l.layout }

// RuntimeSocket returns the path that the configuration must give to "stats
// socket".
func (l *Local) RuntimeSocket() string { return l.opts.RuntimeSocket }

// Current returns the configuration that is stored, and nil without an error
// when there is none.
func (l *Local) Current(ctx context.Context) (*Config, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	disk, err := l.store.load()
	if err != nil {
		return nil, l.fail("read", err)
	}
	return disk, nil
}

// lock waits for its turn, no longer than ctx allows.
func (l *Local) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return l.fail("wait", err)
	}
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return l.fail("wait", ctx.Err())
	}
}

func (l *Local) unlock() { l.turn <- struct{}{} }

// fail wraps an error, unless it already says where it comes from.
func (l *Local) fail(stage string, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	e = &Error{Endpoint: l.Name(), Stage: stage, Err: err}
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		e.File = pathErr.Path
	}
	return e
}
