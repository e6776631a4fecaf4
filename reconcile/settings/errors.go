package settings

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// Error is one thing that is wrong in [Settings].
type Error struct {
	File    string // as it was given to Parse; "" for settings made in Go
	Line    int    // from 1; 0 where it is not known
	Column  int    // in characters, from 1
	Path    string // watchedResources.ingresses.indexBy[0]; "" for the whole
	Message string
	Err     error // the cause, such as a *templating.Error; may be nil
}

// Error gives "file:line:column: path: message".
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
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors is all that is wrong in [Settings], by line. errors.As finds it,
// and the first *Error in it.
type Errors []*Error

// Error has a line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns all of them.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, one := range e {
		errs[i] = one
	}
	return errs
}

// Origins gives the line and the message of each failure of a template, with the
// objects that it was rendering: so the loop finds the resource that is to blame.
func (e Errors) Origins() iter.Seq2[reconcile.Origin, string] {
	return func(yield func(reconcile.Origin, string) bool) {
		for _, t := range templating.Errors(e) {
			line := reconcile.TemplateLine{File: t.File, Line: t.Line, Column: t.Column, Text: t.Text}
			if !yield(reconcile.Origin{TemplateLine: line, Owners: t.Owners}, t.Message) {
				return
			}
		}
	}
}

// orNil sorts the errors and leaves out those that say the same of the same place.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(e, func(a, b *Error) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Path == b.Path && a.Message == b.Message
	})
}

// settingsSource remembers where values stand in the file.
type settingsSource struct {
	file  string
	lines []string
	marks map[string]mark // by path
	wrong map[string]bool // paths of values that are of another type, which was said
	cases []byte          // the YAML of the cases
}

// mark is the place of a value.
type mark struct {
	line, column int
	literal      bool // the text begins on the line below, and its lines are those of the file
}

// problem makes an error about the value at a path, or about the nearest one that
// is there.
func (s *settingsSource) problem(path, format string, args ...any) *Error {
	e := &Error{Path: path, Message: fmt.Sprintf(format, args...)}
	for _, a := range args {
		if err, ok := a.(error); ok {
			e.Err = err
		}
	}
	if s == nil {
		return e
	}
	e.File = s.file
	for at := path; ; at = parentPath(at) {
		if m, ok := s.marks[at]; ok {
			e.Line, e.Column = m.line, m.column
			return e
		}
		if at == "" {
			e.Line, e.Column = 1, 1
			return e
		}
	}
}

// inText makes an error about a line of a text.
func (s *settingsSource) inText(path string, line, column int, err error, message string) *Error {
	e := s.problem(path, "%s", message)
	e.Err = err
	if s == nil {
		if line > 0 {
			e.Message = fmt.Sprintf("line %d, column %d: %s", line, column, message)
		}
		return e
	}
	m, ok := s.marks[path]
	if at := m.line + line; ok && m.literal && line > 0 && at <= len(s.lines) {
		e.Line, e.Column = at, column+s.indent(m)
	}
	return e
}

// indent is how far a literal block is indented: as its first line that is not
// empty, unless the header of the block says how far.
func (s *settingsSource) indent(m mark) int {
	for _, line := range s.lines[m.line:] {
		if text := strings.TrimLeft(line, " "); text != "" {
			return len(line) - len(text)
		}
	}
	return 0
}

// parentPath takes the last step off a path.
func parentPath(path string) string {
	if strings.HasSuffix(path, "']") {
		return path[:strings.LastIndex(path, "['")]
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// childPath adds a key.
func childPath(path, key string) string {
	if strings.ContainsAny(key, ".[]' \n") || key == "" {
		return path + "['" + key + "']"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
