package dataplane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// sectionKey identifies a section: sections may repeat, as "global" does.
type sectionKey struct {
	kind, name string
	nth        int
}

func (k sectionKey) String() string {
	s := k.kind
	if s == "" {
		s = "preamble"
	}
	if k.name != "" {
		s += " " + k.name
	}
	if k.nth > 0 {
		s += fmt.Sprintf(" (%d)", k.nth+1)
	}
	return s
}

// section is one section with what applies to it.
type section struct {
	haproxycfg.Section
	key      sectionKey
	defaults string // name of the defaults section before it, "" if there is none
}

// sectionIndex finds the sections of one configuration.
type sectionIndex struct {
	list  []section
	byKey map[sectionKey]int

	// conditional says that the order of the text counts: there are .if blocks,
	// of which HAProxy alone knows what it reads, or a variable is used above
	// the line that sets it.
	conditional bool
	repeated    bool // sections of one kind stand several times and count as one
}

func indexSections(text string) *sectionIndex {
	parts := haproxycfg.Split(text)
	x := &sectionIndex{
		list: make([]section, len(parts)), byKey: make(map[sectionKey]int, len(parts)),
		conditional: hasConditions(text) || usesBeforeSet(text),
	}
	defaults := ""
	for i, s := range parts {
		key := sectionKey{kind: s.Kind, name: s.Name}
		if s.Kind == "defaults" {
			key.name = x.nameDefaults(s)
		}
		for _, taken := x.byKey[key]; taken; _, taken = x.byKey[key] {
			key.nth++
		}
		x.repeated = x.repeated || key.nth > 0 && addsUp(s.Kind)
		x.byKey[key] = i
		x.list[i] = section{Section: s, key: key, defaults: defaults}
		if s.Kind == "defaults" {
			defaults = key.name
		}
	}
	return x
}

// nameDefaults returns the name of a defaults section. One without gets the
// name that the Dataplane API gives it.
func (x *sectionIndex) nameDefaults(s haproxycfg.Section) string {
	if s.Name != "" && s.Name != "from" {
		return s.Name
	}
	if words, _ := haproxycfg.Fields(headerLine(s)); len(words) != 3 && s.Name == "from" {
		return s.Name // it has that name
	}
	for i := 1; ; i++ {
		name := unnamedDefaults + strconv.Itoa(i)
		if _, taken := x.byKey[sectionKey{kind: "defaults", name: name}]; !taken {
			return name
		}
	}
}

const unnamedDefaults = "unnamed_defaults_"

// addsUp tells the kinds of sections that go on where the last one of them
// ended.
func addsUp(kind string) bool { return kind == "global" || kind == "traces" }

// merged returns an index in which sections that add up are one.
func (x *sectionIndex) merged() *sectionIndex {
	if !x.repeated {
		return x
	}
	m := &sectionIndex{byKey: make(map[sectionKey]int, len(x.list))}
	for _, s := range x.list {
		if addsUp(s.Kind) && s.key.nth > 0 {
			first := &m.list[m.byKey[sectionKey{kind: s.Kind, name: s.Name}]]
			first.Text += s.Text
			first.Hash = 0 // of no text
			continue
		}
		m.byKey[s.key] = len(m.list)
		m.list = append(m.list, s)
	}
	return m
}

// hasConditions reports whether a line starts with ".if".
func hasConditions(text string) bool {
	if !strings.Contains(text, ".if") {
		return false
	}
	for l := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(l, " \t"), ".if") {
			return true
		}
	}
	return false
}

// usesBeforeSet reports whether a variable of the environment may be used above
// a line that sets one: the order of sections and lines counts then.
func usesBeforeSet(text string) bool {
	if !strings.Contains(text, "env") || strings.IndexByte(text, '$') < 0 {
		return false
	}
	used := false
	for l := range strings.Lines(text) {
		l = strings.TrimLeft(l, " \t")
		word := l
		if i := strings.IndexAny(l, " \t\r\n"); i >= 0 {
			word = l[:i]
		}
		if used && groupOfKeyword[word] == groupEnvironment {
			return true
		}
		used = used || haproxycfg.Expands(l)
	}
	return false
}

// header is what the first line of a section says beyond kind and name.
type header struct {
	from string // the defaults that apply, "" for none
	rest []string
}

// headerOf reads the header of a section. A proxy without "from" falls under
// the defaults section before it.
func (x *sectionIndex) headerOf(s section) header {
	var h header
	if isProxy(s.Kind) {
		h.from = s.defaults
	}
	words, _ := haproxycfg.Fields(headerLine(s.Section))
	skip := 2
	if s.Kind == "" || s.Kind == "defaults" && (s.Name == "" || s.Name != s.key.name) {
		skip = 1
	}
	if s.Kind == "" || len(words) <= skip {
		return h
	}
	h.rest = words[skip:]
	if (isProxy(s.Kind) || s.Kind == "defaults") && len(h.rest) > 1 && h.rest[0] == "from" {
		h.from, h.rest = h.rest[1], h.rest[2:]
	}
	return h
}

// inherited returns all defaults sections that apply to a proxy, the most
// distant first: each may name another one.
func (x *sectionIndex) inherited(s section) []section {
	var chain []section
	for from := x.headerOf(s).from; from != "" && len(chain) < len(x.list); {
		at, ok := x.byKey[sectionKey{kind: "defaults", name: from}]
		if !ok {
			break
		}
		chain = append(chain, x.list[at])
		from = x.headerOf(x.list[at]).from
	}
	slices.Reverse(chain)
	return chain
}

// headerLine returns the header of a section.
func headerLine(s haproxycfg.Section) string {
	n := s.Header - s.Line
	for l := range strings.Lines(s.Text) {
		if n == 0 {
			return l
		}
		n--
	}
	return ""
}
