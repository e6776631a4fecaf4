package dataplane

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/host"
)

// DefaultMaxOldWorkers is what zero means as [LocalOptions.MaxOldWorkers].
const DefaultMaxOldWorkers = host.DefaultMaxOldWorkers

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
	// are readable for its group and for no other account.
	User string

	// Env names the environment variables of this process that HAProxy gets beside
	// PATH, HOME, TMPDIR, TZ, LANG, LC_*, LD_LIBRARY_PATH and those of OpenSSL. A
	// configuration reads no others, so that it cannot read credentials.
	Env []string

	// NoStart attaches to a HAProxy in master-worker mode that another program
	// starts with Dir/haproxy.cfg, instead of running one.
	NoStart bool

	// Temporary says that no later process uses Dir: HAProxy ends with this process,
	// even if that is killed. Zero means that HAProxy serves on, until the next Run
	// takes it over. Set it for a folder that a test or a demonstration removes.
	Temporary bool

	// MasterSocket is the path of the master socket, with level admin. Zero
	// means Dir/run/master.sock.
	MasterSocket string

	// RuntimeSocket is the path that the configuration gives to "stats socket".
	// Zero means Dir/run/haproxy.sock.
	RuntimeSocket string

	// StartTimeout bounds how long HAProxy may take to start or to reload.
	// Zero means 30 s.
	StartTimeout time.Duration

	// StopTimeout is how long requests under way may take when Run ends. No new
	// connections come meanwhile, and idle ones are closed. Zero means 1.2 s.
	StopTimeout time.Duration

	// MaxOldWorkers bounds the processes of before that have connections yet. When
	// there are as many, a reload waits until one of them ends: [ErrOldWorkers]. Zero
	// means [DefaultMaxOldWorkers]. Slow clients keep an old worker for up to "hard-stop-after" of the
	// configuration; without that, a reload may wait for ever.
	MaxOldWorkers int

	// Logger gets records of fall-backs and, without OnProcess, of starts and ends. Nil
	// discards them.
	Logger *slog.Logger

	// Stdout gets what HAProxy writes to its standard output, such as the access log of
	// "log stdout": whole lines, many in one Write, as they are. HAProxy drops lines
	// rather than wait for a slow reader. Nil: they go where Stderr says. Its Write is called
	// from one goroutine at a time.
	Stdout io.Writer

	// Stderr gets every line that HAProxy prints, from one goroutine at a time.
	Stderr func(line string)

	// OnProcess is told what becomes of HAProxy, in order, by Run. It must not block.
	OnProcess func(ProcessEvent)
}

// ProcessEvent says what became of the HAProxy of a [Local].
type ProcessEvent struct {
	Kind  ProcessKind
	PID   int           // of the master; 0 if there is none, or if another program runs it
	Err   error         // why it does not serve now, with what it said last; nil: it does
	Tries int           // starts that failed in a row, this one included
	Away  time.Duration // how long it did not serve, where it does again
	Times int           // how often it ended or fell silent, with less than 5 min in between
}

// ProcessKind is a kind of [ProcessEvent].
type ProcessKind string

// The kinds of events.
const (
	ProcessStarted     ProcessKind = host.Started     // it serves
	ProcessAdopted     ProcessKind = host.Adopted     // it goes on from a process that was killed
	ProcessEnded       ProcessKind = host.Ended       // though nobody asked it to; Run starts it again
	ProcessStartFailed ProcessKind = host.StartFailed // Run tries again each second
	ProcessSilent      ProcessKind = host.Silent      // it runs, and its worker does not answer
	ProcessAnswers     ProcessKind = host.Answers     // it did not, and does again
)

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
//
// In its folder, haproxy.cfg, maps, ssl and general lead to one generation of
// files. A Sync makes a new generation beside it and flips to that in one step, so
// that what HAProxy reads is never half old and half new, after a crash either. If a
// runtime change has one file, that is replaced in its generation, in one step, too.
// Each file is flushed to the disk before its step, and the step itself is not: a host
// that loses its power starts with the files of before or after.
//
// HAProxy survives a process that is killed, unless [LocalOptions.Temporary] says
// otherwise: it serves on, and the next [Local.Run] in the folder takes it over,
// without a reload where it runs what is stored. A container whose first process is
// killed, and a service of systemd without KillMode=process, take HAProxy along;
// LocalOptions.NoStart attaches to one in a container of its own. See
// docs/restarts.md.
type Local struct{ host *host.Host }

// DefaultUser returns the account that a [Local] runs HAProxy under unless
// [LocalOptions.User] names one. It is empty if this process is not root, or if there
// is no such account. A validate.Validator runs haproxy under it, too, if it is told.
func DefaultUser() string { return host.DefaultUser() }

const localName = "local"

// NewLocal prepares a Local. It does not touch the disk.
func NewLocal(opts LocalOptions) (*Local, error) {
	inner := host.Options{
		Dir: opts.Dir, Binary: opts.Binary, User: opts.User, Env: opts.Env, NoStart: opts.NoStart, Temporary: opts.Temporary,
		MasterSocket: opts.MasterSocket, RuntimeSocket: opts.RuntimeSocket,
		StartTimeout: opts.StartTimeout, StopTimeout: opts.StopTimeout, MaxOldWorkers: opts.MaxOldWorkers, Logger: opts.Logger, Stdout: opts.Stdout, Stderr: opts.Stderr,
	}
	if tell := opts.OnProcess; tell != nil {
		inner.OnProcess = func(e host.ProcessEvent) {
			tell(ProcessEvent{Kind: ProcessKind(e.Kind), PID: e.PID, Err: errorOf(localName, e.Err), Tries: e.Tries, Away: e.Away, Times: e.Times})
		}
	}
	h, err := host.New(inner)
	if err != nil {
		return nil, errorOf(localName, err)
	}
	return &Local{h}, nil
}

