// Package host runs one HAProxy in master-worker mode on this machine: its stored
// configuration, its process, and the Sync that brings both to a desired configuration.
//
// The files are stored as generations. A generation is a folder with haproxy.cfg and the
// folders of the other files, and "current" is a symbolic link to one of them. One rename
// changes all files at once, and another one goes back. A runtime change of one file takes
// one rename in the generation.
//
// Sync makes a plan of runtime changes in the process first, and then stores it (commands.go). It
// stores everything else first.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/socket"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/late"
)

// Options say where a [Host] keeps its state and which HAProxy it runs. Package
// dataplane documents them as LocalOptions.
type Options struct {
	Dir, Binary, User           string
	Env                         []string
	NoStart                     bool
	Temporary                   bool
	MasterSocket, RuntimeSocket string
	StartTimeout, StopTimeout   time.Duration
	MaxOldWorkers               int
	Logger                      *slog.Logger
	Stdout                      io.Writer
	Stderr                      func(line string)
	OnProcess                   func(ProcessEvent)
}

// Host is one HAProxy on this machine. It is safe for concurrent use; calls of
// Sync run one after the other.
type Host struct {
	opts    Options
	layout  config.Layout
	log     *slog.Logger
	account *account // nil: HAProxy runs under the account of this process
	master  haproxyctl.Master
	store   *store

	status status

	turn chan struct{} // holds one token; its holder owns the next fields

	running *config.Config // the configuration of the worker; nil if unknown
	worker  int            // the process that running belongs to
	doubt   bool           // the process may run something else: read everything again and reload once
	failed  bool           // HAProxy could not load the configuration of the last reload
	leaving socket.Leaving // servers that go but still have connections
	names   *change.Names  // names of backends in the worker
	began   time.Time      // start of the worker; zero if unknown

	causes map[int][]string // by old worker: whose backends asked for the reload that made it old

	recovered atomic.Bool // Run found a change half done: the holder of the turn sets doubt

	requests chan startRequest // to Run
	runs     atomic.Int32      // number of calls of Run under way

	reloads atomic.Bool // the master is reloading on our command

	grace      time.Duration // for open requests when Run ends
	orphans    time.Duration // for the end of a HAProxy of another program
	waitForRun time.Duration // for Sync to wait until Run begins
}

// maxSocketPath bounds the paths of sockets. sockaddr_un has 108 bytes, and HAProxy appends
// to the path while it binds.
const maxSocketPath = 90

// DefaultMaxOldWorkers is the default of MaxOldWorkers in [Options].
const DefaultMaxOldWorkers = 8

// New prepares a Host. It does not touch the disk.
func New(opts Options) (*Host, error) {
	dir, err := filepath.Abs(opts.Dir)
	account, noAccount := findAccount(opts.User, opts.NoStart)
	opts.MasterSocket = cmp.Or(opts.MasterSocket, filepath.Join(dir, "run", "master.sock"))
	opts.RuntimeSocket = cmp.Or(opts.RuntimeSocket, filepath.Join(dir, "run", "haproxy.sock"))
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.MaxOldWorkers = cmp.Or(opts.MaxOldWorkers, DefaultMaxOldWorkers)
	opts.StartTimeout = cmp.Or(opts.StartTimeout, 30*time.Second)
	opts.StopTimeout = cmp.Or(opts.StopTimeout, 1200*time.Millisecond)
	switch longest := max(len(opts.MasterSocket), len(opts.RuntimeSocket)); {
	case opts.Dir == "":
		err = errors.New("LocalOptions.Dir is empty, no folder for the state: want a path")
	case supported() != nil:
		err = supported()
	case opts.MaxOldWorkers < 0:
		err = fmt.Errorf("LocalOptions.MaxOldWorkers is negative: %d: want 0, for %d, or more", opts.MaxOldWorkers, DefaultMaxOldWorkers)
	case opts.StartTimeout < 0:
		err = fmt.Errorf("LocalOptions.StartTimeout is negative: %s: want 0, for 30s, or more", opts.StartTimeout)
	case opts.StopTimeout < 0:
		err = fmt.Errorf("LocalOptions.StopTimeout is negative: %s: want 0, for 1.2s, or more", opts.StopTimeout)
	case longest > maxSocketPath:
		err = fmt.Errorf("the path of a socket has %d bytes, more than %d: choose a shorter one", longest, maxSocketPath)
	case err == nil:
		err = noAccount
	}
	if err != nil {
		return nil, &config.Error{Stage: "options", Err: err}
	}
	opts.Dir = dir
	h := &Host{
		opts: opts, layout: config.Layout{Base: dir}, log: opts.Logger, master: haproxyctl.Master{Path: opts.MasterSocket},
		account: account, store: &store{dir: dir, account: account, attached: opts.NoStart},
		turn: make(chan struct{}, 1), leaving: make(socket.Leaving), causes: map[int][]string{}, requests: make(chan startRequest),
		grace: opts.StopTimeout, orphans: 10 * time.Second, waitForRun: 5 * time.Second,
	}
	h.status.ends()
	h.status.tell = opts.OnProcess
	if opts.OnProcess == nil {
		h.status.tell = h.logProcess
	}
	h.turn <- struct{}{}
	return h, nil
}

// SetFailpoint is for tests. It calls f with "before X" and "after X" around each step that
// changes the folder. A process in which f never returns is as good as killed.
func (h *Host) SetFailpoint(f func(step string)) { h.store.failpoint = f }

// SetGrace is for tests. They call it before Run.
func (h *Host) SetGrace(grace time.Duration) { h.grace = grace }

// Layout returns where this HAProxy finds its files.
func (h *Host) Layout() config.Layout { return h.layout }

// RuntimeSocket returns the path that the configuration must give to "stats
// socket".
func (h *Host) RuntimeSocket() string { return h.opts.RuntimeSocket }

// Current returns the stored configuration, or nil without an error if there is
// none.
func (h *Host) Current(ctx context.Context) (*config.Config, error) {
	if err := h.lock(ctx); err != nil {
		return nil, err
	}
	defer h.unlock()
	stored, err := h.store.load(true)
	return stored, fail("read", err)
}

// Probe returns the version of the running HAProxy. It returns the zero Target if none runs.
func (h *Host) Probe(ctx context.Context) (change.Target, error) {
	procs, err := h.master.Procs(ctx)
	if err != nil && !haproxyctl.Absent(err) {
		return change.Target{}, fail("probe", err)
	}
	s := &syncing{h: h}
	defer s.close()
	err = s.dial(ctx, procs)
	return s.target, fail("probe", err)
}

// lock waits for the turn of a call, no longer than ctx allows.
func (h *Host) lock(ctx context.Context) error {
	begin := time.Now()
	if ctx.Err() == nil {
		select {
		case <-h.turn:
			h.learn()
			return nil
		case <-ctx.Done():
		}
	}
	return fail("wait", waited(ctx, begin, "the call before this one did not end"))
}

// waited returns the error for the end of a context.
func waited(ctx context.Context, begin time.Time, what string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &late.Error{What: what, After: time.Since(begin), GoesOn: "nothing was changed"}
}

func (h *Host) unlock() { h.turn <- struct{}{} }

// learn takes over what Run found. The caller has the turn.
func (h *Host) learn() { h.doubt = h.recovered.Swap(false) || h.doubt }

// fail wraps an error, unless the error names its stage already.
func fail(stage string, err error) error {
	if err == nil {
		return nil
	}
	e := config.At(stage, err)
	if pathErr := (*os.PathError)(nil); e.File == "" && errors.As(err, &pathErr) {
		e.File = pathErr.Path
	}
	return e
}
