package validate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// parsed is what phase 1 knows of one section. Lines count from the first line
// of the section, from zero, so that it holds wherever the section stands.
type parsed struct {
	section     haproxycfg.Section
	findings    []haproxycfg.Finding // Line relative
	refs        []reference
	key         string   // kind and name
	conditional bool     // has .if blocks
	disabled    bool     // HAProxy follows no reference of it
	tables      []string // names of stick tables
	servers     []string
	template    bool // has servers that no line shows
}

// skips reports whether HAProxy perhaps does not follow a reference: defaults
// may be used by nobody.
func (p *parsed) skips(r reference) bool {
	return p.disabled || r.late && p.section.Kind == "defaults"
}

// Syntax is phase 1: unknown keywords and sections, quotes that are not
// closed, sections without a name, two sections of one name where HAProxy
// refuses them, and references to what does not exist: backends, servers, stick
// tables, userlists, resolvers, peers, caches, http-errors, FastCGI applications,
// defaults, and files in the folders of the layout that the configuration does
// not bring along, also those that its crt-lists name. Sections and crt-lists
// that did not change since the last call are not parsed again.
//
// It never refuses what HAProxy takes, as far as that can be known without
// asking it: a keyword that client-native's parser does not know is a finding
// only when the manuals of HAProxy do not know it either, and what a disabled
// proxy refers to is none. The one exception are words behind the name of a
// proxy, which HAProxy up to 3.0 drops and later ones refuse. A text with
// conditional blocks (.if), of which only HAProxy knows what holds, is left to
// phase 2.
func (v *Validator) Syntax(cfg *dataplane.Config) error {
	if cfg == nil {
		return errors.New("validate: no configuration")
	}
	sections := haproxycfg.Split(cfg.Main())
	all := v.sections.parse(sections)
	c := checker{file: v.Layout.ConfigPath(), layout: v.Layout, cfg: cfg, sections: sections}
	for i, p := range all {
		if p.conditional {
			return nil
		}
		for _, f := range p.findings {
			c.add(sections[i], f.Line, f.Text, f.Message)
		}
	}
	in := index(all)
	if in.repeats {
		c.duplicates()
	}
	c.references(all, in)
	c.inLists(all, &v.sections)
	if len(c.findings) == 0 {
		return nil
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { // those of the main text first
		return cmp.Or(strings.Compare(string(a.Position.Kind), string(b.Position.Kind)), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &Error{Phase: PhaseSyntax, Findings: c.findings}
}

// parse returns what is known of each section, and forgets the sections that
// are gone.
func (c *sectionCache) parse(sections []haproxycfg.Section) []*parsed {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[string]*parsed, len(sections))
	all := make([]*parsed, len(sections))
	for i, s := range sections {
		p := c.known[s.Text]
		if p == nil {
			p = parseSection(s)
			c.count++
		}
		all[i], next[s.Text] = p, p
	}
	c.known = next
	return all
}

func parseSection(s haproxycfg.Section) *parsed {
	first := s.Line
	p := &parsed{section: s, findings: haproxycfg.Parse(s), key: s.Kind + " " + s.Name}
	for i := range p.findings {
		p.findings[i].Line -= first
	}
	var r referrer
	n := 0
	for line := range strings.Lines(s.Text) {
		words, err := haproxycfg.Fields(line)
		if err == nil && len(words) > 0 {
			p.conditional = p.conditional || words[0] == ".if"
			if first+n == s.Header && s.Kind != "" {
				p.inherits(n, words, &r)
			} else {
				p.declare(words)
				r.read(n, words)
			}
		}
		n++
	}
	p.refs = r.refs
	return p
}

// inherits takes the defaults section that a header names.
func (p *parsed) inherits(line int, words []string, r *referrer) {
	switch p.section.Kind {
	case "frontend", "backend", "listen", "defaults":
		if len(words) > 3 && words[2] == "from" {
			r.line = line
			r.add("defaults", words[3])
			if n := len(r.refs) - 1; n >= 0 {
				r.refs[n].late = false
			}
		}
	}
}

// declare takes what other lines may refer to.
func (p *parsed) declare(words []string) {
	switch {
	case words[0] == "disabled":
		p.disabled = true
	case words[0] == "stick-table":
		p.tables = append(p.tables, p.section.Name)
	case words[0] == "table" && p.section.Kind == "peers" && len(words) > 1:
		p.tables = append(p.tables, p.section.Name+"/"+words[1])
	case words[0] == "server" && len(words) > 1:
		p.servers = append(p.servers, words[1])
	case words[0] == "server-template":
		p.template = true
	}
}

// checker gathers the findings of one configuration.
type checker struct {
	file     string
	layout   dataplane.Layout
	cfg      *dataplane.Config
	sections []haproxycfg.Section
	findings []Finding
}

// add notes a finding at a line of a section, counted from zero.
func (c *checker) add(s haproxycfg.Section, line int, text, message string) {
	c.findings = append(c.findings, Finding{
		File: c.file, Line: s.Line + line, Section: sectionName(s), Message: message, Text: mask(text),
		Position: dataplane.Position{Line: s.Line + line},
	})
}

func sectionName(s haproxycfg.Section) string {
	return strings.TrimSpace(s.Kind + " " + s.Name)
}

// duplicates finds two sections of one name where HAProxy refuses them: it
// takes two defaults, global, traces and crt-store sections, and ignores a
// second userlist with a warning.
func (c *checker) duplicates() {
	first := map[string]int{}
	for i, s := range c.sections {
		for _, space := range nameSpaces(s.Kind) {
			key := space + " " + s.Name
			// Of a backend in front of a listen section of its name only versions
			// from 3.3 on complain.
			tolerated := s.Kind == "listen" && space == "backend"
			if at, twice := first[key]; twice && s.Name != "" && !tolerated {
				other := c.sections[at]
				c.add(s, s.Header-s.Line, s.Kind+" "+s.Name,
					fmt.Sprintf("a second section of this name, the first is %s in line %d", sectionName(other), other.Header))
				break
			}
			first[key] = i
		}
	}
}

// nameSpaces returns in which sets of names a section's name must be unique. A
// frontend and a backend may share a name, a listen section is both.
func nameSpaces(kind string) []string {
	switch kind {
	case "", "global", "defaults", "traces", "userlist", "crt-store":
		return nil
	case "listen":
		return []string{"frontend", "backend"}
	}
	return []string{kind}
}

// references finds what is referred to and does not exist.
func (c *checker) references(all []*parsed, in declared) {
	for i, p := range all {
		for _, r := range p.refs {
			if p.skips(r) {
				continue
			}
			if message := c.missing(r, i, in); message != "" {
				c.add(c.sections[i], r.line, r.text(c.sections[i]), message)
			}
		}
	}
}

// declared is what can be referred to.
type declared struct {
	all      []*parsed
	sections map[string]int // the first by kind and name
	tables   map[string]bool
	repeats  bool // perhaps two sections share a name
}

func index(all []*parsed) declared {
	k := declared{all: all, sections: make(map[string]int, len(all)), tables: map[string]bool{}}
	for i, p := range all {
		if _, twice := k.sections[p.key]; !twice {
			k.sections[p.key] = i
		} else if p.section.Name != "" {
			k.repeats = true
		}
		k.repeats = k.repeats || p.section.Kind == "listen" // shares names with two kinds
		for _, table := range p.tables {
			k.tables[table] = true
		}
	}
	return k
}

// find returns the index of a section of one of these kinds, or -1.
func (k declared) find(name string, kinds ...string) int {
	for _, kind := range kinds {
		if i, ok := k.sections[kind+" "+name]; ok {
			return i
		}
	}
	return -1
}

// missing says what is wrong with a reference from the section at an index;
// nothing when it is fine.
func (c *checker) missing(r reference, at int, in declared) string {
	switch r.kind {
	case "backend", "frontend":
		if in.find(r.name, r.kind, "listen") >= 0 {
			return ""
		}
	case "table":
		if in.tables[r.name] {
			return ""
		}
		return fmt.Sprintf("there is no stick table %q", r.name)
	case "server":
		return missingServer(r, at, in)
	case "file":
		if kind, name := c.inLayout(r.name); name != "" && !c.brings(kind, name) {
			return fmt.Sprintf("the configuration has no file %s", r.name)
		}
		return ""
	case "defaults": // above, since HAProxy reads from top to bottom
		if i := in.find(r.name, "defaults"); i >= 0 && i < at {
			return ""
		}
	default:
		if in.find(r.name, r.kind) >= 0 {
			return ""
		}
	}
	return fmt.Sprintf("there is no %s %q", r.kind, r.name)
}

// missingServer looks for a server, of this section unless another is named.
func missingServer(r reference, at int, in declared) string {
	p, name := in.all[at], r.name
	if backend, server, other := strings.Cut(r.name, "/"); other {
		i := in.find(backend, "backend", "listen")
		if i < 0 {
			return fmt.Sprintf("there is no backend %q", backend)
		}
		p, name = in.all[i], server
	}
	if p.template || slices.Contains(p.servers, name) {
		return ""
	}
	return fmt.Sprintf("there is no server %q in %s", name, sectionName(p.section))
}

// inLayout tells in which folder of the layout a path lies, the innermost where
// folders are nested, and its name there; no name when in none.
func (c *checker) inLayout(path string) (kind dataplane.FileKind, name string) {
	for _, k := range []dataplane.FileKind{dataplane.Map, dataplane.Certificate, dataplane.General} {
		rest, inside := strings.CutPrefix(path, c.layout.Dir(k)+"/")
		if inside && (name == "" || len(rest) < len(name)) {
			kind, name = k, rest
		}
	}
	if strings.Contains(strings.TrimSuffix(name, "/"), "/") {
		return "", "" // of a folder in there, which no file of a configuration lies in
	}
	return kind, name
}

// brings reports whether a file of the configuration lies there. A name may
// also be that of a folder, or of a bundle ("site" for site.rsa and site.ecdsa).
func (c *checker) brings(kind dataplane.FileKind, name string) bool {
	if strings.HasSuffix(name, "/") {
		return true
	}
	for _, k := range []dataplane.FileKind{dataplane.Map, dataplane.Certificate, dataplane.CA, dataplane.CRTList, dataplane.General} {
		if c.layout.Dir(k) != c.layout.Dir(kind) {
			continue
		}
		if _, ok := c.cfg.File(k, name); ok {
			return true
		}
		for _, ext := range []string{".rsa", ".ecdsa", ".dsa"} {
			if _, ok := c.cfg.File(k, name+ext); ok {
				return true
			}
		}
	}
	return false
}
