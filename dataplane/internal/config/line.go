package config

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Line is a line of configuration that means something.
type Line struct {
	Words []string // nil where the line cannot be cut into words
	Raw   string   // without surrounding blanks
	same  string   // equal for lines that HAProxy reads the same way
}

// Lines returns the lines of a section below its header, but for empty ones and
// comments.
func (s *Section) Lines() []Line {
	if lines := s.learnt.lines.Load(); lines != nil {
		return *lines
	}
	return s.readLines()
}

// KeptLines is [Section.Lines] for sections that are read again and again, as
// defaults are. It takes some 3 kB for each.
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
		if n++; n == s.comments && s.Kind != "" {
			continue
		}
		if text := trimBlanks(raw); text != "" && text[0] != '#' {
			lines = append(lines, NewLine(text))
		}
	}
	return lines
}

// trimBlanks removes the blanks around a line, but not one at its end that a
// backslash makes part of the last word.
func trimBlanks(raw string) string {
	raw = strings.Trim(raw, "\r\n")
	text := strings.Trim(raw, " \t")
	if strings.HasSuffix(text, `\`) {
		return strings.TrimLeft(raw, " \t")
	}
	return text
}

// asWritten marks lines that compare as they are written. No word starts with it.
const asWritten = "\x00\n"

// NewLine reads one line without blanks around it.
func NewLine(raw string) Line {
	l := Line{Raw: raw}
	words, err := haproxycfg.Fields(raw)
	switch {
	case err != nil:
		l.same = asWritten + raw
	case strings.ContainsRune(raw, '$') || strings.Contains(raw, `\x00`):
		// The quotes decide whether a variable is expanded, and the words no longer
		// show them. A zero byte ends the word in HAProxy.
		quoted, _ := haproxycfg.RawFields(raw) // without error, as the words are
		l.Words, l.same = words, asWritten+strings.Join(quoted, "\x00")
	default:
		l.Words, l.same = words, strings.Join(words, "\x00")
	}
	return l
}

// Equal reports whether HAProxy reads both lines the same way.
func (l Line) Equal(other Line) bool { return l.same == other.same }

// Word returns a word, counted from 0, or "" where there is none.
func (l Line) Word(i int) string {
	if i < len(l.Words) {
		return l.Words[i]
	}
	return ""
}

// Keyword returns the first word.
func (l Line) Keyword() string { return l.Word(0) }

// Expands reports whether the words may not be what HAProxy reads, because the
// line has a variable.
func (l Line) Expands() bool { return strings.ContainsRune(l.Raw, '$') }

// Show returns the line for people, without secrets.
func (l Line) Show() string { return strings.Join(l.ShowWords(), " ") }

// ShowWords returns the words for people, without secrets: what follows a word
// that announces a secret is one "(secret)".
func (l Line) ShowWords() []string {
	if l.Words == nil {
		return []string{haproxycfg.Redact(l.Raw)}
	}
	shown := haproxycfg.RedactWords(l.Words)
	if !l.Expands() {
		return shown
	}
	quoted, _ := haproxycfg.RawFields(l.Raw) // the quotes tell something
	for i, w := range shown {
		if w != l.Words[i] {
			quoted[i] = w
		}
	}
	return quoted[:len(shown)]
}

// RedactValue hides a value whose field or place speaks of secrets.
func RedactValue(value string, names ...string) string {
	if value != "" && slices.ContainsFunc(names, SpeaksOfSecrets) {
		return haproxycfg.Secret
	}
	return value
}

// SpeaksOfSecrets is [haproxycfg.NamesSecret] for names of files and fields, which say less:
// the entries of "auth.map" are no less secret than those of "tokens.map".
func SpeaksOfSecrets(name string) bool {
	return haproxycfg.NamesSecret(name) || strings.Contains(strings.ToLower(name), "auth")
}
