package haproxycfg

import (
	"cmp"
	"slices"
	"strings"
)

// Normaliser is [Normalise] for texts that differ little from call to call. It remembers the
// sections of the last text, and parses only new or changed backends and all other sections.
// The zero value is ready; it is not safe for concurrent use.
type Normaliser struct{ last []*memo }

// memo is a section of the last text, in its order.
type memo struct {
	text, kind, name string
	defaults         string // names of the defaults sections above it; it gets the last one as "from"
	apart            bool   // it can be parsed separately
	comments         bool   // it has comments above its header
	normal           string // for a backend: its normal form and an empty line
}

// Normalise returns what [Normalise] returns.
func (n *Normaliser) Normalise(text string) (string, error) {
	parts, err := n.Sections(Texts(text))
	return strings.Join(parts, ""), err
}

// Sections is Normalise for a text in sections, each as [Split] cuts it. It returns parts of
// whole sections. Sections that share their memory with those of the last text cost next to
// nothing.
func (n *Normaliser) Sections(sections []string) (parts []string, err error) {
	now := n.match(sections)
	if separable(now) {
		if parts, ok := byParts(now); ok {
			n.last = now
			return parts, nil
		}
	}
	n.last = nil
	out, err := Normalise(strings.Join(sections, "")) // with the line numbers of the caller
	return Texts(out), err
}

// match returns the memos of the sections, and takes those of the last text if it can.
func (n *Normaliser) match(sections []string) []*memo {
	same := 0 // number of equal sections at the beginning
	for same < min(len(n.last), len(sections)) && n.last[same].text == sections[same] {
		same++
	}
	end := 0 // and at the end
	for end < min(len(n.last), len(sections))-same && n.last[len(n.last)-1-end].text == sections[len(sections)-1-end] {
		end++
	}
	between := map[string]*memo{}
	for _, m := range n.last[same : len(n.last)-end] {
		between[m.text] = m
	}
	now := make([]*memo, len(sections))
	defaults := ""
	for i, text := range sections {
		m := between[text]
		switch {
		case i < same:
			m = n.last[i]
		case i >= len(sections)-end:
			m = n.last[len(n.last)-len(sections)+i]
		}
		if m == nil || m.defaults != defaults {
			m = newMemo(text, defaults)
		}
		now[i] = m
		if m.kind == "defaults" {
			defaults += m.name + "\n"
		}
	}
	return now
}

// newMemo reads one section. The parser moves a comment at the start of a line from the end
// of one section to the next.
func newMemo(text, defaults string) *memo {
	raws := Split(text)
	s := raws[0]
	m := &memo{text: text, kind: s.Kind, name: s.Name, defaults: defaults, comments: s.Line != s.Header}
	m.apart = len(raws) == 1 && !strings.Contains(text, "config-snippet")
	switch s.Kind {
	case "defaults":
		m.apart = m.apart && s.Name != "from"
	case "backend":
		m.apart = m.apart && s.Name != "" && s.Name != "from" && !strings.ContainsFunc(s.Name, func(r rune) bool { return !nameRune(r) })
	}
	line := s.Line
	for text := range strings.Lines(text) {
		m.apart = m.apart && (line <= s.Header || text[0] != '#')
		line++
	}
	return m
}

// separable reports whether the sections can be parsed separately. The parser moves these to
// the top: a comment in the first line, global sections, and defaults above proxies without
// any.
func separable(sections []*memo) bool {
	backends, bare := false, false
	for i, m := range sections {
		switch {
		case !m.apart,
			i == 0 && m.kind == "backend" && m.comments,
			backends && (m.kind == "global" || m.kind == "crt-store"),
			bare && m.kind == "defaults":
			return false
		}
		if m.kind == "backend" {
			backends, bare = true, bare || m.defaults == ""
		}
	}
	return true
}

// byParts normalises the sections whose normal form is unknown, and joins them with the
// others. It reports whether it could.
func byParts(sections []*memo) (parts []string, ok bool) {
	var text strings.Builder
	if len(sections) > 0 && sections[0].kind == "backend" {
		text.WriteByte('\n') // an empty first line
	}
	var backends []*memo
	fresh := map[string]*memo{}
	for _, m := range sections {
		if m.normal == "" {
			text.WriteString(m.text)
		}
		if m.kind == "backend" {
			backends = append(backends, m)
			if m.normal == "" {
				fresh[m.name] = m
			}
		}
	}
	out, err := Normalise(text.String())
	if err != nil {
		return nil, false
	}
	var above, below strings.Builder
	for _, s := range Split(out) {
		switch m := fresh[s.Name]; {
		case s.Kind == "backend" && m == nil:
			return nil, false // the parser finds other backends than we do
		case s.Kind == "backend":
			m.normal = strings.TrimRight(s.Text, "\n") + "\n\n"
		case sectionKinds[s.Kind].below:
			below.WriteString(s.Text)
		default:
			above.WriteString(s.Text)
		}
	}
	return join(strings.TrimRight(above.String(), "\n"), below.String(), backends)
}

// join puts the backends, sorted by name, between the sections above and below them. It puts
// an empty line after each except the last.
func join(above, below string, backends []*memo) (parts []string, ok bool) {
	if above != "" {
		above += "\n"
	}
	if len(backends) > 0 || below != "" {
		above += "\n"
	}
	parts = Texts(above)
	slices.SortFunc(backends, func(a, b *memo) int { return cmp.Compare(a.name, b.name) })
	for i, m := range backends {
		if m.normal == "" || i > 0 && m.name == backends[i-1].name {
			return nil, false
		}
		parts = append(parts, m.normal)
	}
	if last := len(parts) - 1; below == "" && len(backends) > 0 {
		parts[last] = strings.TrimSuffix(parts[last], "\n")
	}
	return append(parts, Texts(below)...), true
}
