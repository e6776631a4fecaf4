package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError says what [Compile] cannot accept, and where.
type SyntaxError struct {
	Path   string // the expression as given
	Offset int    // position in Path, in bytes
	Reason string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("jsonpath %q: %s at offset %d", e.Path, e.Reason, e.Offset)
}

type stepKind uint8

const (
	stepField    stepKind = iota // a struct field or map key
	stepPosition                 // a list position
	stepAll                      // every element of a list, every value of a map
)

type step struct {
	kind stepKind
	name string
	pos  int
}

// Path is a compiled field path. It is immutable and safe for concurrent use.
type Path struct {
	expr  string
	steps []step
}

// String returns the expression as it was given to [Compile].
func (p *Path) String() string { return p.expr }

// Compile parses a field path. The braces of kubectl, a leading "$" and a
// leading dot may be left out: "{.spec.host}", "$.spec.host" and "spec.host" are
// the same path. The error is a [*SyntaxError].
func Compile(expr string) (*Path, error) {
	s := scanner{expr: expr, end: len(expr)}
	if err := s.unwrap(); err != nil {
		return nil, err
	}
	for s.at < s.end {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	if len(s.steps) == 0 {
		return nil, s.fail("no field named")
	}
	return &Path{expr: expr, steps: s.steps}, nil
}

type scanner struct {
	expr    string
	at, end int
	steps   []step
}

func (s *scanner) fail(format string, args ...any) error {
	return &SyntaxError{Path: s.expr, Offset: s.at, Reason: fmt.Sprintf(format, args...)}
}

// unwrap skips "{", "}" and "$" around the path.
func (s *scanner) unwrap() error {
	if strings.HasPrefix(s.expr, "{") {
		if !strings.HasSuffix(s.expr, "}") {
			s.at = s.end
			return s.fail("missing }")
		}
		s.at, s.end = 1, s.end-1
	}
	if s.at < s.end && s.expr[s.at] == '$' {
		s.at++
		if s.at < s.end && s.expr[s.at] != '.' && s.expr[s.at] != '[' {
			return s.fail("expected . or [ after $")
		}
	}
	return nil
}

func (s *scanner) next() error {
	switch c := s.expr[s.at]; {
	case c == '[':
		return s.bracket()
	case c == '.':
		s.at++
		if s.at < s.end && s.expr[s.at] == '.' {
			return s.fail("recursive descent (..) is not supported")
		}
		if s.at < s.end && s.expr[s.at] == '[' {
			return s.bracket()
		}
	case len(s.steps) > 0:
		return s.fail("expected . or [")
	}
	return s.name()
}

// name reads a field after a dot. As in kubectl a backslash quotes the
// character that follows: metadata.annotations.example\.com/name.
func (s *scanner) name() error {
	if s.at < s.end && s.expr[s.at] == '*' {
		s.at++
		s.steps = append(s.steps, step{kind: stepAll})
		return nil
	}
	var b strings.Builder
	start := s.at
	for ; s.at < s.end; s.at++ {
		c := s.expr[s.at]
		if c == '.' || c == '[' {
			break
		}
		if c == '\\' {
			s.at++
			if s.at == s.end {
				return s.fail("nothing follows the backslash")
			}
			b.WriteByte(s.expr[s.at])
			continue
		}
		if strings.IndexByte("]{}()'\"*?@,: \t\r\n$", c) >= 0 {
			return s.fail("unexpected %q in a field name", c)
		}
		b.WriteByte(c)
	}
	if s.at == start {
		return s.fail("empty field name")
	}
	s.steps = append(s.steps, step{kind: stepField, name: b.String()})
	return nil
}

// bracket reads ['key'], ["key"], [3] or [*].
func (s *scanner) bracket() error {
	s.at++
	if s.at == s.end {
		return s.fail("missing ]")
	}
	switch c := s.expr[s.at]; {
	case c == '\'' || c == '"':
		return s.quoted(c)
	case c == '?':
		return s.fail("filters are not supported")
	}
	n := strings.IndexByte(s.expr[s.at:s.end], ']')
	if n < 0 {
		s.at = s.end
		return s.fail("missing ]")
	}
	inside := s.expr[s.at : s.at+n]
	switch {
	case inside == "*":
		s.steps = append(s.steps, step{kind: stepAll})
	case strings.Contains(inside, ":"):
		return s.fail("ranges are not supported")
	case strings.Contains(inside, ","):
		return s.fail("unions are not supported")
	case strings.HasPrefix(inside, "-"):
		return s.fail("positions from the end are not supported")
	default:
		pos, err := strconv.ParseUint(inside, 10, 31)
		if err != nil {
			return s.fail("expected a quoted key, a position or *, not %q", inside)
		}
		s.steps = append(s.steps, step{kind: stepPosition, pos: int(pos)})
	}
	s.at += n + 1
	return nil
}

func (s *scanner) quoted(quote byte) error {
	var b strings.Builder
	for s.at++; s.at < s.end; s.at++ {
		c := s.expr[s.at]
		if c == '\\' && s.at+1 < s.end && (s.expr[s.at+1] == quote || s.expr[s.at+1] == '\\') {
			s.at++
			b.WriteByte(s.expr[s.at])
			continue
		}
		if c != quote {
			b.WriteByte(c)
			continue
		}
		s.at++
		if s.at < s.end && s.expr[s.at] == ',' {
			return s.fail("unions are not supported")
		}
		if s.at == s.end || s.expr[s.at] != ']' {
			return s.fail("missing ]")
		}
		s.at++
		s.steps = append(s.steps, step{kind: stepField, name: b.String()})
		return nil
	}
	return s.fail("missing closing quote")
}