// Name returns "local", by which errors and events speak of this HAProxy.
func (l *Local) Name() string { return localName }

// Layout returns where this HAProxy finds its files.
func (l *Local) Layout() Layout { return Layout(l.host.Layout()) }

// RuntimeSocket returns the path that the configuration must give to "stats
// socket".
func (l *Local) RuntimeSocket() string { return l.host.RuntimeSocket() }

// Run starts HAProxy as soon as a configuration is stored, starts it again when
// it ends, and stops it when ctx ends: softly at first, for good after a little
// more than a second. It returns nil then, and leaves no process behind. With
// [LocalOptions.NoStart] it only watches until ctx ends.
//
// A HAProxy that the Run of a killed process left is taken over: the one that has
// the account, the master socket and the haproxy.cfg of these options. The error
// wraps [ErrBusy] if another one, or another Run, has the folder.
//
// A HAProxy that cannot start with the stored configuration is tried again once a
// second, and at once by the next [Local.Sync].
func (l *Local) Run(ctx context.Context) error { return errorOf(localName, l.host.Run(ctx)) }

// CheckFolder makes the folder and returns why [Local.Run] could not take it, such as
// [ErrBusy] while another process has it. A program calls it before it starts anything
// else, so that it does nothing where it must not run. It is nil with
// [LocalOptions.NoStart].
func (l *Local) CheckFolder() error { return errorOf(localName, l.host.CheckFolder()) }

// Serving returns nil while HAProxy answers, and else why it does not: it was not
// started yet, it ended or does not start ([ErrNotRunning], or [ErrReload] with its
// words), or its worker does not answer ([ErrSilent]). Run asks the worker every half
// second on its stats socket, and waits a second for the answer, so that what Serving
// says is at most 2 s old. Where the configuration has no stats socket, Run only asks
// the master whether there is a worker.
func (l *Local) Serving() error { return errorOf(localName, l.host.Serving()) }

// MasterAnswers returns nil while the master of HAProxy answers, and else why it does
// not ([ErrSilent]): HAProxy serves then, and cannot be reloaded. It is nil where
// [Local.Serving] is not. Run asks the master as often as the worker.
func (l *Local) MasterAnswers() error { return errorOf(localName, l.host.MasterAnswers()) }

// Current returns the configuration that is stored, and nil without an error
// when there is none.
func (l *Local) Current(ctx context.Context) (*Config, error) {
	current, err := l.host.Current(ctx)
	return outerConfig(current), errorOf(localName, err)
}

// Probe tells the version of the HAProxy that runs, and changes nothing. It is
// zero where none runs.
func (l *Local) Probe(ctx context.Context) (Target, error) {
	target, err := l.host.Probe(ctx)
	return outerTarget(target), errorOf(localName, err)
}

// DryRun says what [Local.Sync] would do, and changes nothing. HAProxy need not
// run. Where it does, DryRun also compares what the process was told since it has
// loaded its configuration: servers, map entries and certificates.
func (l *Local) DryRun(ctx context.Context, desired *Config) (*Plan, error) {
	if desired == nil {
		return nil, errorOf(localName, config.At("check", errNoConfig))
	}
	steps, err := l.host.DryRun(ctx, desired.inner)
	if err != nil {
		return nil, errorOf(localName, err)
	}
	return planOf(steps), nil
}

// Sync brings HAProxy to the desired configuration, and returns when it serves
// with it. What can change at runtime is told to the running process, and then
// stored; everything else is stored and then takes one reload. Where HAProxy
// refuses a command, Sync reloads after all, and Result.Fallback says why.
//
// If a runtime change cannot be stored, as on a full disk, HAProxy has it and the error
// says so. The next Sync stores it, and tells it again if HAProxy was started or reloaded
// meanwhile. The same holds for a process that is killed in between.
//
// When HAProxy cannot load the configuration, the error wraps [ErrReload] and
// has HAProxy's words; the files are as before and the old process serves on.
// Files that another program changed are put back: by a Sync that tells the process
// nothing or reloads it, and by one that only tells it something if no Sync has looked at
// each file for a second. Of haproxy.cfg each Sync finds it.
//
// A server that still has connections when it goes is put into maintenance: it
// gets no new ones and is deleted at a later change.
//
// When a reload has to wait for old workers to end, Sync does what takes no reload,
// and the error wraps [ErrOldWorkers]. The same holds, with [ErrListen], where HAProxy
// cannot listen on an address that the configuration adds: a reload would fail, and
// HAProxy would refuse all connections for 2 to 3 s.
//
// Sync needs [Local.Run], which it gives a few seconds to begin, and for which it
// waits while that starts HAProxy. The Result comes with an error, too, and says
// how far it got.
func (l *Local) Sync(ctx context.Context, desired *Config, options ...SyncOption) (*Result, error) {
	start := time.Now()
	if desired == nil {
		return nil, errorOf(localName, config.At("check", errNoConfig))
	}
	outcome, err := l.host.Sync(ctx, desired.inner, limitsOf(options))
	return resultOf(outcome, start), errorOf(localName, err)
}
