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
	conditional bool // has .if blocks
	unused      bool // disabled, or defaults that perhaps nobody uses
}

// Syntax is phase 1: unknown keywords and sections, quotes that are not
// closed, sections without a name, two sections of one name where HAProxy
// refuses them, and references to what does not exist: backends, userlists,
// resolvers, http-errors, and files in the folders of the layout that the
// configuration does not bring along. Sections that did not change since the
// last call are not parsed again.
//
// It never refuses what HAProxy takes, as far as that can be known without
// asking it: a keyword that client-native's parser does not know is a finding
// only when the manuals of HAProxy do not know it either. A text with
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
	c.duplicates()
	c.references(all)
	if len(c.findings) == 0 {
		return nil
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
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
		}
		all[i], next[s.Text] = p, p
	}
	c.known = next
	return all
}

func parseSection(s haproxycfg.Section) *parsed {
	first := s.Line
	p := &parsed{section: s, findings: haproxycfg.Parse(s), unused: s.Kind == "defaults"}
	for i := range p.findings {
		p.findings[i].Line -= first
	}
	n := 0
	for line := range strings.Lines(s.Text) {
		words, err := haproxycfg.Fields(line)
		if err == nil && len(words) > 0 {
			p.conditional = p.conditional || words[0] == ".if"
			p.unused = p.unused || words[0] == "disabled"
			if first+n != s.Header || s.Kind == "" {
				p.refs = appendReferences(p.refs, n, words)
			}
		}
		n++
	}
	return p
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
func (c *checker) references(all []*parsed) {
	names := map[string]bool{}
	for _, s := range c.sections {
		names[s.Kind+" "+s.Name] = true
	}
	for i, p := range all {
		for _, r := range p.refs {
			if p.unused && r.late() {
				continue
			}
			if message := c.missing(r, names); message != "" {
				c.add(c.sections[i], r.line, r.text(c.sections[i]), message)
			}
		}
	}
}

// missing says what is wrong with a reference; nothing when it is fine.
func (c *checker) missing(r reference, names map[string]bool) string {
	switch r.kind {
	case "backend":
		if !names["backend "+r.name] && !names["listen "+r.name] {
			return fmt.Sprintf("there is no backend %q", r.name)
		}
	case "file":
		kind, name := c.inLayout(r.name)
		if name != "" && !c.brings(kind, name) {
			return fmt.Sprintf("the configuration has no file %s", r.name)
		}
	default:
		if !names[r.kind+" "+r.name] {
			return fmt.Sprintf("there is no %s %q", r.kind, r.name)
		}
	}
	return ""
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
