package render

import (
	"slices"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
)

// CurrentConfig shows templates the deployed configuration. An earlier decision, such as the
// spare server that an endpoint got, can thus survive into the next render. [Templates]
// provides it as the variable currentConfig ([HostVars]). It is nil as long as no deployed
// configuration is known. All methods answer for nil, too.
//
// A change of it triggers no render. A template that prints what it read here is stable
// after one render.
type CurrentConfig struct {
	config *previous
	note   func(key, revision any)
}

// CurrentServer is one server line of the deployed configuration.
type CurrentServer struct {
	Name     string
	Address  string   // as the line has it: "192.0.2.1:80"
	Disabled bool     // "disabled" stands on its line
	Options  []string // the words behind the address
}

// CurrentSection is a section of the deployed configuration.
type CurrentSection struct {
	Kind, Name string
	Lines      [][]string // its words, line by line, without the header, comments and empty lines
}

// Sections returns the names of the sections of a kind, such as "backend", in their order. A
// section without a name has "".
func (c *CurrentConfig) Sections(kind string) []string {
	if c == nil {
		return nil
	}
	c.noted(question{op: askNames, kind: kind})
	return slices.Clone(c.config.names[kind]) // a template may sort it
}

// Section returns a section, nil if there is none. Sections of the same kind and name are
// one, as HAProxy takes several global sections.
func (c *CurrentConfig) Section(kind, name string) *CurrentSection {
	parts := c.section(kind, name)
	if len(parts) == 0 {
		return nil
	}
	s := &CurrentSection{Kind: kind, Name: name}
	for _, part := range parts {
		s.Lines = append(s.Lines, part.Lines("")...)
	}
	return s
}

// Servers returns the servers of a section, such as the backend of that name,
// in their order.
func (c *CurrentConfig) Servers(kind, name string) []CurrentServer {
	var servers []CurrentServer
	for _, part := range c.section(kind, name) {
		for _, words := range part.Lines("server") {
			if len(words) < 3 {
				continue
			}
			s := CurrentServer{Name: words[1], Address: words[2], Options: words[3:]}
			for _, w := range s.Options {
				if w == "disabled" || w == "enabled" { // the last one counts
					s.Disabled = w == "disabled"
				}
			}
			servers = append(servers, s)
		}
	}
	return servers
}

// File returns the content of a file of the deployed configuration, "" if there is none. The
// kinds are those of [PathResolver.Path]. Any other kind ends the render.
func (c *CurrentConfig) File(kind, name string) string {
	k, err := fileKind(kind)
	if err != nil {
		panic(err)
	}
	if c == nil {
		return ""
	}
	return c.noted(question{askFile, string(k), name})
}

// section returns the parts of a section: several if the configuration has it more than
// once.
func (c *CurrentConfig) section(kind, name string) []dataplane.Section {
	if c == nil {
		return nil
	}
	q := question{askSection, kind, name}
	c.noted(q)
	return c.config.sections[q]
}

// noted answers a question, and notes the answer as its revision.
func (c *CurrentConfig) noted(q question) string {
	a := c.config.answer(q)
	c.note(q, a)
	return a
}

// answer returns the current answer to a noted question, nil without a configuration.
func (c *CurrentConfig) answer(noted any) any {
	if c == nil {
		return nil
	}
	return c.config.answer(noted.(question))
}

// question is something that a template can ask about the deployed configuration.
type question struct {
	op         askOp
	kind, name string
}

type askOp int

const (
	askSection askOp = iota
	askNames
	askFile
)

// previous is a deployed configuration. The first question cuts it into sections. It never
// changes.
type previous struct {
	config   *dataplane.Config
	once     sync.Once
	sections map[question][]dataplane.Section
	names    map[string][]string // of sections, by kind
}

func newPrevious(cfg *dataplane.Config) *previous {
	if cfg == nil {
		return nil
	}
	return &previous{config: cfg}
}

func (p *previous) index() {
	p.sections, p.names = map[question][]dataplane.Section{}, map[string][]string{}
	for _, s := range p.config.Sections() {
		if s.Kind == "" {
			continue
		}
		q := question{askSection, s.Kind, s.Name}
		if len(p.sections[q]) == 0 {
			p.names[s.Kind] = append(p.names[s.Kind], s.Name)
		}
		p.sections[q] = append(p.sections[q], s)
	}
}

// answer returns the answer to a question as one text. Two answers are the same exactly if
// their texts are.
func (p *previous) answer(q question) string {
	p.once.Do(p.index)
	switch q.op {
	case askFile:
		f, _ := p.config.File(dataplane.FileKind(q.kind), q.name)
		return string(f.Content)
	case askNames:
		return strings.Join(p.names[q.kind], "\n")
	}
	parts := p.sections[q]
	if len(parts) == 1 { // nearly always
		return parts[0].Text
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}
