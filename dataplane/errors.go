package dataplane

import (
	"errors"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// The reasons why a HAProxy did not take a configuration. Test for them with [errors.Is]; the
// [*Error] around them has the details.
var (
	// ErrConflict says that another writer changed the configuration during a Sync, more
	// often than the Sync tried again.
	ErrConflict = config.ErrConflict

	// ErrInvalid says that HAProxy, or its Dataplane API, refuses the configuration. It will
	// refuse the same configuration again.
	ErrInvalid = config.ErrInvalid

	// ErrReload says that HAProxy could not load the configuration. It keeps serving with the
	// one that it had, and that one is stored again.
	ErrReload = config.ErrReload

	// ErrOldWorkers says that a reload waits, because as many old workers as allowed still
	// have connections. The changes that need no reload are done. Nothing is wrong with the
	// configuration or the instance: a later Sync succeeds.
	ErrOldWorkers = config.ErrOldWorkers

	// ErrListen says that HAProxy could not listen on an address of the configuration:
	// another process has it, or no interface has it. A [Local] then tries no reload, because
	// a reload would make HAProxy refuse connections for seconds. The changes that need no
	// reload are done. The error wraps [ErrReload], too. A later Sync succeeds once the
	// address is free.
	ErrListen = config.ErrListen

	// ErrUnauthorized says that the credentials are wrong.
	ErrUnauthorized = config.ErrUnauthorized

	// ErrUnsupported says that this HAProxy or Dataplane API lacks a
	// capability that the configuration needs.
	ErrUnsupported = config.ErrUnsupported

	// ErrNotRunning says that there is no HAProxy to talk to.
	ErrNotRunning = config.ErrNotRunning

	// ErrSilent says that a HAProxy runs and does not answer: it hangs, or a signal has
	// stopped it.
	ErrSilent = config.ErrSilent

	// ErrBusy says that another process, or another [Local.Run], uses the folder.
	ErrBusy = config.ErrBusy
)

// Error says what failed, where, and what HAProxy or the API said. Every error of DryRun and
// Sync that comes from an endpoint is or wraps an *Error.
type Error struct {
	Endpoint string // name of the endpoint: "local", or the URL without credentials
	Stage    string // what was under way: "probe", "files", "runtime", "reload", ...
	File     string // file the error is about, "" if none
	Line     int    // line in File, counted from 1; 0 if not known
	Status   int    // HTTP status of the answer, 0 if there was none
	Output   string // what HAProxy or the API said, without surrounding space
	Err      error  // cause: one of the Err values of this package, a network error, ...
}

// Error returns all fields on one line, except Output, which may have several lines.
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

// Retryable reports whether the same call may succeed later with the same configuration and
// credentials. It is true after conflicts, time-outs, errors of the network or the operating
// system (a full disk), and if HAProxy does not run. It is also true for the statuses 409,
// 429 and 5xx. It is false for a refused configuration, a failed reload, a certificate of an
// endpoint that is missing or not trusted, and a cancelled context.
func Retryable(err error) bool {
	status := 0
	var e *Error
	if errors.As(err, &e) {
		status = e.Status
	}
	return config.Retryable(err, status)
}
