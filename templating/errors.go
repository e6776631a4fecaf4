package templating

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open2b/scriggo"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
)

// ErrTooLarge is wrapped by the error of a render whose output would exceed
// [Options.MaxOutput].
var ErrTooLarge = funcs.ErrTooLarge

// Error is what is wrong in a template, or what went wrong while one was
// rendered, with its place in the template as its author wrote it.
type Error struct {
	Entry   string // the entry that was compiled or rendered
	File    string // file the position refers to; an entry or a file that it uses
	Line    int    // from 1; zero when only the file is known
	Column  int    // in characters, from 1
	Text    string // that line of the file
	Message string // what is wrong
	Err     error  // the cause, when there is one: a context's error, the error a function returned
	Owners  []any  // what was being rendered, the innermost last; see [Origin]
}

// Error gives "file:line:column: message (owner)" with the innermost owner, if
// there is one, and, on a second line, the text of that line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	b.WriteString(e.Message)
	if n := len(e.Owners); n > 0 {
		fmt.Fprintf(&b, " (%s)", describeOwner(e.Owners[n-1]))
	}
	if text := strings.TrimSpace(e.Text); text != "" {
		fmt.Fprintf(&b, "\n\t%s", text)
	}
	return b.String()
}

// Unwrap returns the cause, so that errors.Is and errors.As see it.
func (e *Error) Unwrap() error { return e.Err }

// Errors returns every *Error in an error of [Compile] or of a render, in the
// order in which they were found: one render may find several values that are
// refused. It returns nil where there is none.
func Errors(err error) []*Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, err := range e.Unwrap() {
			all = append(all, Errors(err)...)
		}
		return all
	}
	return Errors(errors.Unwrap(err))
}

// refusals are the errors of one render.
type refusals []*Error

// err returns one error as it is.
func (r refusals) err() error {
	switch len(r) {
	case 0:
		return nil
	case 1:
		return r[0]
	}
	return r
}

// maxPrinted is how many errors of one render are printed.
const maxPrinted = 20

// Error lists the first errors, each as it prints itself.
func (r refusals) Error() string {
	var b strings.Builder
	for i, e := range r {
		if i == maxPrinted {
			fmt.Fprintf(&b, "\nand %d more", len(r)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap returns all of them.
func (r refusals) Unwrap() []error {
	errs := make([]error, len(r))
	for i, e := range r {
		errs[i] = e
	}
	return errs
}

// buildErrors gives the errors of compiling one entry as *Error.
func (s *sources) buildErrors(entry string, err error) []error {
	var build *scriggo.BuildError
	if errors.As(err, &build) {
		pos := build.Position()
		return []error{s.at(entry, build.Path(), pos.Line, pos.Column, build.Message(), nil)}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	var own *Error
	if errors.As(err, &own) {
		return []error{own}
	}
	return []error{&Error{Entry: entry, File: entry, Message: err.Error(), Err: err}}
}

// at makes an *Error for a position in a template file.
func (s *sources) at(entry, file string, line, column int, message string, cause error) *Error {
	return &Error{Entry: entry, File: file, Line: line, Column: column, Text: s.line(file, line), Message: message, Err: cause}
}
