package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Section is one section of a text. It is immutable, and configurations share it.
// Defaults without a name have the one that the Dataplane API gives them.
type Section struct {
	Kind, Name string
	Text       string // with the comment lines directly above the header
	Nth        int    // how many of its kind and name stand before it
	Unnamed    bool   // a defaults section without a name
	Above      string // the defaults section above it, "" if there is none

	proxy       bool // falls under the defaults section above it
	conditional bool // has conditional blocks
	sound       bool // has nothing for which [New] refuses it
	placed      bool // others may have it
	ends        bool // the section after it gets none of its lines, whatever they are
	comments    int  // lines above the header
	lines       int32
	learnt      *facts
}

// SectionOf returns a section that stands alone.
func SectionOf(raw haproxycfg.Section) *Section { return newSection(new(Section), raw) }

func newSection(s *Section, raw haproxycfg.Section) *Section {
	*s = Section{
		Kind: raw.Kind, Name: raw.Name, Text: raw.Text, comments: raw.Header - raw.Line,
		proxy: isProxy(raw.Kind), conditional: hasConditions(raw.Text), sound: refuseLines(raw.Text, 1) == nil,
		ends: endsSection(raw.Text), lines: int32(strings.Count(raw.Text, "\n")), learnt: new(facts),
	}
	if s.Kind == "defaults" {
		s.Unnamed = s.Name == "" || s.Name == "from" && len(s.headerWords()) == 3 // or else "from" is its name
	}
	return s
}

// Key identifies a section of a text. Sections may repeat, as "global" does.
type Key struct {
	Kind, Name string
	Nth        int
}

// Key returns what identifies the section.
func (s *Section) Key() Key { return Key{s.Kind, s.Name, s.Nth} }

// String returns "backend shop", and "global (2)" for the second one.
func (k Key) String() string {
	s := strings.TrimSpace(k.Kind + " " + k.Name)
	if k.Kind == "" {
		s = "preamble"
	}
	if k.Nth > 0 {
		s += fmt.Sprintf(" (%d)", k.Nth+1)
	}
	return s
}

// isProxy reports whether a section of that kind falls under a defaults section.
func isProxy(kind string) bool { return kind == "frontend" || kind == "backend" || kind == "listen" }

// Index finds the sections of one text.
type Index struct {
	List []*Section

	defaults    map[string]int // by name; of two with one name the last
	unnamed     int            // number of the last name that a defaults section was given
	conditional bool
	sound       bool
	size        int

	byKey func() (numbered []*Section, at map[Key]int)
	lines func() []int32 // on which each section begins

	mentioning func() []*Section
	found      atomic.Int32 // how often a section was looked for
}

// newIndex has sections in their places: where one of the list is in the place of
// another text, a copy takes its own.
func newIndex(list []*Section) *Index {
	x := &Index{List: list, defaults: make(map[string]int), sound: true}
	x.byKey = sync.OnceValues(x.findKeys)
	x.lines = sync.OnceValue(x.countLines)
	x.mentioning = sync.OnceValue(x.findMentions)
	above := ""
	repeated := make(map[Key]int) // of those that HAProxy lets repeat
	for i, s := range list {
		x.size += len(s.Text)
		x.conditional, x.sound = x.conditional || s.conditional, x.sound && s.sound
		if s.proxy {
			list[i] = s.in(above, s.Name, 0)
			continue
		}
		name := s.Name
		if s.Unnamed {
			name = x.nameDefaults()
		}
		key := Key{Kind: s.Kind, Name: name}
		list[i] = s.in(above, name, repeated[key])
		repeated[key]++
		if s.Kind == "defaults" {
			above = name
			x.defaults[above] = i
		}
	}
	return x
}

// in returns the section in its place in a text.
func (s *Section) in(above, name string, nth int) *Section {
	if s.placed && s.Above == above && s.Name == name && s.Nth == nth {
		return s
	}
	if s.placed {
		there := *s
		s = &there
	}
	s.Above, s.Name, s.Nth, s.placed = above, name, nth, true
	return s
}

// nameDefaults gives a name to defaults without one, as the Dataplane API does.
func (x *Index) nameDefaults() string {
	for {
		x.unnamed++
		name := "unnamed_defaults_" + strconv.Itoa(x.unnamed)
		if _, taken := x.defaults[name]; !taken {
			return name
		}
	}
}

