package templating

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/open2b/scriggo/native"
)

// Raw is text that is written as it is: what the function raw returns. A Go
// function may return it too, for text that it made safe itself.
type Raw string

// site is one shown expression.
type site struct {
	file         string
	line, column int
	rules        []rule
	text         bool // it may be the text of a macro
	regexp       bool // the template quotes it for a regular expression
	whole        bool // it is a word of its own
	joined       bool // it is a word with other values beside it
	lone         bool // it is an argument of a sample expression
	chosen       bool // its first word is a value, where it is the text of a macro
	operators    bool // HAProxy may take it for an operator
	casts        bool // or for a converter
	words        bool // HAProxy may know the word
	keywords     bool // as the first one of a line
	parts        bool // of which the value may be a part
	first        bool // which is read once it is written
	strict       bool // which cannot be
	// plain has the bytes that stand for themselves: a value that has no others
	// is written as it is.
	plain *[256]bool
}

// escape returns the text of a shown value as it may stand at the site, and
// panics with a *refusal when it may not stand there at all.
func escape(v any, at *site) native.JSON {
	switch v := v.(type) {
	case string:
		return escapeString(v, at)
	case native.JSON: // what a macro or a rendered file wrote
		return embed(string(v), at)
	case Raw:
		return native.JSON(v)
	case int:
		return escapeInt(int64(v), at)
	case int32:
		return escapeInt(int64(v), at)
	case int64:
		return escapeInt(v, at)
	case bool:
		return native.JSON(strconv.FormatBool(v))
	case []byte:
		return escapeString(string(v), at)
	}
	if text, ok, err := ownText(v); ok {
		return escapeOwn(text, err, at)
	}
	return escapeOther(v, at)
}

