package validate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// Syntax is phase 1. It finds:
//
//   - unknown keywords and sections, quotes that are not closed, lines of too
//     many words, sections without a name;
//   - two sections of one name where HAProxy refuses them;
//   - references to backends, servers, stick tables, userlists, resolvers, peers,
//     caches, http-errors, FastCGI applications and defaults that do not exist;
//   - files in the folders of the layout that a line or a crt-list names and the
//     configuration does not bring along.
//
// It parses only the sections and crt-lists that changed since the last call.
//
// Syntax does not refuse what HAProxy takes. A keyword is unknown when neither
// client-native nor the manuals of HAProxy know it. A disabled proxy may refer to
// anything. A text with conditional blocks (.if) is left to phase 2. There is one
// exception: Syntax refuses words behind the name of a proxy. HAProxy up to 3.0
// drops such a section, often in silence.
func (v *Validator) Syntax(cfg *dataplane.Config) error {
	if cfg == nil {
		return errNoConfig
	}
	v.parsed.Lock()
	defer v.parsed.Unlock()
	defer v.parsed.sections.turn()
	defer v.parsed.lists.turn()
	sections := cfg.Sections()
	c := checker{
		layout: v.Layout, cfg: cfg, lists: &v.parsed.lists, listed: map[string]bool{},
		first: make(map[sectionKey]*placed, len(sections)), tables: map[string]bool{},
	}
	all := make([]placed, len(sections))
	for i, s := range sections {
		p := &all[i]
		*p = placed{v.parsed.sections.of(s.Text, parseSection), s.Line}
		if p.conditional {
			return nil
		}
		for _, f := range p.findings {
			c.add(p, f.Line, f.Text, f.Message)
		}
		c.declare(p)
	}
	for i := range all {
		for _, r := range all[i].refs {
			if !all[i].skips(r) {
				c.reference(&all[i], r)
			}
		}
	}
	if len(c.findings) == 0 {
		return nil
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { // those of the main text first
		return cmp.Or(strings.Compare(string(a.Position.Kind), string(b.Position.Kind)), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &Error{Phase: PhaseSyntax, Findings: c.findings}
}

// placed is a section in the configuration.
type placed struct {
	*parsed
	line int // of the first line
}

func (p *placed) String() string { return sectionName(p.section.Kind, p.section.Name) }

func sectionName(kind, name string) string { return strings.TrimSpace(kind + " " + name) }

type sectionKey struct{ kind, name string }

// checker gathers the findings of one configuration.
type checker struct {
	layout   dataplane.Layout
	cfg      *dataplane.Config
	lists    *memo[[]reference]
	listed   map[string]bool // crt-lists that have been read
	first    map[sectionKey]*placed
	tables   map[string]bool
	findings []Finding
}

// add notes a finding at a line of a section.
func (c *checker) add(p *placed, line int, text, message string) {
	c.note(p, c.layout.ConfigPath(), dataplane.Position{Line: p.line + line - 1}, text, message)
}

func (c *checker) note(p *placed, file string, at dataplane.Position, text, message string) {
	c.findings = append(c.findings, Finding{
		File: file, Line: at.Line, Section: p.String(), Message: message, Text: mask(strings.TrimSpace(text)), Position: at})
}

// declare notes a section, and finds a second one of its name where HAProxy
// refuses that. A frontend and a backend may share a name. A listen section is
// both, but may stand behind a backend of its name up to HAProxy 3.2. HAProxy
// only warns of a second userlist.
func (c *checker) declare(p *placed) {
	for _, table := range p.tables {
		c.tables[table] = true
	}
	kind, name := p.section.Kind, p.section.Name
	if name == "" {
		return
	}
	rivals := []string{kind}
	switch kind {
	case "defaults", "userlist", "crt-store":
		rivals = nil
	case "frontend", "backend":
		rivals = append(rivals, "listen")
	case "listen":
		rivals = append(rivals, "frontend")
	}
	if other := c.find(name, rivals...); other != nil {
		c.add(p, p.section.Header, kind+" "+name, fmt.Sprintf("a second section of this name, the first is %s in line %d",
			other, other.line+other.section.Header-1))
	}
	if key := (sectionKey{kind, name}); c.first[key] == nil {
		c.first[key] = p
	}
}

// find returns the first section of that name, of the first of these kinds that
// has one.
func (c *checker) find(name string, kinds ...string) *placed {
	for _, kind := range kinds {
		if p := c.first[sectionKey{kind, name}]; p != nil {
			return p
		}
	}
	return nil
}

// reference finds what a section names and does not exist.
func (c *checker) reference(p *placed, r reference) {
	if message := c.missing(p, r); message != "" {
		c.add(p, r.line, lineOf(p.section.Text, r.line), message)
	}
	if r.kind != "file" {
		return
	}
	f, ok := c.cfg.File(dataplane.CRTList, path.Base(r.name))
	if !ok || c.listed[f.Name] || c.layout.Path(f.Kind, f.Name) != path.Clean(r.name) {
		return
	}
	c.listed[f.Name] = true
	for _, r := range c.lists.of(string(f.Content), parseList) {
		if message := c.missing(p, r); message != "" {
			at := dataplane.Position{Kind: f.Kind, Name: f.Name, Line: r.line}
			c.note(p, c.layout.Path(f.Kind, f.Name), at, lineOf(string(f.Content), r.line), message)
		}
	}
}

// missing says what is wrong with a reference, and nothing when it is fine.
func (c *checker) missing(from *placed, r reference) string {
	found := false
	switch r.kind {
	case "file":
		if c.lacks(r.name) {
			return fmt.Sprintf("the configuration has no file %s", r.name)
		}
		return ""
	case "table":
		switch {
		case c.tables[cmp.Or(r.name, from.section.Name)]: // a frontend and a backend of one name share it
			return ""
		case r.name == "":
			return fmt.Sprintf("%s has no stick table of its own, and no other is named", from)
		}
		return fmt.Sprintf("there is no stick table %q", r.name)
	case "server":
		return c.missingServer(from, r.name)
	case "backend", "frontend":
		found = c.find(r.name, r.kind, "listen") != nil
	case "defaults": // above, since HAProxy reads from top to bottom
		p := c.find(r.name, r.kind)
		found = p != nil && p.line < from.line
	default:
		found = c.find(r.name, r.kind) != nil
	}
	if found {
		return ""
	}
	return fmt.Sprintf("there is no %s %q", r.kind, r.name)
}

// missingServer looks for a server, in this section unless the name says another.
func (c *checker) missingServer(p *placed, name string) string {
	if backend, server, other := strings.Cut(name, "/"); other {
		if p = c.find(backend, "backend", "listen"); p == nil {
			return fmt.Sprintf("there is no backend %q", backend)
		}
		name = server
	}
	if p.template || slices.Contains(p.servers, name) {
		return ""
	}
	return fmt.Sprintf("there is no server %q in %s", name, p)
}

// lacks reports whether a path lies directly in a folder of the layout and the
// configuration brings no such file. A path may also name a folder, or a bundle:
// "site" means "site.rsa" and "site.ecdsa".
func (c *checker) lacks(file string) bool {
	if strings.HasSuffix(file, "/") {
		return false
	}
	file = path.Clean(file)
	dir, name := path.Dir(file), path.Base(file)
	lacks := false
	for _, kind := range []dataplane.FileKind{dataplane.Map, dataplane.Certificate, dataplane.CA, dataplane.CRTList, dataplane.General} {
		switch c.layout.Dir(kind) {
		case file:
			return false
		case dir:
			lacks = true
			for _, ext := range []string{"", ".rsa", ".ecdsa", ".dsa"} {
				if _, ok := c.cfg.File(kind, name+ext); ok {
					return false
				}
			}
		}
	}
	return lacks
}