// findKeys finds sections by their keys. Proxies that share a name get a number
// only here: two texts with the same sections in the same order never need it.
func (x *Index) findKeys() (numbered []*Section, at map[Key]int) {
	numbered, at = x.List, make(map[Key]int, len(x.List))
	next := make(map[Key]int) // by the first key of those that share one
	for i := range x.List {
		key := x.List[i].Key()
		first := key
		for _, taken := at[key]; taken; _, taken = at[key] {
			key.Nth = max(key.Nth+1, next[first])
			next[first] = key.Nth + 1
		}
		if key.Nth != x.List[i].Nth {
			if &numbered[0] == &x.List[0] { // which others may be reading
				numbered = slices.Clone(x.List)
			}
			s := *numbered[i]
			s.Nth = key.Nth
			numbered[i] = &s
		}
		at[key] = i
	}
	return numbered, at
}

// Numbered returns the sections, each with a key of its own.
func (x *Index) Numbered() []*Section {
	numbered, _ := x.byKey()
	return numbered
}

// Find returns the section with that key, or nil.
func (x *Index) Find(key Key) *Section {
	const few = 16 // for which a look at all sections takes less than the map
	if key.Nth == 0 && x.found.Add(1) <= few {
		for _, s := range x.List {
			if s.Name == key.Name && s.Kind == key.Kind && s.Nth == 0 {
				return s
			}
		}
		return nil
	}
	numbered, at := x.byKey()
	if i, ok := at[key]; ok {
		return numbered[i]
	}
	return nil
}

// SameKeys reports whether both have the same sections in the same order.
func (x *Index) SameKeys(other *Index) bool {
	return slices.EqualFunc(x.List, other.List, func(a, b *Section) bool { return a.Name == b.Name && a.Kind == b.Kind })
}

// Header is what the first line of a section says beyond kind and name.
type Header struct {
	From string   // the defaults that apply, named or not; "" for none
	Rest []string // words beyond that
}

// Header reads the header of a section.
func (s *Section) Header() Header {
	var h Header
	if isProxy(s.Kind) {
		h.From = s.Above
	}
	words := s.headerWords()
	skip := 2
	if s.Kind == "" || s.Unnamed {
		skip = 1
	}
	if s.Kind == "" || len(words) <= skip {
		return h
	}
	h.Rest = words[skip:]
	if (isProxy(s.Kind) || s.Kind == "defaults") && len(h.Rest) > 1 && h.Rest[0] == "from" {
		h.From, h.Rest = h.Rest[1], h.Rest[2:]
	}
	return h
}

func (s *Section) headerWords() []string {
	words, _ := haproxycfg.Fields(s.headerLine())
	return words
}

// headerLine returns the line with the name of the section.
func (s *Section) headerLine() string {
	rest := s.Text
	for range s.comments {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// Line returns the line of the text on which a section of the list begins, from 1.
func (x *Index) Line(i int) int { return int(x.lines()[i]) }

// HeaderLine returns the line of the header of a section, or its first line.
func (x *Index) HeaderLine(i int) int { return x.Line(i) + x.List[i].comments }

// LineCount returns the number of lines of the text.
func (x *Index) LineCount() int { return x.Line(len(x.List)) - 1 }

func (x *Index) countLines() []int32 {
	lines, line := make([]int32, len(x.List)+1), int32(1)
	for i, s := range x.List {
		lines[i] = line
		line += s.lines
	}
	lines[len(x.List)] = line
	return lines
}

func (x *Index) join() string { return strings.Join(x.Texts(), "") }

// Texts returns the texts of the sections.
func (x *Index) Texts() []string {
	texts := make([]string, len(x.List))
	for i, s := range x.List {
		texts[i] = s.Text
	}
	return texts
}

// Contains reports whether a word, without a line feed in it, stands in the text.
func (x *Index) Contains(word string) bool {
	return slices.ContainsFunc(x.List, func(s *Section) bool { return strings.Contains(s.Text, word) })
}

// Inherited returns all defaults sections that apply to a proxy, the most distant
// first: each may name another one.
func (x *Index) Inherited(s *Section) []*Section {
	var chain []*Section
	for from := s.Header().From; from != "" && len(chain) < len(x.List); {
		at, ok := x.defaults[from]
		if !ok {
			break
		}
		chain = append(chain, x.List[at])
		from = x.List[at].Header().From
	}
	slices.Reverse(chain)
	return chain
}

// Lines returns the lines of all sections.
func (x *Index) Lines() []Line {
	var lines []Line
	for i := range x.List {
		lines = append(lines, x.List[i].Lines()...)
	}
	return lines
}

// Conditional reports whether the text has conditional blocks (configuration
// manual, section 2.4). Only HAProxy knows which of their lines it reads.
func (x *Index) Conditional() bool { return x.conditional }

func hasConditions(text string) bool {
	return strings.Contains(text, ".if") && condition.MatchString(text)
}

var condition = regexp.MustCompile(`(?m)^[ \t]*\.if`)
