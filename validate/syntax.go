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
	section     haproxycfg.Section   // its Line and Header are of the text where it was parsed
	findings    []haproxycfg.Finding // Line relative
	refs        []reference
	lines       int
	key         string   // kind and name
	conditional bool     // has .if blocks
	disabled    bool     // HAProxy follows no reference of it
	tables      []string // names of stick tables
	servers     []string
	template    bool // has servers that no line shows

	// What the cache notes while it holds the section:
	at    int     // index among the sections
	round int     // the last configuration that had it; 0 for none
	isNew bool    // the one before did not
	twin  *parsed // another section of its kind and name
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
// proxy: later HAProxys refuse them, those up to 3.0 drop the section, and say
// nothing where no line of it follows. A text with
// conditional blocks (.if), of which only HAProxy knows what holds, is left to
// phase 2.
func (v *Validator) Syntax(cfg *dataplane.Config) error {
	if cfg == nil {
		return errors.New("validate: no configuration")
	}
	v.sections.mu.Lock()
	defer v.sections.mu.Unlock()
	v.sections.take(cfg.Main())
	c := checker{file: v.Layout.ConfigPath(), layout: v.Layout, cfg: cfg, all: v.sections.all, in: &v.sections.names}
	listens := false
	for _, p := range c.all {
		if p.conditional {
			return nil
		}
		for _, f := range p.findings {
			c.add(p, f.Line, f.Text, f.Message)
		}
		listens = listens || p.section.Kind == "listen" // shares names with two kinds
	}
	if listens || c.in.twice > 0 {
		c.duplicates()
	}
	c.references()
	c.inLists(&v.sections)
	if len(c.findings) == 0 {
		return nil
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { // those of the main text first
		return cmp.Or(strings.Compare(string(a.Position.Kind), string(b.Position.Kind)), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &Error{Phase: PhaseSyntax, Findings: c.findings}
}

// maxWords is how many words HAProxy takes on a line (MAX_LINE_ARGS).
const maxWords = 64

// parseSection reads a section, of which it keeps a copy: what is known of a
// section would keep the whole text that it stood in.
func parseSection(s haproxycfg.Section) *parsed {
	s.Text, s.Kind, s.Name = strings.Clone(s.Text), strings.Clone(s.Kind), strings.Clone(s.Name)
	first := s.Line
	p := &parsed{section: s, findings: haproxycfg.Parse(s), key: s.Kind + " " + s.Name}
	for i := range p.findings {
		p.findings[i].Line -= first
	}
	var r referrer
	n := 0
	for line := range strings.Lines(s.Text) {
		words, err := haproxycfg.Fields(line)
		if len(words) > maxWords {
			p.findings = append(p.findings, haproxycfg.Finding{Line: n, Text: strings.TrimSpace(line),
				Message: fmt.Sprintf("%d words, and HAProxy reads no more than %d of a line", len(words), maxWords)})
		}
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
	p.refs, p.lines = r.refs, n
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
	all      []*parsed
	in       *declared
	first    []int // line of each section, once somebody asked
	findings []Finding
}

// add notes a finding at a line of a section, counted from zero.
func (c *checker) add(p *parsed, line int, text, message string) {
	line += c.line(p)
	c.findings = append(c.findings, Finding{
		File: c.file, Line: line, Section: sectionName(p.section), Message: message, Text: mask(text),
		Position: dataplane.Position{Line: line},
	})
}

// line returns the number of a section's first line.
func (c *checker) line(p *parsed) int {
	if c.first == nil {
		line := 1
		for _, p := range c.all {
			c.first = append(c.first, line)
			line += p.lines
		}
	}
	return c.first[p.at]
}

func sectionName(s haproxycfg.Section) string {
	return strings.TrimSpace(s.Kind + " " + s.Name)
}

// duplicates finds two sections of one name where HAProxy refuses them: it
// takes two defaults, global, traces and crt-store sections, and ignores a
// second userlist with a warning.
func (c *checker) duplicates() {
	first := map[string]*parsed{}
	for _, p := range c.all {
		s := p.section
		for _, space := range nameSpaces(s.Kind) {
			key := space + " " + s.Name
			// Of a backend in front of a listen section of its name only versions
			// from 3.3 on complain.
			tolerated := s.Kind == "listen" && space == "backend"
			if other := first[key]; other != nil && s.Name != "" && !tolerated {
				c.add(p, s.Header-s.Line, s.Kind+" "+s.Name, fmt.Sprintf("a second section of this name, the first is %s in line %d",
					sectionName(other.section), c.line(other)+other.section.Header-other.section.Line))
				break
			}
			first[key] = p
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
func (c *checker) references() {
	for _, p := range c.all {
		for _, r := range p.refs {
			if p.skips(r) {
				continue
			}
			if message := c.missing(r, p); message != "" {
				c.add(p, r.line, r.text(p.section), message)
			}
		}
	}
}

// missing says what is wrong with a reference from a section; nothing when it
// is fine.
func (c *checker) missing(r reference, from *parsed) string {
	switch r.kind {
	case "backend", "frontend":
		if c.in.find(r.name, r.kind, "listen") != nil {
			return ""
		}
	case "table":
		if c.in.tables[r.name] > 0 {
			return ""
		}
		return fmt.Sprintf("there is no stick table %q", r.name)
	case ownTable:
		if c.in.tables[from.section.Name] > 0 { // or that of a frontend of its name
			return ""
		}
		return fmt.Sprintf("%s has no stick table of its own, and no other is named", sectionName(from.section))
	case "server":
		return c.missingServer(r, from)
	case "file":
		if kind, name := c.inLayout(r.name); name != "" && !c.brings(kind, name) {
			return fmt.Sprintf("the configuration has no file %s", r.name)
		}
		return ""
	case "defaults": // above, since HAProxy reads from top to bottom
		if p := c.in.find(r.name, "defaults"); p != nil && p.at < from.at {
			return ""
		}
	default:
		if c.in.find(r.name, r.kind) != nil {
			return ""
		}
	}
	return fmt.Sprintf("there is no %s %q", r.kind, r.name)
}

// missingServer looks for a server, of this section unless another is named.
func (c *checker) missingServer(r reference, p *parsed) string {
	name := r.name
	if backend, server, other := strings.Cut(r.name, "/"); other {
		if p = c.in.find(backend, "backend", "listen"); p == nil {
			return fmt.Sprintf("there is no backend %q", backend)
		}
		name = server
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
