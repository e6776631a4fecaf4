package haproxycfg

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrSyntax is wrapped by the errors of [Fields].
var ErrSyntax = errors.New("syntax error")

// Fields cuts one line of configuration into words by the rules of section 2.2 of HAProxy's
// configuration manual:
//
//   - Blanks separate words, except in quotes or after a backslash.
//   - A number sign outside of quotes starts a comment.
//   - Outside of single quotes, \n, \r, \t and \xNN stand for characters.
//   - Environment variables stay as they are.
//   - An empty pair of quotes is an empty word.
//
// An error wraps [ErrSyntax]. Fields then returns the words before the wrong one.
func Fields(line string) ([]string, error) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if strings.IndexAny(line, "\"'\\#") < 0 {
		return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }), nil // the usual case
	}
	return cutWords(line, false)
}

// RawFields cuts a line at the same places as [Fields], but leaves the quotes and backslashes
// in the words. They show which variables are expanded.
func RawFields(line string) ([]string, error) {
	return cutWords(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), true)
}

// cutWords cuts a line without its line feed.
func cutWords(line string, raw bool) ([]string, error) {
	var words []string
	for i := 0; ; {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) || line[i] == '#' {
			return words, nil
		}
		word, next, err := readWord(line, i)
		if err != nil {
			return words, err
		}
		if raw {
			word = line[i:next]
		}
		words = append(words, word)
		i = next
	}
}

// Expands reports whether HAProxy replaces an environment variable in a line. It does so for
// a "$" within double quotes, without a backslash before it (configuration manual, section
// 2.3).
func Expands(line string) bool {
	if strings.IndexByte(line, '$') < 0 {
		return false
	}
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote == 0 && c == '#':
			return false
		case c == '\\' && quote != '\'':
			i++
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		case c == '$' && quote == '"':
			return true
		}
	}
	return false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// readWord reads the word that starts at line[i] and returns the index after it.
func readWord(line string, i int) (word string, next int, err error) {
	var b strings.Builder
	start := i
	quote := byte(0)
	for i < len(line) {
		c := line[i]
		switch {
		case quote == 0 && (isBlank(c) || c == '#'):
			return b.String(), i, nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
			start = i
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			plain, size, err := unescape(line[i:], quote)
			if err != nil {
				return "", i, fmt.Errorf("column %d: %w", i+1, err)
			}
			b.WriteString(plain)
			i += size
			continue
		default:
			b.WriteByte(c)
		}
		i++
	}
	if quote != 0 {
		return "", i, fmt.Errorf("column %d: %w: quote is not closed", start+1, ErrSyntax)
	}
	return b.String(), i, nil
}

// unescape reads the escape sequence at the start of s. Within double quotes a backslash
// escapes only special characters; before anything else it stands for itself.
func unescape(s string, quote byte) (plain string, size int, err error) {
	if len(s) < 2 { // at the end of the line a backslash stands for itself, too
		return s, 1, nil
	}
	switch c := s[1]; c {
	case '\\', '"', '\'', '#', ' ', '\t':
		return s[1:2], 2, nil
	case '$':
		if quote == '"' {
			return "$", 2, nil
		}
	case 'n':
		return "\n", 2, nil
	case 'r':
		return "\r", 2, nil
	case 't':
		return "\t", 2, nil
	case 'x':
		n, err := strconv.ParseUint(s[2:min(4, len(s))], 16, 8)
		if err != nil || len(s) < 4 {
			return "", 0, fmt.Errorf("%w: \\x wants two hexadecimal digits", ErrSyntax)
		}
		return string([]byte{byte(n)}), 4, nil
	}
	return s[:1], 1, nil
}