// escapeOther shows values of types that escape does not know by name.
func escapeOther(v any, at *site) native.JSON {
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.String:
		return escapeString(rv.String(), at)
	case reflect.Bool:
		return native.JSON(strconv.FormatBool(rv.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return escapeInt(rv.Int(), at)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return native.JSON(strconv.FormatUint(rv.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return escapeString(strconv.FormatFloat(rv.Float(), 'f', -1, rv.Type().Bits()), at)
	case reflect.Pointer:
		if !rv.IsNil() { // optional fields of Kubernetes objects
			return escape(rv.Elem().Interface(), at)
		}
		escapeOwn("", errNilValue, at)
	case reflect.Invalid:
		escapeOwn("", errNilValue, at)
	}
	if text, ok, err := pointerText(rv); ok {
		return escapeOwn(text, err, at)
	}
	refuse(at, fmt.Sprintf("a value of type %T has no text: show its fields or elements", v))
	return ""
}

// escapeOwn shows the text that the methods of a value gave it.
func escapeOwn(text string, err error, at *site) native.JSON {
	switch {
	case errors.Is(err, errNilValue):
		refuse(at, "the value is nil; give a default with coalesce, or test it with if")
	case err != nil:
		refuse(at, "the value has no text: "+err.Error())
	}
	return escapeString(text, at)
}

func refuse(at *site, message string) { panic(&refusal{site: *at, message: message}) }

func refuseValue(at *site, r rule, s, why string) {
	refuse(at, fmt.Sprintf("refused in %s: %s: %s", r, shorten(s), why))
}

// escapeInt shows a whole number: digits mean nothing anywhere, a sign may.
func escapeInt(n int64, at *site) native.JSON {
	if n < 0 {
		return escapeString(strconv.FormatInt(n, 10), at)
	}
	return native.JSON(strconv.FormatInt(n, 10))
}

func escapeString(s string, at *site) native.JSON {
	for i := 0; i < len(s); i++ {
		if !at.plain[s[i]] {
			return escapeSpecial(s, at)
		}
	}
	if s == "" || len(s) > maxHeader || (at.words || at.parts) && at.isKnown(s) {
		return escapeSpecial(s, at)
	}
	return native.JSON(s)
}

// isKnown reports whether a value may mean something to HAProxy as a word, or a
// part of one.
func (at *site) isKnown(s string) bool {
	return at.whole && (reserved[s] || at.keywords && isKeyword(s)) ||
		at.operators && (at.whole && operators[s] || at.joined && isReservedPart(s, operators)) ||
		at.casts && (at.whole && isConverter(s) || at.joined && isReservedPart(s, converters)) ||
		at.joined && isReservedPart(s, reserved) || at.parts && isKeyword(s) || at.strict && isKeywordPart(s)
}

// partial reports whether a value may be a part of a word.
func (at *site) partial() bool { return at.joined || !at.whole }

// escapeSpecial goes by all rules of a site. Where they are several they must
// agree.
func escapeSpecial(s string, at *site) native.JSON {
	var text string
	for i, r := range at.rules {
		escaped, why := r.escape(s, at)
		if why != "" {
			refuseValue(at, r, s, why)
		}
		if i > 0 && escaped != text {
			refuseValue(at, r, s, fmt.Sprintf("the line is another one in another branch, loop or use of this file, where it would be %s", shorten(text)))
		}
		text = escaped
	}
	return native.JSON(text)
}

// escape does what the rule says, from the inside out: what HAProxy reads last
// is done first.
func (r rule) escape(s string, at *site) (text, why string) {
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
	switch {
	case r.reads == asRegexp && !at.regexp:
		s = regexp.QuoteMeta(s)
	case r.reads == asFormat || r.reads == asURIFormat || r.reads == asPathFormat || r.reads == asCookieFmt:
		s = strings.ReplaceAll(s, "%", "%%")
	case r.reads == asReplace || r.reads == asURIReplace || r.reads == asPathRepl: // exp_replace of HAProxy takes a doubled backslash for one
		s = strings.ReplaceAll(strings.ReplaceAll(s, "%", "%%"), `\`, `\\`)
	case r.reads == asQuoted: // so that it is the value to who reads the header
		s = backslash(s, 0, &quoteSpecial)
	case r.reads == asSubst:
		s = strings.ReplaceAll(s, `\`, `\\`)
	}
	if r.arg {
		if s, why = r.quoted(s); why != "" {
			return "", why
		}
	}
	return r.line(s)
}

// line is the table of section 2.2 of the configuration manual, read backwards:
// which bytes need a backslash, and which cannot be written.
func (r rule) line(s string) (text, why string) {
	if r.place&(mapStart|crtStart|listStart) != 0 {
		if why := startProblem(s, r.place); why != "" {
			return "", why
		}
	}
	n := 0 // bytes that need a backslash
	set := specials(r.place)
	for i := 0; i < len(s); i++ {
		if c := s[i]; set.has(c) {
			n++
		}
	}
	if n == 0 {
		return s, ""
	}
	switch r.place {
	case argument, double:
		return backslash(s, n, set), ""
	case single:
		return "", "a single quote cannot be written inside single quotes: use double quotes"
	case mapStart, mapKey:
		return "", "white space ends the key"
	case crtStart, crtWord:
		return "", "white space and brackets end the word"
	}
	return s, ""
}

// startProblem says what would turn the line of a map or a crt-list into
// another one.
func startProblem(s string, place places) string {
	switch {
	case s == "":
		return "with nothing here the next word would take its place"
	case s[0] == '#':
		return "a line that starts with # is a comment"
	case s[0] == ' ' && place == listStart:
		return "white space at the start of a line is left out"
	}
	return ""
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

var ( // constant in effect: Go has no array constants
	argumentSet = setOf(` #"'\`) // "$" expands only inside double quotes
	doubleSet   = setOf(`"\$`)
	singleSet   = setOf(`'`)
	spaceSet    = setOf(` `)
	crtSet      = setOf(` []`)
)

func specials(place places) *asciiSet {
	switch place {
	case argument:
		return &argumentSet
	case double:
		return &doubleSet
	case single:
		return &singleSet
	case mapStart, mapKey:
		return &spaceSet
	case crtStart, crtWord:
		return &crtSet
	}
	return new(asciiSet)
}

func backslash(s string, n int, set *asciiSet) string {
	var b strings.Builder
	b.Grow(len(s) + n)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if set.has(c) {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
