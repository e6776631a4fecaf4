package validate

import (
	"fmt"
	"maps"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// parsed is what phase 1 knows of the text of one section. Lines count from 1
// within the section, so that it holds wherever the section stands.
type parsed struct {
	section     haproxycfg.Section
	findings    []haproxycfg.Finding
	refs        []reference
	conditional bool     // has .if blocks
	disabled    bool     // HAProxy follows no reference of it
	tables      []string // names of stick tables
	servers     []string
	template    bool // has servers that no line shows
}

// maxWords is how many words HAProxy takes on a line (MAX_LINE_ARGS).
const maxWords = 64

func parseSection(text string) *parsed {
	p := &parsed{section: haproxycfg.Split(text)[0]}
	p.findings = haproxycfg.Parse(p.section)
	n := 0
	for line := range strings.Lines(text) {
		n++
		words, err := haproxycfg.Fields(line)
		if len(words) > maxWords {
			p.findings = append(p.findings, haproxycfg.Finding{Line: n, Text: strings.TrimSpace(line),
				Message: fmt.Sprintf("%d words, and HAProxy reads no more than %d of a line", len(words), maxWords)})
		}
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

// declares notes what other lines may refer to.
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
	case words[0] == "server" && len(words) > 1:
		p.servers = append(p.servers, words[1])
	case words[0] == "server-template":
		p.template = true
	}
}

// skips reports whether HAProxy may leave a reference alone: perhaps no proxy
// uses a defaults section, of which HAProxy reads only the files at once.
func (p *parsed) skips(r reference) bool {
	return p.disabled || p.section.Kind == "defaults" && r.kind != "file" && r.kind != "defaults"
}

// memo remembers what was made of the texts of the last configuration, so that
// the next one costs what changed in it.
type memo[T any] struct {
	known map[string]*memory[T]
	round int
}

type memory[T any] struct {
	made  T
	round int
}

// of returns what parse makes of a text. It keeps a copy of the text, which
// would else keep the whole configuration.
func (m *memo[T]) of(text string, parse func(string) T) T {
	r := m.known[text]
	if r == nil {
		text = strings.Clone(text)
		if m.known == nil {
			m.known = map[string]*memory[T]{}
		}
		r = &memory[T]{made: parse(text)}
		m.known[text] = r
	}
	r.round = m.round
	return r.made
}

// turn forgets the texts that nothing asked for since the last turn.
func (m *memo[T]) turn() {
	maps.DeleteFunc(m.known, func(_ string, r *memory[T]) bool { return r.round != m.round })
	m.round++
}
