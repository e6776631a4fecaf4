package config

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// The reasons why an instance did not take a configuration. Package dataplane
// documents them under the same names.
var (
	ErrConflict     = errors.New("the configuration was changed by another writer")
	ErrInvalid      = errors.New("configuration refused")
	ErrReload       = errors.New("reload failed")
	ErrOldWorkers   = errors.New("a reload waits for old workers to end")
	ErrListen       = errors.New("HAProxy cannot listen")
	ErrUnauthorized = errors.New("not authorised")
	ErrUnsupported  = errors.New("not supported")
	ErrNotRunning   = errors.New("haproxy is not running")
	ErrSilent       = errors.New("HAProxy does not answer")
	ErrBusy         = errors.New("the folder is in use by another process")
)

// MainFile is what errors call the text of a configuration.
const MainFile = "haproxy.cfg"

// Error says what failed. Package dataplane adds the name of the instance.
type Error struct {
	Stage  string // what was under way: "probe", "files", "runtime", "reload", ...
	File   string // file that the error is about, "" if none
	Line   int    // line in File, counted from 1; 0 if not known
	Status int    // HTTP status of the answer, 0 if there was none
	Output string // what HAProxy or the API said
	Err    error  // cause
}

// Error returns all fields on one line, except Output, which may have several lines.
func (e *Error) Error() string {
	cause := "failed"
	if e.Err != nil {
		cause = e.Err.Error()
	}
	if e.Status != 0 {
		cause += fmt.Sprintf(" (status %d)", e.Status)
	}
	parts := []string{e.Stage, e.Position(), cause, e.Output}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// Position returns "haproxy.cfg:12", or "" if no file is known. It also returns "" if Output
// contains the position, so that the position stands only once.
func (e *Error) Position() string {
	position := e.File
	if e.File != "" && e.Line > 0 {
		position = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if strings.Contains(e.Output, position) && e.Line > 0 {
		return ""
	}
	return position
}

func (e *Error) Unwrap() error { return e.Err }

// At turns any error into an *Error, unless it is or wraps one already.
func At(stage string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Stage: stage, Err: err}
}

// Retryable reports whether the same call may succeed later without a change of the
// configuration or the credentials. The status is that of the answer, 0 for none.
func Retryable(err error, status int) bool {
	switch {
	case errors.Is(err, ErrListen):
		return true
	case err == nil,
		errors.Is(err, ErrInvalid), errors.Is(err, ErrInvalidConfig), errors.Is(err, ErrReload),
		errors.Is(err, ErrUnauthorized), errors.Is(err, ErrUnsupported),
		errors.Is(err, context.Canceled), isTrustError(err):
		return false
	case errors.Is(err, ErrConflict),
		errors.Is(err, ErrNotRunning),
		errors.Is(err, ErrSilent),
		errors.Is(err, ErrOldWorkers),
		errors.Is(err, context.DeadlineExceeded):
		return true
	}
	if status != 0 {
		return status == 409 || status == 429 || status >= 500
	}
	var netErr net.Error // every syscall.Errno is one, too
	return errors.As(err, &netErr)
}

// isTrustError reports whether two ends failed to agree on TLS. They will fail until their
// settings change.
func isTrustError(err error) bool {
	var unverified *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var roots x509.SystemRootsError
	var noTLS tls.RecordHeaderError
	if errors.As(err, &unverified) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &roots) || errors.As(err, &noTLS) || errors.Is(err, http.ErrSchemeMismatch) {
		return true
	}
	// The error with which the other end refuses our certificate has an unexported type.
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" && remote.Err != nil &&
		(strings.Contains(remote.Err.Error(), "certificate") || strings.Contains(remote.Err.Error(), "access denied"))
}

// Refusal is one reason why [New] refuses a configuration. It wraps [ErrInvalidConfig].
type Refusal struct {
	Kind FileKind // of the file; "" for the text of haproxy.cfg
	Name string
	Line int // from 1; 0 for the whole file
	What string
}

func (r *Refusal) Error() string { return ErrInvalidConfig.Error() + ": " + r.What }

// Unwrap returns ErrInvalidConfig.
func (r *Refusal) Unwrap() error { return ErrInvalidConfig }

func refuseFile(kind FileKind, name, why string) *Refusal {
	return &Refusal{kind, name, 0, fmt.Sprintf("%s %q: %s", kind, name, why)}
}

// Refusals are all reasons why [New] refuses a configuration.
type Refusals []*Refusal

// Error has a line for each refusal.
func (r Refusals) Error() string { return errors.Join(r.Unwrap()...).Error() }

func (r Refusals) Unwrap() []error {
	errs := make([]error, len(r))
	for i, one := range r {
		errs[i] = one
	}
	return errs
}
