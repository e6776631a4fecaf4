package validate

import (
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// parsed is the result of phase 1 for one section. Lines count from 1 within the section.
type parsed struct {
	section     haproxycfg.Section
	findings    []haproxycfg.Finding
	refs        []reference
	conditional bool     // has .if blocks
	disabled    bool     // HAProxy follows no reference of it
	tables      []string // names of stick tables
}

// texts are parsed sections by their texts.
type texts map[string]*parsed

// parse parses the sections of a configuration. It takes those that it knows, and keeps only
// those of this configuration.
func (known *texts) parse(cfg *dataplane.Config) []placed {
	sections := cfg.Sections()
	next, all := make(texts, len(sections)), make([]placed, len(sections))
	for i, s := range sections {
		p := (*known)[s.Text]
		if p == nil {
			p = parseSection(strings.Clone(s.Text)) // a part of a text would keep the whole one in memory
		}
		next[p.section.Text] = p
		all[i] = placed{p, s.Line}
	}
	*known = next
	return all
}

func parseSection(text string) *parsed {
	p := &parsed{section: haproxycfg.Split(text)[0]}
	p.findings = haproxycfg.Parse(p.section)
	n := 0
	for line := range strings.Lines(text) {
		n++
		words, err := haproxycfg.Fields(line)
		switch {
		case err != nil || len(words) == 0:
		case n == p.section.Header && p.section.Kind != "":
			p.inherits(words)
		default:
			p.declares(words)
			p.refs = append(p.refs, referencesOf(n, words)...)
		}
	}
	return p
}

// inherits notes the defaults section that a header names.
func (p *parsed) inherits(words []string) {
	switch p.section.Kind {
	case "frontend", "backend", "listen", "defaults":
		if len(words) > 3 && words[2] == "from" && fixed(words[3]) {
			p.refs = append(p.refs, reference{"defaults", words[3], p.section.Header})
		}
	}
}

// declares notes the things that other lines may refer to.
func (p *parsed) declares(words []string) {
	switch {
	case words[0] == ".if":
		p.conditional = true
	case words[0] == "disabled":
		p.disabled = true
	case words[0] == "stick-table":
		p.tables = append(p.tables, p.section.Name)
	case words[0] == "table" && p.section.Kind == "peers" && len(words) > 1:
		p.tables = append(p.tables, p.section.Name+"/"+words[1])
	}
}

// skips reports whether HAProxy may ignore a reference: in a disabled section, or in a
// defaults section that no proxy uses. HAProxy always reads the files and the defaults that
// a defaults section names.
func (p *parsed) skips(r reference) bool {
	return p.disabled || p.section.Kind == "defaults" && r.kind != "file" && r.kind != "defaults"
}

// placed is a section in the configuration.
type placed struct {
	*parsed
	line int // of the first line
}

func (p *placed) String() string { return sectionName(p.section.Kind, p.section.Name) }

// sectionKey names a section.
type sectionKey struct{ kind, name string }

func sectionName(kind, name string) string { return strings.TrimSpace(kind + " " + name) }
