package dataplane

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/host"
)

// DefaultMaxOldWorkers is the default of [LocalOptions.MaxOldWorkers].
const DefaultMaxOldWorkers = host.DefaultMaxOldWorkers

// LocalOptions say where a [Local] keeps its state and which HAProxy it runs.
type LocalOptions struct {
	// Dir is the folder for haproxy.cfg, maps/, ssl/, general/ and run/ (the sockets). The
	// Local makes it if it is missing. One Dir serves one HAProxy.
	Dir string

	// Binary is the haproxy to run. Zero means haproxy in PATH, or else
	// /usr/sbin/haproxy, /usr/local/sbin/haproxy.
	Binary string

	// User is the account that HAProxy runs under, if this process is root. Zero means the
	// account "haproxy", or else the account "nobody". Only the group of that account can
	// read the files.
	User string

	// Env names environment variables of this process that HAProxy may see. It always gets
	// PATH, HOME, TMPDIR, TZ, LANG, LC_*, LD_LIBRARY_PATH and those of OpenSSL. All others
	// are kept from it, so that a configuration cannot read credentials.
	Env []string

	// NoStart attaches to a HAProxy in master-worker mode that another program starts with
	// Dir/haproxy.cfg. The Local then starts none itself.
	NoStart bool

	// Temporary says that no later process uses Dir: HAProxy ends with this process, even if
	// this process is killed. Zero means that HAProxy keeps serving until the next Run takes
	// it over. Set it for a folder that a test or a demonstration removes.
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

	// StopTimeout bounds how long open requests may take when Run ends. HAProxy accepts no
	// new connections meanwhile, and closes idle ones. Zero means 1.2 s.
	StopTimeout time.Duration

	// MaxOldWorkers bounds the number of old workers, which still have connections from
	// before a reload. At the bound, a reload waits until one of them ends: [ErrOldWorkers].
	// Zero means [DefaultMaxOldWorkers]. Slow clients keep an old worker for up to
	// "hard-stop-after" of the configuration; without that, a reload may wait for ever.
	// A quarter more, at least one, are for owners of backends, see [SparePrefix], that need
	// a reload and caused none of those before that left old workers.
	MaxOldWorkers int

	// Logger gets records of fall-backs and, without OnProcess, of starts and ends. Nil
	// discards them.
	Logger *slog.Logger

	// Stdout gets what HAProxy writes to its standard output, such as the access log of "log
	// stdout". One Write has one or many whole lines, unchanged. HAProxy drops lines rather
	// than wait for a slow reader. If nil, the lines go where Stderr says. One goroutine at a
	// time calls Write.
	Stdout io.Writer

	// Stderr gets every line that HAProxy prints. One goroutine at a time calls it.
	Stderr func(line string)

	// Run calls OnProcess with what happens to HAProxy, in order. OnProcess must not block.
	OnProcess func(ProcessEvent)
}

// ProcessEvent says what happened to the HAProxy of a [Local].
type ProcessEvent struct {
	Kind  ProcessKind
	PID   int   // of the master; 0 if there is none, or if another program runs it
	Err   error // why it does not serve now, with its last output; nil if it serves
	Tries int   // starts that failed in a row, this one included
	Times int   // how often it ended or fell silent, with less than 5 min in between
}

// ProcessKind is a kind of [ProcessEvent].
type ProcessKind string

// The kinds of events.
const (
	ProcessStarted     ProcessKind = host.Started     // it serves
	ProcessAdopted     ProcessKind = host.Adopted     // it was left by a process that was killed, and keeps serving
	ProcessEnded       ProcessKind = host.Ended       // it ended although Run did not stop it; Run starts it again
	ProcessStartFailed ProcessKind = host.StartFailed // Run tries again each second
	ProcessSilent      ProcessKind = host.Silent      // it runs, but its worker does not answer
	ProcessAnswers     ProcessKind = host.Answers     // it was silent, and answers again
)

// Local is one HAProxy on this host. It writes the files itself. It makes changes that need
// no reload through the stats socket, and reloads through the master socket. It is safe for
// concurrent use; calls of Sync run one after the other.
//
// The configuration must contain, in its global section,
//
//	stats socket PATH level admin expose-fd listeners
//
// with the path that [Local.RuntimeSocket] returns. Without it every change takes a reload.
//
// In its folder, haproxy.cfg, maps, ssl and general lead to one generation of files. A Sync
// makes a new generation beside it and switches to that in one step. So HAProxy never reads a
// mix of old and new files, not even after a crash. If a runtime change concerns one file,
// Sync replaces that file in its generation, also in one step. Sync flushes each file to the
// disk before the step, but not the step itself. A host that loses its power starts with
// either the old or the new files.
//
// HAProxy survives a process that is killed, unless [LocalOptions.Temporary] is set. It keeps
// serving, and the next [Local.Run] in the folder takes it over, without a reload if it runs
// what is stored. If the first process of a container is killed, or a service of systemd
// without KillMode=process, HAProxy ends as well. LocalOptions.NoStart attaches to a HAProxy
// in a container of its own. See docs/restarts.md.
type Local struct{ host *host.Host }

