package haproxymodel

import (
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// line is a line of a section in words.
type line struct {
	Line
	words []string
	exact string // the words in one string: lines are equal where this is
}

// separator stands between words, and mark before what must not be taken for
// the plain character: NUL is no part of a word unless it comes in pairs.
const (
	separator = "\x00 "
	expands   = "\x00$" // a variable that HAProxy replaces
	nul       = "\x00\x00"
)

// cut cuts a line into words as [haproxycfg.Fields] does, with two marks that
// Fields has not: for the dollar sign of a variable, which only counts within
// double quotes, and for NUL. end is the length of the line without its comment.
func cut(text string) (words []string, end int, err error) {
	if strings.IndexAny(text, "\"'\\#\x00") < 0 {
		words, err = haproxycfg.Fields(text)
		return words, len(text), err
	}
	words, err = haproxycfg.Fields(text)
	if err != nil {
		return nil, len(text), err
	}
	end, marked := scan(text)
	if !marked {
		return words, end, nil
	}
	if end == len(text) { // without a comment behind it, Fields takes this for a line end
		return markedWords(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")), end, nil
	}
	return markedWords(text[:end]), end, nil
}

// scan finds the end of a line without its comment, and whether it has
// something to mark. The line has no syntax error.
func scan(text string) (end int, marked bool) {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == 0, c == '$' && quote == '"', strings.HasPrefix(text[i:], `\x00`):
			marked = true
		case c == '\\' && quote != '\'':
			if i+1 < len(text) && escapable(text[i+1], quote) {
				i++
			}
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		case c == '#' && quote == 0:
			return i, marked
		}
	}
	return len(text), marked
}

// escapable reports characters that stand for themselves after a backslash.
func escapable(c, quote byte) bool {
	switch c {
	case '\\', '"', '\'', '#', ' ', '\t':
		return true
	case '$':
		return quote == '"'
	}
	return false
}

// markedWords cuts a line without comment and without syntax error by cutting
// it once more with a plain word in place of each mark.
func markedWords(text string) []string {
	const variable, zero = "\x02v\x02", "\x02z\x02"
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == 2:
			b.WriteString("\x02\x02")
			continue
		case c == 0:
			b.WriteString(zero)
			continue
		case c == '$' && quote == '"':
			b.WriteString(variable)
			continue
		case c == '\\' && quote != '\'':
			switch {
			case strings.HasPrefix(text[i:], `\x00`):
				b.WriteString(zero)
				i += 3
				continue
			case strings.HasPrefix(text[i:], `\x02`):
				b.WriteString("\x02\x02")
				i += 3
				continue
			case i+1 < len(text) && escapable(text[i+1], quote):
				b.WriteByte(c)
				i++
				c = text[i]
			}
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		}
		b.WriteByte(c)
	}
	words, _ := haproxycfg.Fields(b.String() + " ") // so that the end is not trimmed
	back := strings.NewReplacer("\x02\x02", "\x02", variable, expands, zero, nul)
	for i, w := range words {
		words[i] = back.Replace(w)
	}
	return words
}

// sameText reports whether two values of a field are the same words for
// HAProxy: client-native keeps quotes and escapes as they stand in the text.
func sameText(a, b string) bool {
	if a == b {
		return true
	}
	if strings.IndexAny(a, "\"'\\") < 0 && strings.IndexAny(b, "\"'\\") < 0 {
		return false
	}
	left, endA, errA := cut(a)
	right, endB, errB := cut(b)
	return errA == nil && errB == nil && endA == len(a) && endB == len(b) &&
		strings.Join(left, separator) == strings.Join(right, separator)
}
