package render

import "strings"

// partsOf puts the texts of a configuration one behind the other. Each begins on a line of
// its own, because its template was escaped for that. A part is the text of one item. Empty
// lines in front of a section go to the part before: a section begins with its header or the
// comments above it. An unchanged text gives the same string in the next render.
func partsOf(pieces []piece) []string {
	n := 1
	for _, p := range pieces {
		n += len(p.texts)
	}
	parts := make([]string, 0, n)
	var last *text
	for _, p := range pieces {
		for _, t := range p.texts {
			switch {
			case t.string == "":
				continue
			case last != nil:
				parts = append(parts, last.part(t.string[:t.lead]))
			case t.lead > 0:
				parts = append(parts, t.string[:t.lead])
			}
			last = t
		}
	}
	if last != nil {
		parts = append(parts, last.string[last.lead:])
	}
	return parts
}

// part returns the text without its lead, which belongs to the part before. next is the lead
// of the text behind it, and becomes the end.
func (t *text) part(next string) string {
	body := t.string[t.lead:]
	if next == "" && strings.HasSuffix(body, "\n") {
		return body
	}
	if t.ended == "" || t.end != next {
		line := ""
		if !strings.HasSuffix(body, "\n") {
			line = "\n"
		}
		t.end, t.ended = next, body+line+next
	}
	return t.ended
}

// leadOf returns the length of what precedes the section at the beginning of a text. That is
// everything up to the last empty line, if only comments and empty lines stand there.
func leadOf(s string) int {
	n, lead := 0, 0
	for line := range strings.Lines(s) {
		word := strings.TrimLeft(line, " \t\r\n")
		if n += len(line); word == "" {
			lead = n
		} else if word[0] != '#' {
			return lead
		}
	}
	return 0
}

// fileContent joins the texts of a file. Each begins on a line of its own, unless the file
// is plain: HAProxy reads a plain file as a whole.
func (m *madeTexts) fileContent(plain bool) []byte {
	if m.content != nil {
		return m.content
	}
	n := 0
	for _, t := range m.texts {
		n += len(t.string) + 1
	}
	m.content = make([]byte, 0, n)
	for _, t := range m.texts {
		if k := len(m.content); k > 0 && t.string != "" && !plain && m.content[k-1] != '\n' {
			m.content = append(m.content, '\n')
		}
		m.content = append(m.content, t.string...)
	}
	return m.content
}
