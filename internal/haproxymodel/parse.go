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

	model any // *models.Backend, ...; nil with err
	lines []Line
	err   error
}

// Err says why the models cannot hold the section, a [*UnsupportedError], or
// nil. Such a section has no differences: the caller compares its text.
func (s *Section) Err() error { return s.err }

// Model is the model of client-native, such as *models.Backend; nil when
// [Section.Err] says that there is none. Whoever changes it, changes s.
func (s *Section) Model() any { return s.model }

// Lines returns all meaningful lines below the header, in the order of the text.
func (s *Section) Lines() []Line { return s.lines }

// Line is one line of a section.
type Line struct {
	Number int    // in the whole text, from 1
	Text   string // without comment and without surrounding blanks
}

// UnsupportedError says why the models cannot hold a section.
type UnsupportedError struct {
	Kind, Name string // of the section
	Line       int    // number of the line in the whole text, from 1
	Text       string // of the line; never a secret
	Why        string
}

// Error names the section, the line and the reason.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("section %s %s: line %d: %s", e.Kind, e.Name, e.Line, e.Why)
}

// Parse reads sections into models, in one pass of client-native's parser. The
// result has one Section for each input, in the same order; what the models
// cannot hold has an error, see [Section.Err], and harms no other section.
// Sections may have equal names.
func Parse(inputs []Input) []*Section {
	panic("not yet")
}

// Unmodelled returns the lines that the model does not hold faithfully: what
// client-native does not know, loses or changes. Everything in the text of the
// section is in the model or here.
func (s *Section) Unmodelled() []Line { return nil }

// SectionBody returns the fields of the section itself, without children, in
// the JSON of the Dataplane API v3.
func (s *Section) SectionBody() ([]byte, error) { return nil, nil }

// FullBody returns the whole section with its children in the JSON of the
// Dataplane API v3, as full_section=true takes it.
func (s *Section) FullBody() ([]byte, error) { return nil, nil }
