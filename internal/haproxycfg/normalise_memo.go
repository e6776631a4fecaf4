package haproxycfg

import (
	"maps"
	"slices"
	"strings"
)

// Normaliser is [Normalise] for texts that differ little from call to call: it
// parses only backends that are new or changed, and sections of other kinds. It
// remembers the backends of the last text. The zero value is ready; it is not
// safe for concurrent use.
type Normaliser struct {
	known map[backendText]string // the normal form of each backend
	text  string                 // the last one
	out   string                 // and its normal form
}

// backendText is what the normal form of a backend depends on.
type backendText struct {
	defaults string // the names of the defaults sections above it, the last of which it gets as "from"
	text     string
}

// Normalise returns what [Normalise] returns.
func (n *Normaliser) Normalise(text string) (out string, err error) {
	if n.text == text && text != "" {
		return n.out, nil
	}
	sections := Split(text)
	if !separable(sections) || !n.byParts(text, sections) {
		*n = Normaliser{}
		if n.out, err = Normalise(text); err != nil { // with the lines of the caller
			return "", err
		}
	}
	n.text = text
	return n.out, nil
}

// separable reports whether sections can be parsed apart. The parser moves a
// comment at the start of a line from the end of one section to the next. It moves
// a global section to the top, and a comment in the first line, too.
func separable(sections []Section) bool {
	backends := false
	for i, s := range sections {
		backends = backends || s.Kind == "backend"
		switch {
		case i == 0 && s.Kind == "backend" && s.Line != s.Header,
			backends && (s.Kind == "global" || s.Kind == "crt-store"),
			s.Kind == "defaults" && s.Name == "from",
			s.Kind == "backend" && (s.Name == "" || strings.ContainsFunc(s.Name, func(r rune) bool { return !nameRune(r) })),
			strings.Contains(s.Text, "config-snippet"):
			return false
		}
		line := s.Line
		for text := range strings.Lines(s.Text) {
			if line > s.Header && text[0] == '#' {
				return false
			}
			line++
		}
	}
	return true
}

// byParts normalises the new parts of a text and puts them together with those
// that are known. It reports whether it could.
func (n *Normaliser) byParts(text string, sections []Section) bool {
	if checkText(text, directives(text)) != nil {
		return false
	}
	var parts strings.Builder
	if len(sections) > 0 && sections[0].Kind == "backend" {
		parts.WriteByte('\n') // so that what follows is not the first line
	}
	backends := make(map[string]backendText)
	defaults := ""
	for _, s := range sections {
		if s.Kind == "defaults" {
			defaults += s.Name + "\n"
		}
		b := backendText{defaults, s.Text}
		if s.Kind == "backend" {
			backends[s.Name] = b
		}
		if _, ok := n.known[b]; !ok || s.Kind != "backend" {
			parts.WriteString(s.Text)
		}
	}
	out, err := Normalise(parts.String())
	if err != nil {
		return false
	}
	known := make(map[backendText]string, len(backends))
	for _, b := range backends {
		if normal, ok := n.known[b]; ok {
			known[b] = normal
		}
	}
	var above, below strings.Builder
	for _, s := range Split(out) {
		switch {
		case s.Kind == "backend":
			known[backends[s.Name]] = strings.TrimRight(s.Text, "\n") + "\n"
		case sectionKinds[s.Kind].below:
			below.WriteString(s.Text)
		default:
			above.WriteString(s.Text)
		}
	}
	if len(known) != len(backends) {
		return false // the parser sees other backends than we do
	}
	n.known = known
	n.out = join(above.String(), below.String(), backends, known)
	return true
}

func join(above, below string, backends map[string]backendText, known map[backendText]string) string {
	var b strings.Builder
	if above = strings.TrimRight(above, "\n"); above != "" {
		b.WriteString(above + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(backends)) {
		b.WriteString("\n" + known[backends[name]])
	}
	if below != "" {
		b.WriteString("\n" + below)
	}
	return b.String()
}
