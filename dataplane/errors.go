package dataplane

import (
	"errors"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// The reasons why a HAProxy did not take a configuration. Test for them with
// [errors.Is]; the [*Error] around them has the details.
var (
	// ErrConflict says that another writer changed the configuration while a
	// Sync was under way, more often than it tried again.
	ErrConflict = config.ErrConflict

	// ErrInvalid says that HAProxy, or its Dataplane API, refuses the
	// configuration. The same configuration will be refused again.
	ErrInvalid = config.ErrInvalid

	// ErrReload says that HAProxy could not load the configuration. It serves
	// on with the one it had, which has also been put back where it is stored.
	ErrReload = config.ErrReload

	// ErrOldWorkers says that a reload waits, since as many old workers as may be
	// still have connections. What takes no reload is done. Nothing is wrong with
	// the configuration or the instance: a later Sync succeeds.
	ErrOldWorkers = config.ErrOldWorkers

	// ErrListen says that HAProxy could not listen on an address of the configuration:
	// another process has it, or no interface. A [Local] tries no reload then, since
	// that would make HAProxy refuse connections for seconds. What takes no reload is
	// done. The error wraps [ErrReload], too. A later Sync succeeds once the address
	// is free.
	ErrListen = config.ErrListen

	// ErrUnauthorized says that the credentials are wrong.
	ErrUnauthorized = config.ErrUnauthorized

	// ErrUnsupported says that this HAProxy or Dataplane API lacks a
	// capability that the configuration needs.
	ErrUnsupported = config.ErrUnsupported

	// ErrNotRunning says that there is no HAProxy to talk to.
	ErrNotRunning = config.ErrNotRunning

	// ErrSilent says that a HAProxy runs and does not answer: it hangs, or somebody
	// stopped it.
	ErrSilent = config.ErrSilent

	// ErrBusy says that another process, or another [Local.Run], has the folder.
	ErrBusy = config.ErrBusy
)

// Error says what failed, where, and in whose words. Every error of DryRun and
// Sync that comes from an endpoint is or wraps an *Error.
type Error struct {
	Endpoint string // name of the endpoint: "local", or the URL without credentials
	Stage    string // what was being done: "probe", "files", "runtime", "reload", ...
	File     string // file the error is about, "" if none
	Line     int    // line in File, counted from 1; 0 if not known
	Status   int    // HTTP status of the answer, 0 if there was none
	Output   string // what HAProxy or the API said, without surrounding space
	Err      error  // cause: one of the Err values of this package, a network error, ...
}

// Error tells all fields on one line, but for Output, which may have several.
func (e *Error) Error() string {
	text := e.inner().Error()
	if e.Endpoint != "" {
		text = e.Endpoint + ": " + text
	}
	return text
}

func (e *Error) inner() *config.Error {
	return &config.Error{Stage: e.Stage, File: e.File, Line: e.Line, Status: e.Status, Output: e.Output, Err: e.Err}
}

// errorOf adds the name of the instance to an error.
func errorOf(endpoint string, err error) error {
	if err == nil {
		return nil
	}
	e := config.At("sync", err)
	return &Error{Endpoint: endpoint, Stage: e.Stage, File: e.File, Line: e.Line, Status: e.Status, Output: e.Output, Err: e.Err}
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed later without anybody
// changing the configuration or the credentials: after conflicts, errors
// of the network or the operating system (a full disk), time-outs, a HAProxy
// that does not run, and the statuses 409, 429 and 5xx. A configuration that
// was refused, a failed reload, a certificate of an endpoint that is not
// trusted, or not there, and a cancelled context are not worth a retry.
func Retryable(err error) bool {
	status := 0
	var e *Error
	if errors.As(err, &e) {
		status = e.Status
	}
	return config.Retryable(err, status)
}
