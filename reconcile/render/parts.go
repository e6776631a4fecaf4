package render

import (
	"slices"
	"strings"
)

// partsOf puts the texts of a configuration one behind the other. Each begins on a line of
// its own, because its template was escaped for that. A part is the text of one item. Empty
// lines in front of a section go to the part before: a section begins with its header or the
// comments above it. An unchanged text gives the same string in the next render.
func partsOf(pieces []piece) []string {
	var chunks []*chunk
	for _, p := range pieces {
		chunks = append(chunks, p.chunks...)
	}
	n, next, last := 1, "", true
	for _, c := range slices.Backward(chunks) {
		if first, ok := c.first(); ok {
			n += len(c.partsBefore(next, last))
			next, last = first.string[:first.lead], false
		}
	}
	parts := make([]string, 0, n)
	if next != "" {
		parts = append(parts, next)
	}
	for _, c := range chunks {
		if _, ok := c.first(); ok {
			parts = append(parts, c.parts...)
		}
	}
	return parts
}

// first returns the first text that is not empty.
func (c *chunk) first() (*text, bool) {
	for _, t := range c.texts {
		if t.string != "" {
			return t, true
		}
	}
	return nil, false
}

// partsBefore returns the parts of a chunk. next is the lead of the text behind it; last: none
// is behind it.
func (c *chunk) partsBefore(next string, last bool) []string {
	if c.parts != nil && c.next == next && c.last == last {
		return c.parts
	}
	parts, behind := make([]string, 0, len(c.texts)), (*text)(nil)
	for _, t := range c.texts {
		if t.string == "" {
			continue
		}
		if behind != nil {
			parts = append(parts, behind.part(t.string[:t.lead]))
		}
		behind = t
	}
	if last {
		parts = append(parts, behind.string[behind.lead:])
	} else {
		parts = append(parts, behind.part(next))
	}
	c.parts, c.next, c.last = parts, next, last
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
		n += len(line)
		if word == "" {
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
	for _, t := range m.all() {
		n += len(t.string) + 1
	}
	m.content = make([]byte, 0, n)
	for _, t := range m.all() {
		if k := len(m.content); k > 0 && t.string != "" && !plain && m.content[k-1] != '\n' {
			m.content = append(m.content, '\n')
		}
		m.content = append(m.content, t.string...)
	}
	return m.content
}
