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

// ErrTooLarge is the cause of the error of a render that would exceed one of its bounds:
// [Options.MaxOutput], [Options.MaxMemory], or the bound of a function.
var ErrTooLarge = funcs.ErrTooLarge

// Error is a problem of a template or of a render, with its position in the template as its
// author wrote it.
type Error struct {
	Entry   string // the entry that was compiled or rendered
	File    string // the file of the position: an entry, or a file that it uses
	Line    int    // from 1; zero if only the file is known
	Column  int    // in characters, from 1
	Text    string // that line of the file
	Message string // the problem
	Err     error  // the cause, if any: the error of a context, or of a function
	Owners  []any  // the objects that the template was rendering, the innermost last; see [Origin]
}

// Error returns "file:line:column: message (owner)" with the innermost owner, if any, and
// the text of that line on a second line.
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

// Unwrap returns the cause for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// Errors returns every *Error in an error of [Compile] or of a render, in the order in
// which the engine found them. One render may find several refused values. Errors returns
// nil if there is none.
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

// err returns nil for none, and a single error as it is.
func (r refusals) err() error {
	switch len(r) {
	case 0:
		return nil
	case 1:
		return r[0]
	}
	return r
}

// maxPrinted bounds how many errors of one render Error lists.
const maxPrinted = 20

// Error lists the first errors.
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

// problems makes the errors of compiling one entry, with hints for Jinja.
func (e *Engine) problems(entry string, found []*origin.Problem) error {
	var all refusals
	for _, p := range e.hints(found) {
		all = append(all, e.at(entry, p))
	}
	return all.err()
}

// unlocated makes the error of a failed render from Scriggo's error alone.
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

// explain returns the message of a failed run and its cause. It ignores the position of a
// PanicError, which is that of the next instruction.
func explain(err error) (message string, cause error) {
	var panicked *scriggo.PanicError
	if !errors.As(err, &panicked) {
		return err.Error(), err
	}
	cause, _ = panicked.Message().(error)
	return funcs.Message(panicked.String()), funcs.Cause(cause)
}