// DefaultUser returns the account that a [Local] runs HAProxy under unless
// [LocalOptions.User] names one. It is empty if this process is not root, or if there is no
// such account. Give it to a validate.Validator to run haproxy under the same account.
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
			tell(ProcessEvent{Kind: ProcessKind(e.Kind), PID: e.PID, Err: errorOf(localName, e.Err), Tries: e.Tries, Times: e.Times})
		}
	}
	h, err := host.New(inner)
	if err != nil {
		return nil, errorOf(localName, err)
	}
	return &Local{h}, nil
}

// Name returns "local", the name of this HAProxy in errors and events.
func (l *Local) Name() string { return localName }

// Layout returns where this HAProxy finds its files.
func (l *Local) Layout() Layout { return Layout(l.host.Layout()) }

// RuntimeSocket returns the path that the configuration must give to "stats
// socket".
func (l *Local) RuntimeSocket() string { return l.host.RuntimeSocket() }

// Run starts HAProxy as soon as a configuration is stored, and starts it again when it ends.
// When ctx ends, Run stops HAProxy: softly at first, for good after a little more than a
// second. It then returns nil and leaves no process behind. With [LocalOptions.NoStart] it
// only watches until ctx ends.
//
// If the Run of a killed process left a HAProxy, Run takes it over. It recognises that
// HAProxy by the account, the master socket and the haproxy.cfg of these options. The error
// wraps [ErrBusy] if another HAProxy, or another Run, uses the folder.
//
// If HAProxy cannot start with the stored configuration, Run tries again once a second, and
// the next [Local.Sync] tries at once.
func (l *Local) Run(ctx context.Context) error { return errorOf(localName, l.host.Run(ctx)) }

// CheckFolder makes the folder and returns why [Local.Run] could not take it, such as
// [ErrBusy] while another process has it. Call it before the program starts anything else, so
// that the program does nothing where it must not run. It returns nil with
// [LocalOptions.NoStart].
func (l *Local) CheckFolder() error { return errorOf(localName, l.host.CheckFolder()) }

// Serving returns nil while HAProxy answers, and else why it does not. Before the start and
// after the end of HAProxy the error is [ErrNotRunning]; after a failed start it may be
// [ErrReload] with HAProxy's words. If the worker does not answer, it is [ErrSilent]. Run
// asks the worker on its stats socket every half second and waits a second for the answer. So
// the result is at most 2 s old. If the configuration has no stats socket, Run only asks the
// master whether there is a worker.
func (l *Local) Serving() error { return errorOf(localName, l.host.Serving()) }

// MasterAnswers returns nil while the master of HAProxy answers, and else why it does not
// ([ErrSilent]): HAProxy then serves, but cannot reload. It returns nil while [Local.Serving]
// returns an error. Run asks the master as often as the worker.
func (l *Local) MasterAnswers() error { return errorOf(localName, l.host.MasterAnswers()) }

// Current returns the stored configuration, or nil without an error if there is none.
func (l *Local) Current(ctx context.Context) (*Config, error) {
	current, err := l.host.Current(ctx)
	return outerConfig(current), errorOf(localName, err)
}

// Probe returns the version of the running HAProxy, and changes nothing. The version is zero
// if none runs.
func (l *Local) Probe(ctx context.Context) (Target, error) {
	target, err := l.host.Probe(ctx)
	return outerTarget(target), errorOf(localName, err)
}

// DryRun says what [Local.Sync] would do, and changes nothing. HAProxy need not run. If it
// does, DryRun also finds changes that the process got after it loaded its configuration:
// servers, map entries and certificates.
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

// Sync brings HAProxy to the desired configuration, and returns when HAProxy serves it. It
// makes runtime changes in the running process first, and then stores them. It stores
// everything else first, and then reloads once. If HAProxy refuses a command, Sync reloads
// after all, and Result.Fallback says why.
//
// If Sync cannot store a runtime change, as on a full disk, HAProxy has the change and the
// error says so. The next Sync stores it. If HAProxy was started or reloaded meanwhile, that
// Sync also makes the change again. The same holds if this process is killed between the two
// steps.
//
// If HAProxy cannot load the configuration, the error wraps [ErrReload] and has HAProxy's
// words. The files are as before and the old process keeps serving.
//
// Sync puts back files that another program changed. It always checks haproxy.cfg. It checks
// all other files if it changes nothing in the process or reloads it. A Sync that only makes
// runtime changes checks them at most once a second.
//
// Sync puts a server that goes but still has connections into maintenance. The server gets no
// new connections, and a later change deletes it.
//
// When a reload has to wait for old workers to end, Sync does what needs no reload, and the
// error wraps [ErrOldWorkers]. It does the same, with [ErrListen], if HAProxy cannot listen
// on an address that the configuration adds: a reload would fail, and HAProxy would refuse
// all connections for 2 to 3 s.
//
// Sync needs [Local.Run]. It gives Run a few seconds to begin, and waits while Run starts
// HAProxy. Sync returns a Result even with an error. The Result says how far Sync got.
func (l *Local) Sync(ctx context.Context, desired *Config, options ...SyncOption) (*Result, error) {
	start := time.Now()
	if desired == nil {
		return nil, errorOf(localName, config.At("check", errNoConfig))
	}
	outcome, err := l.host.Sync(ctx, desired.inner, limitsOf(options))
	return resultOf(outcome, start), errorOf(localName, err)
}
