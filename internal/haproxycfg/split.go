package haproxycfg

import (
	"hash/maphash"
	"iter"
	"strings"
)

// Section is one section of a configuration as it stands in the text.
type Section struct {
	Kind   string // "global", "backend", ...; "" for what stands before the first header
	Name   string // "" for sections without a name
	Line   int    // number of the first line of Text in the whole text, from 1
	Header int    // number of the line with the header; Line if there is no header
	Text   string // part of the text, not a copy
	Hash   uint64 // hash of Text, good within this process; compare Text where hashes are equal
}

// seed never changes while the process lives, so that hashes of different
// calls of Split compare.
var seed = maphash.MakeSeed()

// Split cuts a configuration into sections, in the order of the text. Joining
// their texts gives the same bytes, whatever the input. What stands before the
// first header is a section of kind "". Comment lines directly above a header,
// with no empty line between, belong to that header's section: generated
// comments come and go with what they describe.
//
// A header is a line whose first word is a section keyword of HAProxy 2.6 to
// 3.2, at any indentation, as HAProxy itself decides. Unknown sections of newer
// versions become part of the section before.
func Split(text string) []Section {
	sections := make([]Section, 0, len(text)/300+8) // which they often are, and more make it grow
	for s := range Sections(text) {
		sections = append(sections, s)
	}
	return sections
}

// Sections yields the sections of [Split], and reads no further than to the
// header behind the one that it yields. From the start of any section on it
// yields the same ones, but for the numbers of their lines.
func Sections(text string) iter.Seq[Section] {
	return func(yield func(Section) bool) { cut(text, yield) }
}

// cut goes through the lines of a text until yield has had enough.
func cut(text string, yield func(Section) bool) {
	current := Section{Line: 1, Header: 1}
	start := 0                    // of the current section
	comment, commentLine := -1, 0 // start of the comment lines directly above
	line := 0
	for pos := 0; pos < len(text); {
		line++
		end := len(text)
		if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		first := pos
		for first < end && (text[first] == ' ' || text[first] == '\t') {
			first++
		}
		switch {
		case first < end && text[first] == '#':
			if comment < 0 {
				comment, commentLine = pos, line
			}
		default:
			if kind, name, ok := header(text[first:end]); ok { // few lines do
				next := Section{Kind: kind, Name: name, Line: line, Header: line}
				border := pos
				if comment >= 0 {
					border, next.Line = comment, commentLine
				}
				if !yieldSection(yield, current, text[start:border]) {
					return
				}
				current, start = next, border
			}
			comment = -1
		}
		pos = end
	}
	yieldSection(yield, current, text[start:])
}

// yieldSection hands a section on, unless it is nothing: what stands before a
// header in the first line.
func yieldSection(yield func(Section) bool, s Section, text string) (more bool) {
	if text == "" {
		return true
	}
	s.Text, s.Hash = text, maphash.String(seed, text)
	return yield(s)
}

// header reports whether a line, without its leading blanks, opens a section.
func header(line string) (kind, name string, ok bool) {
	if line == "" || !mayOpen[line[0]] {
		return "", "", false
	}
	end := 0
	for end < len(line) && !wordEnd[line[end]] {
		end++
		if end > maxKeyword {
			return "", "", false
		}
	}
	// HAProxy removes quotes and backslashes before it looks at the keyword.
	if end < len(line) && (line[end] == '"' || line[end] == '\'' || line[end] == '\\') {
		words, _ := Fields(line)
		if len(words) == 0 || !isSection(words[0]) {
			return "", "", false
		}
		return words[0], second(words), true
	}
	if !isSection(line[:end]) {
		return "", "", false
	}
	from := end
	for from < len(line) && isBlank(line[from]) {
		from++
	}
	to := from
	for to < len(line) && !wordEnd[line[to]] {
		to++
	}
	if to == len(line) || isBlank(line[to]) || line[to] == '\r' || line[to] == '\n' {
		return line[:end], line[from:to], true
	}
	words, _ := Fields(line) // the name has quotes, or a comment follows at once
	return line[:end], second(words), true
}

func second(words []string) string {
	if len(words) < 2 {
		return ""
	}
	return words[1]
}

// mayOpen spares most lines a closer look: section keywords start with these
// letters, or in quotes.
var mayOpen = [256]bool{
	'a': true, 'b': true, 'c': true, 'd': true, 'f': true, 'g': true, 'h': true, 'l': true, 'm': true, 'p': true,
	'r': true, 't': true, 'u': true, '"': true, '\'': true, '\\': true,
}

// maxKeyword is the length of the longest section keyword, log-forward.
const maxKeyword = 11

// wordEnd tells the characters that end a keyword.
var wordEnd = [256]bool{' ': true, '\t': true, '\r': true, '\n': true, '#': true, '"': true, '\'': true, '\\': true}

func isSection(word string) bool {
	switch word {
	case "global", "defaults", "frontend", "backend", "listen",
		"peers", "resolvers", "mailers", "userlist", "program", "cache",
		"http-errors", "ring", "log-forward", "fcgi-app",
		"crt-store", "traces", "log-profile", "acme":
		return true
	}
	return false
}
