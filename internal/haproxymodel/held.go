package haproxymodel

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	parser "github.com/haproxytech/client-native/v6/config-parser"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// held counts the lines that a model holds, by [loose].
type held map[string]int

// heldBy returns what the model of s says in the lines of one collection, of
// the section's own fields for nil.
func (s *Section) heldBy(c *Child) held {
	if h, ok := s.held[c]; ok {
		return h
	}
	if s.held == nil {
		s.held = map[*Child]held{}
	}
	h := held{}
	for _, text := range s.write(c) {
		if words, _, err := cut(text); err == nil && len(words) > 0 {
			h[loose(words)]++
		}
	}
	s.held[c] = h
	return h
}

// write writes one collection, or for nil the section's own fields with its
// inline children. What client-native cannot write is left out.
func (s *Section) write(c *Child) []string {
	if c == nil {
		return s.writeBase()
	}
	var lines []string
	for _, child := range childrenOf(s.model, c) {
		text, err := guard(func() (string, error) { return c.text(child.model) })
		if err == nil {
			lines = append(lines, text)
		}
	}
	return lines
}

// text writes one child.
func (c *Child) text(child reflect.Value) (string, error) {
	data, err := c.write(child.Interface())
	if err != nil {
		return "", err
	}
	p := c.lines()
	p.Init()
	if err := p.Insert(data, -1); err != nil {
		return "", err
	}
	lines, _, err := p.ResultAll()
	if err != nil {
		return "", err
	}
	if len(lines) != 1 {
		return "", errors.New("not one line")
	}
	text := lines[0].Data
	if c.Words == "bind" || c.Words == "dgram-bind" {
		// client-native names what has no name after its address.
		if words := strings.Fields(text); len(words) > 3 && words[2] == "name" && words[3] == words[1] {
			text = strings.Join(append(words[:2:2], words[4:]...), " ")
		}
	}
	return text, nil
}

// writeBase writes the section's own fields.
func (s *Section) writeBase() (lines []string) {
	copied := reflect.New(s.Kind.model)
	copied.Elem().Set(reflect.ValueOf(s.model).Elem())
	if from := copied.Elem().FieldByName("From"); from.IsValid() {
		from.SetString("") // client-native wants to see that section
	}
	name := parserName(s.Kind, 0)
	setName(copied.Elem(), name)
	haproxycfg.WithParser(func() {
		text, err := guard(func() (string, error) {
			p, err := parser.New()
			if err != nil {
				return "", err
			}
			if s.Kind.Name != "global" {
				if err := p.SectionsCreate(parser.Section(s.Kind.Name), name); err != nil {
					return "", err
				}
			}
			// What was written before an error is in the model, too.
			_, _ = guard(func() (any, error) { return nil, s.Kind.write(p, name, copied.Interface()) })
			return p.String(), nil
		})
		if err != nil {
			return
		}
		header := true
		for text := range strings.Lines(text) {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			if !header {
				lines = append(lines, text)
			}
			header = false
		}
	})
	return lines
}

// loose makes a string of a line that is equal for lines which a model cannot
// tell apart and need not: a time or a size may be written in several ways, and
// the order of keywords does not matter on some lines.
func loose(words []string) string {
	keys := make([]string, len(words))
	for i, w := range words {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		keys[i] = canonical(w, before)
	}
	first := keywordLines[words[0]]
	if words[0] == "option" && len(words) > 1 {
		first = keywordLines["option "+words[1]]
	}
	if first > 0 && len(keys) > first {
		slices.Sort(keys[first:])
	}
	return strings.Join(keys, separator)
}

// keywordLines are lines that HAProxy reads keyword by keyword, with the
// number of words before the first keyword.
var keywordLines = map[string]int{ // never changes
	"server": 3, "server-template": 4, "default-server": 1, "peer": 3,
	"bind": 2, "dgram-bind": 2, "default-bind": 1, "stick-table": 1, "table": 2,
	"cookie": 2, "load": 1, "user": 2, "ssl-f-use": 1, "source": 2, "stats": 3,
	"option forwardfor": 2, "option originalto": 2, "balance": 2, "log": 2,
}

// canonical writes a time in milliseconds and a size in bytes. A number with
// an m is a size where the word before says so, else a time.
func canonical(word, before string) string {
	if word == "" || word[0] < '0' || word[0] > '9' {
		return word
	}
	digits := strings.TrimRight(word, "abcdefghijklmnopqrstuvwxyzGKM")
	n, err := strconv.ParseUint(digits, 10, 40)
	if err != nil {
		return word
	}
	factor := map[string]uint64{
		"": 1, "ms": 1, "s": 1000, "h": 3600_000, "d": 86400_000,
		"k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "g": 1 << 30, "G": 1 << 30,
	}[word[len(digits):]]
	if word[len(digits):] == "m" {
		factor = 60_000
		if isSize(before) {
			factor = 1 << 20
		}
	}
	if factor == 0 {
		return word
	}
	return strconv.FormatUint(n*factor, 10)
}

func isSize(keyword string) bool {
	for _, part := range []string{"size", "buf", "mem", "len"} {
		if strings.Contains(keyword, part) {
			return true
		}
	}
	return false
}
