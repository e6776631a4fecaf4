package diff

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// usage says how a configuration uses a file.
type usage struct {
	mapped   bool // by a map converter, or an ACL that reads a map
	ordered  bool // by a converter that takes the first matching entry
	typed    bool // by a converter, or an ACL, that does not take any text as key and as value
	patterns bool // by an ACL that reads patterns
	crt      bool // by "crt"
	inList   bool // in a crt-list
	list     bool // by "crt-list"
	ca       bool // by "ca-file" or "ca-verify-file"
	other    bool // in any other way
}

func (u usage) any() bool      { return u != usage{} }
func (u usage) onlyList() bool { return u.inList && !u.crt && !u.other }

// references finds where a configuration mentions some files.
type references struct {
	config   *config.Config
	mentions map[string][]mention // by the name of the file
	loose    map[string]bool      // files that HAProxy may read without their full name
	folder   bool                 // a bind line may read all certificates of a folder
	cas      bool                 // a ca-file may name a folder
	issuers  bool                 // HAProxy reads certificates of issuers from a folder
}

// mention is a place where a text has the name of a file.
type mention struct {
	in       config.FileKind // kind of the file with the text; "" for haproxy.cfg
	line     string
	lead     string // the line up to the path
	previous string // the word before
	before   string // the part of the same word before the path
	absolute bool   // the path is absolute
}

// findReferences looks for the names of files in the main text and in the files that can
// refer to others. It reads only texts that mention one of them, unless all is set.
func findReferences(c *config.Config, names map[string]bool, all bool) *references {
	r := &references{config: c, mentions: make(map[string][]mention), loose: make(map[string]bool)}
	beside := namesBeside(names)
	all = all || len(beside) > 0 // any word may mean such a file
	for name := range names {
		all = all || !config.LooksLikeFile(name)
	}
	has := func(words []string) bool {
		return all || slices.ContainsFunc(words, func(word string) bool { return names[word] })
	}
	texts := c.Index().Mentioning()
	if all {
		texts = c.Index().List
	}
	for _, s := range texts {
		m := s.Mentions()
		r.folders(m)
		if has(m.Files) {
			r.read("", s.Text, names, beside)
		}
	}
	for i, f := range c.Files {
		if (f.Kind == config.CRTList || f.Kind == config.General) && has(c.FileWords(i)) {
			r.read(f.Kind, string(f.Content), names, beside)
		}
	}
	return r
}

// namesBeside returns the files that HAProxy may find by another name, keyed by their names
// without extension. These are files that it reads along with a certificate (configuration
// manual, "ssl-load-extra-files"), and modules of Lua.
func namesBeside(names map[string]bool) map[string][]string {
	beside := make(map[string][]string)
	for name := range names {
		switch stem, ext := config.SplitExt(name); ext {
		case ".rsa", ".ecdsa", ".dsa", ".key", ".ocsp", ".issuer", ".sctl", ".lua":
			beside[stem] = append(beside[stem], name)
		}
	}
	return beside
}

// read notes where a text has the names as whole words. A template may write a path in any
// way, so the folder before the name does not matter. A reference too many is harmless.
func (r *references) read(in config.FileKind, text string, names map[string]bool, beside map[string][]string) {
	for line := range strings.Lines(text) {
		if config.IsComment(line) {
			continue
		}
		line = config.Unquoted(line)
		config.Words(line, func(start, end int) {
			name := line[start:end]
			if names[name] {
				r.mentions[name] = append(r.mentions[name], newMention(in, line, start))
			}
			if len(beside) > 0 {
				stem, _ := config.SplitExt(name)
				for _, other := range beside[stem] {
					r.loose[other] = r.loose[other] || other != name
				}
			}
		})
	}
}

// folders notes whether a section may name a folder.
func (r *references) folders(m *config.Mentions) {
	r.cas, r.issuers = r.cas || m.CAs, r.issuers || m.Issuers
	for _, name := range m.Crts {
		if !r.folder {
			_, known := r.config.File(config.Certificate, name)
			r.folder = !known
		}
	}
}

// newMention parses a line that has a path. The last element of the path starts at index at.
func newMention(in config.FileKind, line string, at int) mention {
	path := strings.LastIndexAny(line[:at], " \t\"'(,=@") + 1
	word := strings.LastIndexAny(line[:path], " \t") + 1
	m := mention{in: in, line: line, lead: line[:path], before: line[word:path], absolute: line[path] == '/'}
	if words := strings.Fields(line[:word]); len(words) > 0 {
		m.previous = words[len(words)-1]
	}
	return m
}

// of returns how the configuration uses a file.
func (r *references) of(f config.File) usage {
	var u usage
	u.other = r.loose[f.Name] || r.cas && f.Kind == config.CA || r.issuers && f.Kind != config.Map && f.Kind != config.CRTList
	for _, m := range r.mentions[f.Name] {
		u.add(f.Kind, m)
	}
	return u
}

var (
	// call matches the function around a path: "map_beg" in "%[path,map_beg(".
	call = regexp.MustCompile(`(\w+)\($`)

	// unorderedMap matches the converters that look up their key in a tree. The order of the
	// entries has no meaning for them (configuration manual, "map").
	unorderedMap = regexp.MustCompile(`^map(_(str|beg|ip)(_\w*)?)?$`)

	// stringMap matches the converters that take any text as key and as value (configuration
	// manual, section 7.3.1). Others need expressions, addresses or numbers.
	stringMap = regexp.MustCompile(`(^|[,\[])map(_(str|beg|sub|dir|dom|end)(_str)?)?\($`)
)

