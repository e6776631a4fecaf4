package templating

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open2b/scriggo"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
	"github.com/hapticsdk/haptic/templating/internal/origin"
	"github.com/hapticsdk/haptic/templating/internal/place"
)

// ErrTooLarge is wrapped by the error of a render that would exceed one of its bounds:
// [Options.MaxOutput], [Options.MaxMemory], or what a function makes.
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
		fmt.Fprintf(&b, " (%s)", origin.Describe(e.Owners[n-1]))
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

func (r refusals) Unwrap() []error {
	errs := make([]error, len(r))
	for i, e := range r {
		errs[i] = e
	}
	return errs
}

// at gives a problem the text of its line.
func (e *Engine) at(entry string, p *origin.Problem) *Error {
	return &Error{Entry: entry, File: p.File, Line: p.Line, Column: p.Column, Text: e.src.Line(p.File, p.Line),
		Message: p.Message, Err: p.Err, Owners: p.Owners}
}

// problems are the errors of compiling one entry, with what to write for Jinja.
func (e *Engine) problems(entry string, found []*origin.Problem) error {
	var all refusals
	for _, p := range e.hints(found) {
		all = append(all, e.at(entry, p))
	}
	return all.err()
}

// unlocated is the error of a render of which nothing is known but what Scriggo
// says.
func (e *Engine) unlocated(en *entry, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var panicked *scriggo.PanicError
	if errors.As(err, &panicked) {
		if r, ok := panicked.Message().(*place.Refusal); ok {
			return e.at(en.name, &origin.Problem{File: r.Site.File, Line: r.Site.Line, Column: r.Site.Column, Message: r.Message})
		}
	}
	message, cause := explain(err)
	return &Error{Entry: en.name, File: en.name, Message: message, Err: cause}
}

// explain returns the message of a failed run and its cause. The position of a
// PanicError is that of the instruction behind, and of no use.
func explain(err error) (message string, cause error) {
	var panicked *scriggo.PanicError
	if !errors.As(err, &panicked) {
		return err.Error(), err
	}
	cause, _ = panicked.Message().(error)
	return funcs.Message(panicked.String()), funcs.Cause(cause)
}
