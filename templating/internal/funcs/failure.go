package funcs

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// ErrTooLarge is the cause of the failure of a function whose result would be too large.
var ErrTooLarge = errors.New("output too large")

// Failure is the panic value of a function that fails. Scriggo adds the position of the
// call.
type Failure struct{ Err error }

func (f Failure) Error() string { return f.Err.Error() }
func (f Failure) Unwrap() error { return f.Err }

// Failf stops the render with an error at the position of the call.
func Failf(format string, args ...any) { panic(Failure{fmt.Errorf(format, args...)}) }

// Cause returns the error inside a [Failure], or the error itself if it has none.
func Cause(err error) error {
	var f Failure
	if errors.As(err, &f) {
		return f.Err
	}
	return err
}

// Recovered makes an error of a recovered value. It is a [Failure], or a Go panic such as a
// nil pointer in a function of the host.
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

// Message removes the text that Scriggo adds around a message for each macro on its way.
func Message(s string) string {
	const prefix = "fatal error: "
	for strings.HasPrefix(s, prefix) {
		s = strings.TrimPrefix(s, prefix)
	}
	return strings.TrimRight(s, "\n")
}
