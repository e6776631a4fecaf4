package haproxymodel

import (
	"fmt"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Input is the text of one section.
type Input struct {
	haproxycfg.Section // as [haproxycfg.Split] cuts it

	// From names the defaults section that a frontend or backend inherits from
	// when its header has no "from": the one before it in the text. "" for none.
	From string
}

// Section is one section, read into the model of its kind. It is not safe for
// concurrent use.
type Section struct {
	Kind *Kind  // nil when the models have no such section
	Name string // "" for kinds that have none and for unnamed sections
	From string // the defaults section that it inherits from
	Line int    // number of the header in the whole text, from 1

	model     any // *models.Backend, ...; nil with err
	err       error
	lines     []line
	oddHeader bool                // the first of lines is the header
	order     map[*Child][]string // names of children by name, as in the text
	says      map[*Child]string   // see said
	changed   bool                // the model is no longer what the lines say
	held      map[*Child]held     // what the model says in lines, made when needed
}

// Err says why the models cannot hold the section, a [*UnsupportedError], or
// nil. Such a section has no differences but in its lines.
func (s *Section) Err() error { return s.err }

// Model is the model of client-native, such as *models.Backend; nil when
// [Section.Err] says that there is none. It shares memory with other sections:
// only [Section.Apply] may change it.
func (s *Section) Model() any { return s.model }

// Lines returns all meaningful lines below the header, in the order of the
// text, and the header too when it holds more than the models do.
func (s *Section) Lines() []Line {
	lines := make([]Line, len(s.lines))
	for i, l := range s.lines {
		lines[i] = l.Line
	}
	return lines
}

// Line is one line of a section.
type Line struct {
	Number int    // in the whole text, from 1
	Text   string // without comment and surrounding blanks; may hold a secret, see [Line.Redacted]
	Child  *Child // the collection to which its first word belongs; nil for the section's own fields and inline ones
}

// UnsupportedError says why the models cannot hold a section.
type UnsupportedError struct {
	Kind, Name string // of the section
	Line       int    // number of the line in the whole text, from 1
	Text       string // of the line, redacted
	Why        string
}

// Error names the section, the line and the reason.
func (e *UnsupportedError) Error() string {
	name := e.Kind
	if e.Name != "" {
		name += " " + e.Name
	}
	return fmt.Sprintf("section %q: line %d: %s", name, e.Line, e.Why)
}
