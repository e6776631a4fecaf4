package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one error in a file.
type Error struct {
	File    string // the name given to Read; "" for values made in Go
	Line    int    // from 1; 0 if unknown
	Column  int    // in characters, from 1
	Path    string // watchedResources.ingresses.indexBy[0]; "" for the whole file
	Message string
	Err     error // the cause; may be nil
}

// Error returns "file:line:column: path: message".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	return b.String() + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Errors are all errors, sorted by line. errors.As finds it, and the first *Error in it.
type Errors []*Error

// Error returns one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, one := range e {
		errs[i] = one
	}
	return errs
}

// OrNil sorts the errors and removes repetitions of the same message at the same place. It
// returns nil if there are none.
func (e Errors) OrNil() error {
	if len(e) == 0 {
		return nil
	}
	compare := func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	}
	slices.SortStableFunc(e, compare)
	return slices.CompactFunc(e, func(a, b *Error) bool { return compare(a, b) == 0 })
}

// Problem makes an error about the value at a path. Its position is that of the value, or
// of the nearest existing value above. A nil Document knows no lines. An error among args
// is its cause.
func (d *Document) Problem(path, format string, args ...any) *Error {
	e := &Error{Path: path, Message: fmt.Sprintf(format, args...)}
	for _, a := range args {
		if err, ok := a.(error); ok {
			e.Err = err
		}
	}
	if d == nil {
		return e
	}
	e.File, e.Line, e.Column = d.File, 1, 1
	for at := path; ; at = parent(at) {
		if n, ok := d.marks[at]; ok {
			e.Line, e.Column = d.line(n), n.Column
		} else if at != "" {
			continue
		}
		return e
	}
}

// InText makes an error about a line and column of the text at a path, both from 1. If the
// text is a literal block, the error has the position in the file.
func (d *Document) InText(path string, line, column int, err error, message string) *Error {
	e := d.Problem(path, "%s", message)
	e.Err = err
	if d == nil {
		if line > 0 {
			e.Message = fmt.Sprintf("line %d, column %d: %s", line, column, message)
		}
		return e
	}
	n := d.marks[path]
	if n == nil || !literal(n) || line < 1 || n.Line+line > len(d.lines) {
		return e
	}
	e.Line, e.Column = n.Line+line, column
	for _, first := range d.lines[n.Line:] { // the first line with a text has the indentation of all
		if text := strings.TrimLeft(first, " "); text != "" {
			e.Column += len(first) - len(text)
			break
		}
	}
	return e
}

// parent returns a path without its last step.
func parent(path string) string {
	if strings.HasSuffix(path, "']") {
		return path[:strings.LastIndex(path, "['")]
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// Child adds a key to a path.
func Child(path, key string) string {
	if strings.ContainsAny(key, ".[]' \n") || key == "" {
		return path + "['" + key + "']"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
