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

// Section is one section of a text. It is immutable, and configurations share it. An unnamed
// defaults section has the name that the Dataplane API gives it.
type Section struct {
	Kind, Name string
	Text       string // with the comment lines directly above the header
	Nth        int    // number of sections before it with the same kind and name
	Unnamed    bool   // a defaults section without a name in the text
	Above      string // the defaults section above it, "" if there is none

	backend     bool
	proxy       bool // the defaults section above it applies to it
	conditional bool // has conditional blocks
	sound       bool // [New] has nothing to refuse in it
	placed      bool // it has its place in a text, and texts may share it
	ends        bool // none of its lines belongs to the section after it
	comments    int  // lines above the header
	lines       int32
	learnt      *facts
}

// SectionOf returns a section on its own.
func SectionOf(raw haproxycfg.Section) *Section { return newSection(new(Section), raw) }

func newSection(s *Section, raw haproxycfg.Section) *Section {
	*s = Section{
		Kind: raw.Kind, Name: raw.Name, Text: raw.Text, comments: raw.Header - raw.Line,
		backend: raw.Kind == "backend", proxy: isProxy(raw.Kind), conditional: hasConditions(raw.Text), sound: refuseLines(raw.Text, 1) == nil,
		ends: endsSection(raw.Text), lines: int32(strings.Count(raw.Text, "\n")), learnt: new(facts),
	}
	if s.Kind == "defaults" {
		s.Unnamed = s.Name == "" || s.Name == "from" && len(s.headerWords()) == 3 // otherwise "from" is its name
	}
	return s
}

// Key identifies a section of a text. A text may repeat sections such as "global".
type Key struct {
	Kind, Name string
	Nth        int
}

// Key returns the key of the section.
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

// isProxy reports whether defaults sections apply to sections of that kind.
func isProxy(kind string) bool { return kind == "frontend" || kind == "backend" || kind == "listen" }

// Index finds the sections of one text.
type Index struct {
	List []*Section

	defaults    map[string]int // by name; the last one if two share a name
	unnamed     int            // number in the last generated name of a defaults section
	conditional bool
	sound       bool
	size        int
	others      []int // sections that are no backends

	byKey func() (numbered []*Section, at map[Key]int)
	lines func() []int32 // line on which each section begins

	mentioning func() []*Section
	found      atomic.Int32 // number of lookups
}

// newIndex puts sections in their places. If a section has its place in another text,
// newIndex uses a copy.
func newIndex(list []*Section) *Index {
	x := &Index{List: list, defaults: make(map[string]int), sound: true}
	x.byKey = sync.OnceValues(x.findKeys)
	x.lines = sync.OnceValue(x.countLines)
	x.mentioning = sync.OnceValue(x.findMentions)
	above := ""
	repeated := make(map[Key]int) // for sections that HAProxy lets repeat
	for i, s := range list {
		x.size += len(s.Text)
		x.conditional, x.sound = x.conditional || s.conditional, x.sound && s.sound
		if !s.backend {
			x.others = append(x.others, i)
		}
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

// in returns the section with its place in a text.
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

// nameDefaults returns the name for an unnamed defaults section, as the Dataplane API chooses
// it.
func (x *Index) nameDefaults() string {
	for {
		x.unnamed++
		name := "unnamed_defaults_" + strconv.Itoa(x.unnamed)
		if _, taken := x.defaults[name]; !taken {
			return name
		}
	}
}

// findKeys indexes the sections by their keys. Only here do proxies that share a name get a
// number: two texts with the same sections in the same order never need it.
func (x *Index) findKeys() (numbered []*Section, at map[Key]int) {
	numbered, at = x.List, make(map[Key]int, len(x.List))
	next := make(map[Key]int) // by the first key of the sections that share one
	for i := range x.List {
		key := x.List[i].Key()
		first := key
		for _, taken := at[key]; taken; _, taken = at[key] {
			key.Nth = max(key.Nth+1, next[first])
			next[first] = key.Nth + 1
		}
		if key.Nth != x.List[i].Nth {
			if &numbered[0] == &x.List[0] { // others may be reading that list
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

// Numbered returns the sections with unique keys.
func (x *Index) Numbered() []*Section {
	numbered, _ := x.byKey()
	return numbered
}

// Find returns the section with that key, or nil.
func (x *Index) Find(key Key) *Section {
	const few = 16 // up to this many lookups, a scan costs less than the map
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
	From string   // the defaults section that applies, named or not; "" for none
	Rest []string // further words
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

// Line returns the line on which section i of the list begins in the text, from 1.
func (x *Index) Line(i int) int { return int(x.lines()[i]) }

// HeaderLine returns the line of the header of a section. If a section has no header, it
// returns the first line.
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

// Contains reports whether the text has a word. The word must not have a line feed.
func (x *Index) Contains(word string) bool {
	return slices.ContainsFunc(x.List, func(s *Section) bool { return strings.Contains(s.Text, word) })
}

// Inherited returns all defaults sections that apply to a proxy, the most distant first: a
// defaults section may name another one.
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

// OthersAbove returns how many sections of other kinds than backend stand above section i of
// the list.
func (x *Index) OthersAbove(i int) int {
	n, _ := slices.BinarySearch(x.others, i)
	return n
}

// Conditional reports whether the text has conditional blocks (configuration
// manual, section 2.4). Only HAProxy knows which of their lines it reads.
func (x *Index) Conditional() bool { return x.conditional }

func hasConditions(text string) bool {
	return strings.Contains(text, ".if") && condition.MatchString(text)
}

var condition = regexp.MustCompile(`(?m)^[ \t]*\.if`)
