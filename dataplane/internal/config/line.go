package config

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Line is a line of configuration, neither empty nor a comment.
type Line struct {
	Words []string // nil if the line cannot be cut into words
	Raw   string   // without surrounding blanks
	same  string   // equal for lines that mean the same to HAProxy
}

// Lines returns the lines of a section below its header, except empty ones and comments.
func (s *Section) Lines() []Line {
	if lines := s.learnt.lines.Load(); lines != nil {
		return *lines
	}
	return s.readLines()
}

// KeptLines is [Section.Lines] for sections that are read often, such as defaults. It keeps
// the result, some 3 kB for each section.
func (s *Section) KeptLines() []Line {
	lines := s.learnt.lines.Load()
	if lines == nil {
		read := s.readLines()
		lines = &read
		s.learnt.lines.Store(lines)
	}
	return *lines
}

func (s *Section) readLines() []Line {
	lines := make([]Line, 0, strings.Count(s.Text, "\n"))
	n := -1
	for raw := range strings.Lines(s.Text) {
		n++
		if n == s.comments && s.Kind != "" {
			continue
		}
		if text := trimBlanks(raw); text != "" && text[0] != '#' {
			lines = append(lines, NewLine(text))
		}
	}
	return lines
}

// trimBlanks removes the blanks around a line. It keeps blanks at the end that a backslash
// makes part of the last word.
func trimBlanks(raw string) string {
	raw = strings.Trim(raw, "\r\n")
	text := strings.Trim(raw, " \t")
	if strings.HasSuffix(text, `\`) {
		return strings.TrimLeft(raw, " \t")
	}
	return text
}

// asWritten marks lines that are compared as they are written. No word starts with it.
const asWritten = "\x00\n"

// NewLine reads one line without blanks around it.
func NewLine(raw string) Line {
	l := Line{Raw: raw}
	words, err := haproxycfg.Fields(raw)
	switch {
	case err != nil:
		l.same = asWritten + raw
	case strings.ContainsRune(raw, '$') || strings.Contains(raw, `\x00`):
		// The quotes decide whether a variable is expanded, and the words no longer show the
		// quotes. A zero byte ends the word in HAProxy.
		quoted, _ := haproxycfg.RawFields(raw) // cannot fail, because Fields did not
		l.Words, l.same = words, asWritten+strings.Join(quoted, "\x00")
	default:
		l.Words, l.same = words, strings.Join(words, "\x00")
	}
	return l
}

// Equal reports whether HAProxy reads both lines the same way.
func (l Line) Equal(other Line) bool { return l.same == other.same }

// Word returns a word, counted from 0, or "" if there is none.
func (l Line) Word(i int) string {
	if i < len(l.Words) {
		return l.Words[i]
	}
	return ""
}

// Keyword returns the first word.
func (l Line) Keyword() string { return l.Word(0) }

// Expands reports whether the line has a variable. HAProxy may then read other words.
func (l Line) Expands() bool { return strings.ContainsRune(l.Raw, '$') }

// Show returns the line for people, without secrets.
func (l Line) Show() string { return strings.Join(l.ShowWords(), " ") }

// ShowWords returns the words for people, without secrets: everything after a word that
// announces a secret is one "(secret)".
func (l Line) ShowWords() []string {
	if l.Words == nil {
		return []string{haproxycfg.Redact(l.Raw)}
	}
	shown := haproxycfg.RedactWords(l.Words)
	if !l.Expands() {
		return shown
	}
	quoted, _ := haproxycfg.RawFields(l.Raw) // the quotes matter here
	for i, w := range shown {
		if w != l.Words[i] {
			quoted[i] = w
		}
	}
	return quoted[:len(shown)]
}

// RedactValue hides a value if one of the names of its field or place announces a secret.
func RedactValue(value string, names ...string) string {
	if value != "" && slices.ContainsFunc(names, SpeaksOfSecrets) {
		return haproxycfg.Secret
	}
	return value
}

// SpeaksOfSecrets is [haproxycfg.NamesSecret] for names of files and fields. It also matches
// "auth", because such names say less: the entries of "auth.map" are as secret as those of
// "tokens.map".
func SpeaksOfSecrets(name string) bool {
	return haproxycfg.NamesSecret(name) || strings.Contains(strings.ToLower(name), "auth")
}
