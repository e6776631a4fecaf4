package dataplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// The reasons why a HAProxy did not take a configuration. Test for them with
// [errors.Is]; the [*Error] around them has the details.
var (
	// ErrConflict says that somebody else changed the configuration while a
	// Sync was under way, more often than it tried again.
	ErrConflict = errors.New("changed by somebody else")

	// ErrInvalid says that HAProxy, or its Dataplane API, refuses the
	// configuration. The same configuration will be refused again.
	ErrInvalid = errors.New("configuration refused")

	// ErrReload says that HAProxy could not load the configuration. It serves
	// on with the one it had, which has also been put back where it is stored.
	ErrReload = errors.New("reload failed")

	// ErrUnauthorized says that the credentials are wrong.
	ErrUnauthorized = errors.New("not authorised")

	// ErrUnsupported says that this HAProxy or Dataplane API lacks a
	// capability that the configuration needs.
	ErrUnsupported = errors.New("not supported")

	// ErrNotRunning says that there is no HAProxy to talk to.
	ErrNotRunning = errors.New("haproxy is not running")
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
	var b strings.Builder
	for _, s := range []string{e.Endpoint, e.Stage, e.position()} {
		if s != "" {
			b.WriteString(s)
			b.WriteString(": ")
		}
	}
	switch {
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	default:
		b.WriteString("failed")
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.Output != "" {
		b.WriteString(": ")
		b.WriteString(e.Output)
	}
	return b.String()
}

func (e *Error) position() string {
	if e.File != "" && e.Line > 0 {
		return fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return e.File
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed later without anybody
// changing the configuration or the credentials: after conflicts, errors
// of the network or the operating system (a full disk), time-outs, a HAProxy
// that does not run, and the statuses 409, 429 and 5xx. A configuration that
// was refused, a failed reload, a certificate of an endpoint that is not
// trusted, or not there, and a cancelled context are not worth a retry.
func Retryable(err error) bool {
	switch {
	case err == nil,
		errors.Is(err, ErrInvalid), errors.Is(err, ErrInvalidConfig), errors.Is(err, ErrReload),
		errors.Is(err, ErrUnauthorized), errors.Is(err, ErrUnsupported),
		errors.Is(err, context.Canceled), isTrustError(err):
		return false
	case errors.Is(err, ErrConflict), errors.Is(err, ErrNotRunning),
		errors.Is(err, context.DeadlineExceeded):
		return true
	}
	var e *Error
	if errors.As(err, &e) && e.Status != 0 {
		return e.Status == 409 || e.Status == 429 || e.Status >= 500
	}
	var netErr net.Error // which every syscall.Errno is, too
	return errors.As(err, &netErr)
}

// isTrustError reports whether two ends could not agree to speak TLS, which
// they will not without a change of their settings.
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
	// What the other end says of our certificate is of an unexported type.
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" && remote.Err != nil &&
		(strings.Contains(remote.Err.Error(), "certificate") || strings.Contains(remote.Err.Error(), "access denied"))
}
