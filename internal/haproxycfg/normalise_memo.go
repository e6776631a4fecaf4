package haproxycfg

import (
	"slices"
	"strconv"
	"strings"
)

// Normaliser is [Normalise] for texts that differ little from call to call: it
// parses only backends that are new or changed, and what is no backend. It
// remembers the backends of the last text. The zero value is ready; it is not
// safe for concurrent use.
type Normaliser struct {
	known map[backendText]string
	whole string // the last text
	out   string // and its result
}

// backendText is what the normalised form of a backend depends on.
type backendText struct {
	defaults string // the defaults section before it, which it gets as "from"
	text     string
}

// Normalise returns what [Normalise] returns.
func (n *Normaliser) Normalise(text string) (string, error) {
	if n.whole == text && text != "" {
		return n.out, nil
	}
	out, err := n.normalise(text)
	if err == nil {
		n.whole, n.out = text, out
	}
	return out, err
}

func (n *Normaliser) normalise(text string) (string, error) {
	if err := CheckRoundTrip(text); err != nil {
		return "", err
	}
	sections := Split(text)
	if !separable(sections) {
		n.known = nil
		return Normalise(text)
	}
	rest, names, backends := takeBackends(sections)
	normalRest := ""
	if strings.TrimSpace(rest) != "" {
		var err error
		if normalRest, err = Normalise(rest); err != nil {
			return Normalise(text) // whose error has the lines of the caller
		}
	}
	known := make(map[backendText]string, len(backends))
	var fresh []backendText
	for _, b := range backends {
		if out, ok := n.known[b]; ok {
			known[b] = out
		} else {
			fresh = append(fresh, b)
		}
	}
	if err := parseBackends(fresh, known); err != nil {
		return Normalise(text)
	}
	for _, b := range backends {
		if _, ok := known[b]; !ok { // the parser sees other backends than we do
			n.known = nil
			return Normalise(text)
		}
	}
	n.known = known
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	before, after := cutAtBackends(normalRest)
	var b strings.Builder
	b.Grow(len(text) + len(text)/4)
	b.WriteString(before)
	for _, i := range order {
		b.WriteByte('\n')
		b.WriteString(known[backends[i]])
	}
	b.WriteString(after)
	return b.String(), nil
}

// separable reports whether sections can be parsed apart: the parser moves a
// comment at the start of a line from the end of one section to the next, and
// one in the first line of all to the top.
func separable(sections []Section) bool {
	if len(sections) > 0 && sections[0].Kind == "backend" && sections[0].Line != sections[0].Header {
		return false
	}
	for _, s := range sections {
		if s.Kind == "defaults" && s.Name == "from" || s.Kind == "backend" && !plainName(s.Name) {
			return false
		}
		line, inBody := s.Line-1, false
		for text := range strings.Lines(s.Text) {
			line++
			if inBody && text[0] == '#' || strings.Contains(text, "config-snippet") {
				return false
			}
			inBody = inBody || line == s.Header
		}
	}
	return true
}

// plainName reports names that need no quotes, so that everybody reads the same.
func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("_-.:", c) < 0 {
			return false
		}
	}
	return name != ""
}

// takeBackends parts the backends from the rest of the text.
func takeBackends(sections []Section) (rest string, names []string, backends []backendText) {
	var b strings.Builder
	if len(sections) > 0 && sections[0].Kind == "backend" {
		b.WriteByte('\n') // so that what follows is not the first line
	}
	taken := map[string]bool{}
	defaults := ""
	for _, s := range sections {
		if s.Kind == "backend" {
			names = append(names, s.Name)
			backends = append(backends, backendText{defaults, s.Text})
			continue
		}
		b.WriteString(s.Text)
		if s.Kind != "defaults" {
			continue
		}
		defaults = s.Name
		for i := 1; defaults == ""; i++ { // as the parser names it
			if name := "unnamed_defaults_" + strconv.Itoa(i); !taken[name] {
				defaults = name
			}
		}
		taken[defaults] = true
	}
	return b.String(), names, backends
}

// parseBackends adds the normalised form of backends, without the blank line
// before it, to known. One pass of the parser does those with the same defaults.
func parseBackends(backends []backendText, known map[backendText]string) error {
	byDefaults := map[string][]backendText{}
	for _, b := range backends {
		byDefaults[b.defaults] = append(byDefaults[b.defaults], b)
	}
	for defaults, list := range byDefaults {
		var text strings.Builder
		text.WriteByte('\n') // so that what follows is not the first line
		if defaults != "" {
			text.WriteString("defaults " + defaults + "\n")
		}
		byName := make(map[string]backendText, len(list))
		for _, b := range list {
			text.WriteString(b.text)
			for _, s := range Split(b.text) {
				byName[s.Name] = b
			}
		}
		out, err := Normalise(text.String())
		if err != nil {
			return err
		}
		for _, s := range Split(out) {
			if s.Kind == "backend" {
				known[byName[s.Name]] = strings.TrimRight(s.Text, "\n") + "\n"
			}
		}
	}
	return nil
}

// cutAtBackends cuts a normalised text where its backends belong.
func cutAtBackends(text string) (before, after string) {
	sections := Split(text)
	i := slices.IndexFunc(sections, func(s Section) bool {
		return s.Kind == "listen" || s.Kind == "program" || s.Kind == "fcgi-app"
	})
	cut := len(text)
	if i >= 0 {
		cut = 0
		for _, s := range sections[:i] {
			cut += len(s.Text)
		}
	}
	before, after = strings.TrimRight(text[:cut], "\n"), text[cut:]
	if before != "" {
		before += "\n"
	}
	if after != "" {
		after = "\n" + after
	}
	return before, after
}