// add notes the usage of a file of that kind by a mention.
func (u *usage) add(kind config.FileKind, m mention) {
	converter := ""
	if match := call.FindStringSubmatch(m.before); match != nil {
		converter = match[1]
	}
	readsMap := strings.Contains(m.lead, " -M ")
	isBundle := (kind == config.CA || kind == config.General) && m.before == ""
	switch {
	case m.in == config.CRTList && kind == config.Certificate && m.previous == "" && m.before == "":
		u.inList = true
	case m.in != "":
		u.other = true
	case m.previous == "crt" && kind == config.Certificate:
		u.crt = true
	case m.previous == "crt-list" && kind == config.CRTList:
		u.list = true
	case !m.absolute:
		u.other = true // the commands would need another path
	case kind == config.Map && strings.HasPrefix(converter, "map"):
		u.mapped = true
		u.ordered = u.ordered || !unorderedMap.MatchString(converter)
		u.typed = u.typed || !stringMap.MatchString(m.before)
	case kind == config.Map && m.previous == "-f" && readsMap:
		u.mapped, u.typed = true, true
	case kind == config.General && m.previous == "-f" && m.before == "" && !readsMap:
		u.patterns = true
	case isBundle && (m.previous == "ca-file" || m.previous == "ca-verify-file"):
		u.ca = true
	default:
		u.other = true
	}
}

// defaultIdle reports whether no bind line takes its default certificate from the list. With
// strict-sni, no default certificate is in use. And if a certificate stands before the list
// on the line, that one is the default (configuration manual, "strict-sni", "crt").
func (r *references) defaultIdle(list config.File) bool {
	for _, m := range r.mentions[list.Name] {
		words := strings.Fields(m.line)
		switch {
		case m.in != "" || words[0] != "bind":
			return false
		case slices.Contains(strings.Fields(m.lead), "crt"):
		case !slices.Contains(words, "strict-sni") || slices.Contains(words, "no-strict-sni"):
			return false
		}
	}
	return !r.config.Index().Contains("generate-certificates") // HAProxy generates certificates with the default one
}

// naming has the sections of the desired text that may name one of the backends.
type naming struct {
	sections []*config.Section
	backends map[string]bool
}

// mayName returns the sections of the desired text that may name a backend. One search covers
// all backends that come, go, or are spare.
func (d *difference) mayName(backend string) []*config.Section {
	if d.naming == nil {
		n := &naming{backends: make(map[string]bool)}
		var words []config.Word
		add := func(s *config.Section) {
			if s.Kind == "backend" && !n.backends[s.Name] {
				n.backends[s.Name], words = true, append(words, config.NewWord(s.Name))
			}
		}
		for _, one := range d.spares() {
			add(one.section)
		}
		for _, at := range d.stretches {
			for _, s := range slices.Concat(d.current.Index().List[at.OldFrom:at.OldTo], d.desired.Index().List[at.NewFrom:at.NewTo]) {
				add(s)
			}
		}
		n.sections = d.desired.Index().Naming(words)
		d.naming = n
	}
	if d.whole || !d.naming.backends[backend] {
		return d.desired.Index().List
	}
	return d.naming.sections
}

// namedIn says where the desired configuration names a backend, apart from its own section,
// or returns "". With exact, a map may have the name as a whole value.
func (d *difference) namedIn(name string, exact bool) string {
	word, c := config.NewWord(name), d.desired
	for _, s := range d.mayName(name) {
		if s.MayName(word) && strings.Contains(s.Text, name) && (s.Name != name || s.Kind != "backend") && sectionNames(s, name) {
			return fmt.Sprintf("%s names it", s.Key())
		}
	}
	for i, f := range c.Files {
		if f.Kind == config.General && c.MayName(i, word) && hasWord(string(f.Content), name) {
			return fmt.Sprintf("%s %s names it", f.Kind, f.Name)
		}
	}
	return leads(c, name, exact)
}

// sectionNames reports whether a line of a section has the name. The names of servers do not
// count, so a server line names a backend only if it tracks another server.
func sectionNames(s *config.Section, name string) bool {
	return slices.ContainsFunc(s.Lines(), func(l config.Line) bool {
		return hasWord(l.Raw, name) && (l.Keyword() != "server" || slices.Contains(l.Words, "track"))
	})
}

// leads says which map has the name of a backend in a value, or returns "". With exact, a
// value that is only the name does not count.
func leads(c *config.Config, name string, exact bool) string {
	word := config.NewWord(name)
	for i, f := range c.Files {
		switch several := func(value string) bool { return value != name && hasWord(value, name) }; {
		case f.Kind != config.Map:
			continue
		case exact && slices.ContainsFunc(c.Several(i), several):
			return fmt.Sprintf("a value of map %s names it", f.Name)
		case exact, !c.MayName(i, word):
			continue
		}
		for rest := f.Content; ; {
			at := bytes.Index(rest, []byte(name))
			if at < 0 {
				break
			}
			begin, end := bytes.LastIndexByte(rest[:at], '\n')+1, bytes.IndexByte(rest[at:], '\n')
			line := rest[begin:]
			rest = nil
			if end >= 0 {
				line, rest = line[:at+end-begin], line[at+end-begin:]
			}
			for _, e := range config.ParseMap(line) {
				if hasWord(e.Value, name) {
					return fmt.Sprintf("a value of map %s names it", f.Name)
				}
			}
		}
	}
	return ""
}

// hasWord reports whether a text has the name of a backend that is not part of a longer name.
func hasWord(text, name string) bool {
	isPart := func(c byte) bool { return c == '.' || c == ':' || config.IsNameRune(rune(c)) }
	for at := 0; ; at++ {
		next := strings.Index(text[at:], name)
		if next < 0 {
			return false
		}
		at += next
		end := at + len(name)
		if (at == 0 || !isPart(text[at-1])) && (end == len(text) || !isPart(text[end])) {
			return true
		}
	}
}
