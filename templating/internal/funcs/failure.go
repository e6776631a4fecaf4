package funcs

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// ErrTooLarge is wrapped by the failure of a function whose result would be too
// large.
var ErrTooLarge = errors.New("output too large")

// Failure is the panic value of a function that cannot do its work; Scriggo adds
// the position of the call.
type Failure struct{ Err error }

func (f Failure) Error() string { return f.Err.Error() }
func (f Failure) Unwrap() error { return f.Err }

// Failf stops the render with an error at the position of the call.
func Failf(format string, args ...any) { panic(Failure{fmt.Errorf(format, args...)}) }

// Cause returns what a [Failure] in an error wraps, else the error.
func Cause(err error) error {
	var f Failure
	if errors.As(err, &f) {
		return f.Err
	}
	return err
}

// Recovered makes an error of what recover returned: of a function that failed, or
// of a Go panic outside the template language, a nil pointer in a function of the
// host for example.
func Recovered(v any) error {
	if f, ok := v.(Failure); ok {
		return f
	}
	return &recovered{v}
}

type recovered struct{ value any }

func (p *recovered) Error() string {
	if err, ok := p.value.(error); ok {
		if _, ok := err.(runtime.Error); !ok {
			return Message(err.Error())
		}
	}
	return fmt.Sprintf("panic: %v", p.value)
}

func (p *recovered) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// Message takes away what Scriggo puts around a message once for each macro
// that it passes through.
func Message(s string) string {
	const prefix = "fatal error: "
	for strings.HasPrefix(s, prefix) {
		s = strings.TrimPrefix(s, prefix)
	}
	return strings.TrimRight(s, "\n")
}
