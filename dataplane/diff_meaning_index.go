package dataplane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

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

// section is one section with what applies to it. Defaults without a name have
// the one that the Dataplane API gives them.
type section struct {
	haproxycfg.Section
	nth      int    // how many of its kind and name stand before it, once [sectionIndex.keys] counted
	unnamed  bool   // defaults
	defaults string // name of the defaults section before it, "" if there is none
}

func (s *section) key() sectionKey { return sectionKey{s.Kind, s.Name, s.nth} }

// sectionIndex finds the sections of one configuration.
type sectionIndex struct {
	list     []section
	defaults map[string]int // defaults sections by name, the second "x" as "x (2)"
	keys     func() map[sectionKey]int

	// conditional says that the order of the text counts: there are .if blocks,
	// of which HAProxy alone knows what it reads, a variable is used above the
	// line that sets it, or settings stand below what they may count for.
	conditional bool
	repeated    bool // sections of one kind stand several times and count as one
}

func indexSections(text string) *sectionIndex {
	parts := haproxycfg.Split(text)
	x := &sectionIndex{
		list: make([]section, len(parts)), defaults: make(map[string]int),
		conditional: hasConditions(text) || usesBeforeSet(text) || setsBelow(parts),
	}
	x.keys = sync.OnceValue(x.findKeys)
	defaults, seen := "", make(map[string]bool)
	for i := range parts {
		s := &x.list[i]
		s.Section, s.defaults = parts[i], defaults
		switch s.Kind {
		case "global", "traces":
			x.repeated = x.repeated || seen[s.Kind]
			seen[s.Kind] = true
		case "defaults":
			x.nameDefaults(s)
			defaults = s.Name
			for n := 2; ; n++ {
				if _, taken := x.defaults[defaults]; !taken {
					break
				}
				defaults = fmt.Sprintf("%s (%d)", s.Name, n) // HAProxy takes them where nobody names them
			}
			x.defaults[defaults] = i
		}
	}
	return x
}

// nameDefaults gives a name to defaults without one.
func (x *sectionIndex) nameDefaults(s *section) {
	switch s.Name {
	case "":
		s.unnamed = true
	case "from":
		words, _ := haproxycfg.Fields(headerLine(s.Section))
		s.unnamed = len(words) == 3 // or else "from" is its name
	}
	for i := 1; s.unnamed; i++ {
		s.Name = unnamedDefaults + strconv.Itoa(i)
		if _, taken := x.defaults[s.Name]; !taken {
			return
		}
	}
}

const unnamedDefaults = "unnamed_defaults_"

// findKeys finds sections by what they are called. Where the sections of two
// configurations stand in the same order, which is nearly always, nobody asks.
func (x *sectionIndex) findKeys() map[sectionKey]int {
	keys := make(map[sectionKey]int, len(x.list))
	for i := range x.list {
		key := x.list[i].key()
		for _, taken := keys[key]; taken; _, taken = keys[key] {
			key.nth++
		}
		keys[key] = i
	}
	return keys
}

// merged returns an index in which sections are one that go on where the last
// one of their kind ended.
func (x *sectionIndex) merged() *sectionIndex {
	if !x.repeated {
		return x
	}
	m := &sectionIndex{}
	m.keys = sync.OnceValue(m.findKeys)
	at := make(map[string]int)
	for _, s := range x.list {
		if s.Kind == "global" || s.Kind == "traces" {
			if i, ok := at[s.Kind]; ok {
				m.list[i].Text += s.Text
				m.list[i].Hash = 0 // of no text
				continue
			}
			at[s.Kind] = len(m.list)
		}
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

// lasting are the settings of a global section that count for the whole
// process, so that nothing above or below reads them. Of others, such as log
// targets, folders and defaults of TLS, only the lines below hear.
var lasting = map[string]bool{
	"maxconn": true, "maxconnrate": true, "maxsessrate": true, "maxsslconn": true, "maxsslrate": true, "maxpipes": true,
	"maxcomprate": true, "maxcompcpuusage": true, "maxzlibmem": true, "spread-checks": true, "max-spread-checks": true,
	"hard-stop-after": true, "ulimit-n": true, "fd-hard-limit": true, "daemon": true, "pidfile": true,
	"chroot": true, "user": true, "group": true, "uid": true, "gid": true, "stats": true, "node": true,
	"description": true, "quiet": true, "zero-warning": true, "server-state-file": true, "server-state-base": true,
}

// setsBelow reports whether settings stand below sections that they may count
// for, if they stood above.
func setsBelow(sections []haproxycfg.Section) bool {
	others, proxies := false, false
	for i := range sections {
		switch s := &sections[i]; s.Kind {
		case "":
		case "global":
			if others && slices.ContainsFunc(bodyOf(s.Kind, s.Text), func(l line) bool { return !lasting[l.keyword()] }) {
				return true
			}
		case "crt-store":
			if proxies {
				return true
			}
		default:
			others, proxies = true, proxies || isProxy(s.Kind)
		}
	}
	return false
}

// usesBeforeSet reports whether a variable of the environment may be used above
// a line that sets one: the order of sections and lines counts then.
func usesBeforeSet(text string) bool {
	if strings.IndexByte(text, '$') < 0 || !strings.Contains(text, "env") {
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
func headerOf(s *section) header {
	var h header
	if isProxy(s.Kind) {
		h.from = s.defaults
	}
	words, _ := haproxycfg.Fields(headerLine(s.Section))
	skip := 2
	if s.Kind == "" || s.unnamed {
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
	for from := headerOf(&s).from; from != "" && len(chain) < len(x.list); {
		at, ok := x.defaults[from]
		if !ok {
			break
		}
		chain = append(chain, x.list[at])
		from = headerOf(&x.list[at]).from
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
