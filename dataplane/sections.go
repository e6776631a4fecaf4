package dataplane

import (
	"fmt"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Section is one section of the text of a [Config]. If the text repeats a section, as it may
// repeat global, each is a Section.
type Section struct {
	Kind string // "global", "backend", ...; "" for the text before the first header
	Name string // "" for sections without a name
	Line int    // where Text begins in the configuration, from 1
	// Text has the header and the comment lines directly above it. The texts of
	// all sections, one after the other, are the whole text.
	Text   string
	header int // line in the configuration
}

// Sections returns the sections of the configuration in their order. It makes a new list at
// each call.
func (c *Config) Sections() []Section {
	x := c.inner.Index()
	sections := make([]Section, len(x.List))
	for i, s := range x.List {
		sections[i] = Section{Kind: s.Kind, Name: s.Name, Line: x.Line(i), Text: s.Text, header: x.HeaderLine(i)}
		if s.Unnamed {
			sections[i].Name = ""
		}
	}
	return sections
}

// SectionCount returns the number of sections in the text: global, defaults,
// frontends, backends and so on.
func (c *Config) SectionCount() int {
	n := 0
	for _, s := range c.inner.Index().List {
		if s.Kind != "" {
			n++
		}
	}
	return n
}

// LineCount returns the number of lines of the text.
func (c *Config) LineCount() int { return c.inner.Index().LineCount() }

// Lines returns the words of each line that begins with a keyword, as HAProxy reads them
// (section 2.2 of its configuration manual): without quotes, backslashes and comments. For
// the keyword "" it returns all lines except the header and lines without words. It skips a
// line whose quotes do not match.
func (s Section) Lines(keyword string) [][]string {
	var lines [][]string
	n := s.Line - 1
	for line := range strings.Lines(s.Text) {
		n++
		if n == s.header && s.Kind != "" || !strings.Contains(line, keyword) { // cheap test that sorts out most lines
			continue
		}
		words, err := haproxycfg.Fields(line)
		if err == nil && len(words) > 0 && (keyword == "" || words[0] == keyword) {
			lines = append(lines, words)
		}
	}
	return lines
}

// Position is a line of a [Config]: of its main text if Name is empty, or of one of its
// files. Validators and endpoints report lines by it. The renderer of the configuration knows
// what wrote that line.
type Position struct {
	Kind FileKind `json:"kind,omitempty"`
	Name string   `json:"name,omitempty"`
	Line int      `json:"line,omitempty"` // from 1; 0 means the whole file
}

// String gives "haproxy.cfg:12" or "map hosts.map:3".
func (p Position) String() string {
	s := "haproxy.cfg"
	if p.Name != "" {
		s = fmt.Sprintf("%s %s", p.Kind, p.Name)
	}
	if p.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, p.Line)
	}
	return s
}
