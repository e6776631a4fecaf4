package validate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Syntax is phase 1. It finds:
//
//   - unknown keywords and sections, unclosed quotes, sections without
//     a name;
//   - references to backends, stick tables, userlists, resolvers, peers, caches,
//     http-errors, FastCGI applications and defaults that do not exist;
//   - files in the folders of the layout that a line or a crt-list names, but the
//     configuration does not bring along.
//
// It parses only the changed sections.
//
// Syntax refuses nothing that HAProxy accepts, with one exception: words behind the name of
// a proxy. HAProxy up to 3.0 drops such a section, often in silence. A keyword is unknown
// if neither client-native nor the manuals of HAProxy know it. A disabled proxy may refer
// to anything. Syntax leaves a text with conditional blocks (.if) to phase 2.
func (v *Validator) Syntax(cfg *dataplane.Config) error {
	if cfg == nil {
		return errNoConfig
	}
	v.state.Lock()
	defer v.state.Unlock()
	return wrongLines(v.Layout, cfg, v.state.texts.parse(cfg))
}

// wrongLines returns the findings of phase 1 as an *Error.
func wrongLines(layout dataplane.Layout, cfg *dataplane.Config, all []placed) error {
	c := checker{layout: layout, cfg: cfg, listed: map[string]bool{}, first: make(map[sectionKey]*placed, len(all)), tables: map[string]bool{}}
	for i := range all {
		p := &all[i]
		if p.conditional {
			return nil
		}
		for _, f := range p.findings {
			c.add(p, f.Line, f.Text, f.Message)
		}
		for _, table := range p.tables {
			c.tables[table] = true
		}
		if key := (sectionKey{p.section.Kind, p.section.Name}); c.first[key] == nil {
			c.first[key] = p
		}
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
	slices.SortStableFunc(c.findings, func(a, b Finding) int { // findings in the main text first
		return cmp.Or(strings.Compare(string(a.Position.Kind), string(b.Position.Kind)), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &Error{Phase: PhaseSyntax, Findings: c.findings}
}

// checker gathers the findings of one configuration.
type checker struct {
	layout   dataplane.Layout
	cfg      *dataplane.Config
	listed   map[string]bool        // crt-lists that have been read
	first    map[sectionKey]*placed // the first of each kind and name
	tables   map[string]bool
	findings []Finding
}

// add notes a finding at a line of a section.
func (c *checker) add(p *placed, line int, text, message string) {
	c.note(p, c.layout.ConfigPath(), dataplane.Position{Line: p.line + line - 1}, text, message)
}

func (c *checker) note(p *placed, file string, at dataplane.Position, text, message string) {
	c.findings = append(c.findings, Finding{
		File: file, Line: at.Line, Section: p.String(), Message: message, Text: haproxycfg.Redact(strings.TrimSpace(text)), Position: at})
}

// reference notes a finding if a reference names something that does not exist.
func (c *checker) reference(p *placed, r reference) {
	if message := c.missing(p, r); message != "" {
		c.add(p, r.line, lineOf(p.section.Text, r.line), message)
	}
	if r.kind != "file" {
		return
	}
	f, ok := c.listAt(r.name)
	if !ok || c.listed[f.Name] {
		return
	}
	c.listed[f.Name] = true
	n := 0
	for line := range strings.Lines(string(f.Content)) {
		n++
		for _, r := range listReferences(n, line) {
			if message := c.missing(p, r); message != "" {
				at := dataplane.Position{Kind: f.Kind, Name: f.Name, Line: n}
				c.note(p, c.layout.Path(f.Kind, f.Name), at, line, message)
			}
		}
	}
}

// listAt returns the crt-list with that path.
func (c *checker) listAt(name string) (list dataplane.File, ok bool) {
	f, ok := c.cfg.File(dataplane.CRTList, path.Base(name))
	if !ok || c.layout.Path(f.Kind, f.Name) != path.Clean(name) {
		return list, false
	}
	return f, true
}

// missing returns the problem of a reference, "" if there is none.
func (c *checker) missing(from *placed, r reference) string {
	found := c.first[sectionKey{r.kind, r.name}]
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
	case "backend", "frontend":
		found = cmp.Or(found, c.first[sectionKey{"listen", r.name}])
	case "defaults": // above, since HAProxy reads from top to bottom
		if found != nil && found.line >= from.line {
			found = nil
		}
	}
	if found == nil {
		return fmt.Sprintf("there is no %s %q", r.kind, r.name)
	}
	return ""
}

// lacks reports whether a path is directly in a folder of the layout, but the configuration
// has no such file. A path may also name a folder, or a bundle: "site" means "site.rsa" and
// "site.ecdsa".
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
