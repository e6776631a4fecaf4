package haproxycfg

import "strings"

// Section is one section of a configuration as it stands in the text.
type Section struct {
	Kind   string // "global", "backend", ...; "" before the first header
	Name   string // "" for sections without a name
	Line   int    // number of the first line of Text in the whole text, from 1
	Header int    // number of the line with the header; Line if there is no header
	Text   string // slice of the text, not a copy
}

// Split cuts a configuration into sections, in the order of the text. Joining their texts
// gives the same bytes, for any input. Lines before the first header are a section of kind
// "". Comment lines directly above a header, without an empty line between, belong to the
// section of that header: a generated comment comes and goes with the section that it
// describes.
//
// A header is a line whose first word is a section keyword of HAProxy 2.6 to 3.2, at any
// indentation, as HAProxy itself decides. Unknown sections of newer versions become part of
// the section before.
func Split(text string) []Section {
	sections := make([]Section, 0, len(text)/300+8) // usually large enough
	current := Section{Line: 1, Header: 1}
	start := 0                    // start of the current section
	comment, commentLine := -1, 0 // start of the comment lines directly above
	end := func(at int) {
		current.Text = text[start:at]
		if current.Text != "" {
			sections = append(sections, current)
		}
		start = at
	}
	for line, pos := 1, 0; pos < len(text); line++ {
		next := len(text)
		if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
			next = pos + i + 1
		}
		first := pos
		for first < next && isBlank(text[first]) {
			first++
		}
		if first < next && text[first] == '#' {
			if comment < 0 {
				comment, commentLine = pos, line
			}
			pos = next
			continue
		}
		if kind, name, ok := header(text[first:next]); ok {
			border, from := pos, line
			if comment >= 0 {
				border, from = comment, commentLine
			}
			end(border)
			current = Section{Kind: kind, Name: name, Line: from, Header: line}
		}
		comment, pos = -1, next
	}
	end(len(text))
	return sections
}

// Texts returns the texts of the sections that [Split] cuts.
func Texts(text string) []string {
	sections := Split(text)
	texts := make([]string, len(sections))
	for i, s := range sections {
		texts[i] = s.Text
	}
	return texts
}

// Opens reports whether a text begins with a section: a whole header line, with comment
// lines, if any, directly above it.
func Opens(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if !strings.HasPrefix(line, "#") {
			_, _, ok := header(line)
			return ok && strings.HasSuffix(line, "\n")
		}
	}
	return false
}

// header reports whether a line, without its leading blanks, opens a section. Most lines do
// not, so it reads as few bytes as possible.
func header(line string) (kind, name string, ok bool) {
	end := 0
	for end < len(line) && !endsWord(line[end]) {
		end++
		if end > maxKeyword {
			return "", "", false
		}
	}
	// HAProxy removes quotes and backslashes before it looks at the keyword.
	quoted := end < len(line) && strings.IndexByte(`"'\`, line[end]) >= 0
	if !quoted && !isSection(line[:end]) {
		return "", "", false
	}
	if strings.IndexAny(line, "\"'\\#\r") < 0 { // the usual case
		name = strings.TrimLeft(line[end:], " \t")
		if next := strings.IndexAny(name, " \t\n"); next >= 0 {
			name = name[:next]
		}
		return line[:end], name, true
	}
	words, _ := Fields(line)
	if len(words) == 0 || !isSection(words[0]) {
		return "", "", false
	}
	if len(words) > 1 {
		name = words[1]
	}
	return words[0], name, true
}

// maxKeyword is the length of the longest section keywords, log-forward and
// http-errors.
const maxKeyword = 11

func endsWord(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', '#', '"', '\'', '\\':
		return true
	}
	return false
}
