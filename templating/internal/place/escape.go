package place

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/open2b/scriggo/native"
)

// Raw is text that a template writes as it is.
type Raw string

// Regex is a checked regular expression.
type Regex string

// Site is one shown expression and the place where it stands. [Table.Site] fills in the
// rules.
type Site struct {
	File         string
	Line, Column int
	MacroText    bool // it may be the text of a macro
	Number       bool // it is what len returns, not the text of a macro
	Regexp       bool // the template quotes it for a regular expression
	Chosen       bool // it is the text of a macro whose first word is a value
	First        bool // it is a part of the first word of a line; [Check] reads the word in the output

	id     int
	rules  []rule
	shapes []shape
	whole  bool // it is a word of its own
	joined bool // it is a word with other values beside it
	lone   bool // it is an argument of a sample expression
	strict bool // it is a part of a first word that Check cannot read
}

// Refusal is the panic value of [Site.Escape]: the value cannot stand there.
type Refusal struct {
	Site    *Site
	Message string
}

func (at *Site) refuse(message string) { panic(&Refusal{Site: at, Message: message}) }

func (at *Site) refuseValue(r rule, s, why string) {
	at.refuse(fmt.Sprintf("refused in %s: %s: %s", r, Shorten(s), why))
}

// Escape returns the escaped text of a value for the site. It panics with a *[Refusal] if
// the value cannot stand there.
func (at *Site) Escape(v any) native.JSON {
	switch v := v.(type) {
	case string:
		return at.escape(v)
	case native.JSON: // the text of a macro or a rendered file
		if at.Number {
			at.refuse("a macro is called len here: give it another name")
		}
		return at.embed(string(v))
	case Raw:
		return native.JSON(v)
	case Regex:
		return at.expression(string(v))
	}
	text, digits, err := textOf(v)
	switch {
	case err == errNil:
		at.refuse("the value is nil; give a default with coalesce, or test it with if")
	case err != nil:
		at.refuse(err.Error())
	case digits:
		return native.JSON(text)
	}
	return at.escape(text)
}

// expression writes a checked expression where HAProxy reads one.
func (at *Site) expression(s string) native.JSON {
	for _, r := range at.rules {
		if r.reads != asRegexp {
			at.refuseValue(r, s, "regex(s) is for the places where HAProxy reads a regular expression: path_reg, -m reg, replace-path, regsub")
		}
	}
	quoted := *at
	quoted.Regexp = true
	return quoted.escape(s)
}

func (at *Site) escape(s string) native.JSON {
	// Several rules must agree.
	var text string
	for i, r := range at.rules {
		escaped, why := r.escape(s, at)
		if why != "" {
			at.refuseValue(r, s, why)
		}
		if i > 0 && escaped != text {
			at.refuseValue(r, s, fmt.Sprintf("the line is another one in another branch, loop or use of this file, where it would be %s", Shorten(text)))
		}
		text = escaped
	}
	return native.JSON(text)
}

// Site completes the site of a value; id is its number in [Table.AfterValue]. The problem
// says why no value can stand there. buffered says that the value does not go to the output
// at once.
func (t *Table) Site(s Site, p Points, id int, buffered bool) (site Site, problem string) {
	s.rules, problem = t.rules(p)
	s.id, s.shapes, s.lone = id, t.shapes[id], t.lone[id]
	s.whole, s.joined = slices.ContainsFunc(s.shapes, shape.whole), slices.ContainsFunc(s.shapes, shape.joined)
	for _, r := range s.rules {
		s.First = s.First || r.reads == asKeyword && (s.joined || !s.whole)
	}
	if buffered {
		s.First, s.strict = false, s.First
	}
	return s, problem
}

// escape applies the rule from the inside out, in the reverse order of HAProxy's reading.
func (r rule) escape(s string, at *Site) (text, why string) {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == 0x7f {
			return "", fmt.Sprintf("control character %q", c)
		}
	}
	if !utf8.ValidString(s) {
		return "", "not UTF-8"
	}
	if why := r.refuses(s, at); why != "" {
		return "", why
	}
	if r.reads == asRegexp && !at.Regexp {
		s = regexp.QuoteMeta(s)
	}
	if r.reads == asQuoted { // the reader of the header then sees the value
		s = backslash(s, &quoteSpecial)
	}
	if readings[r.reads].format {
		s = strings.ReplaceAll(s, "%", "%%")
	}
	if readings[r.reads].slash {
		s = strings.ReplaceAll(s, `\`, `\\`)
	}
	if r.arg {
		s, why = r.quoted(s)
		if why != "" {
			return "", why
		}
	}
	return r.line(s)
}

// quoted writes an argument of a sample expression (section 2.2, "the second level"): in
// double quotes if necessary, and unchanged inside single quotes.
func (r rule) quoted(s string) (text, why string) {
	switch r.quote {
	case sampleSingle:
		if strings.Contains(s, "'") {
			return "", noSingleQuote
		}
		return s, ""
	case sampleArg:
		if !argSpecials.any(s) {
			return s, ""
		}
		return `"` + backslash(s, &quoteSpecial) + `"`, ""
	}
	return backslash(s, &quoteSpecial), ""
}

const noSingleQuote = "a single quote cannot be written inside single quotes: use double quotes"

// line applies the table in section 2.2 of the configuration manual backwards. It says
// which bytes need a backslash, and refuses the bytes that cannot be written.
func (r rule) line(s string) (text, why string) {
	if r.place&(mapStart|crtStart|listStart) != 0 {
		if why := startProblem(s, r.place); why != "" {
			return "", why
		}
	}
	switch r.place {
	case argument: // "$" expands only inside double quotes
		return backslash(s, &argumentSet), ""
	case double:
		return backslash(s, &doubleSet), ""
	case single:
		if strings.Contains(s, "'") {
			return "", noSingleQuote
		}
	case mapStart, mapKey:
		if strings.Contains(s, " ") {
			return "", "white space ends the key"
		}
	case crtStart, crtPath, crtOption, crtOptionText, crtWord:
		if strings.ContainsAny(s, " []") {
			return "", "white space and brackets end the word"
		}
	}
	return s, ""
}

// startProblem says why a value at the start of a line would change the line. The line is
// of a map, a crt-list or a list.
func startProblem(s string, place places) string {
	switch {
	case s == "":
		return "with an empty value here the next word would take its place"
	case s[0] == '#':
		return "a line that starts with # is a comment"
	case s[0] == ' ' && place == listStart:
		return "white space at the start of a line is left out"
	}
	return ""
}

func backslash(s string, set *asciiSet) string {
	if !set.any(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := 0; i < len(s); i++ {
		if set.has(s[i]) {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// asciiSet has a bit for each of the first 128 characters.
type asciiSet [2]uint64

func setOf(chars string) (set asciiSet) {
	for i := 0; i < len(chars); i++ {
		set[chars[i]>>6] |= 1 << (chars[i] & 63)
	}
	return set
}

func (set *asciiSet) has(c byte) bool { return c < 0x80 && set[c>>6]&(1<<(c&63)) != 0 }

// only reports whether a value consists of characters of the set.
func (set *asciiSet) only(s string) bool {
	for i := 0; i < len(s); i++ {
		if !set.has(s[i]) {
			return false
		}
	}
	return true
}

// any reports whether a value has one of the characters of the set.
func (set *asciiSet) any(s string) bool {
	for i := 0; i < len(s); i++ {
		if set.has(s[i]) {
			return true
		}
	}
	return false
}
