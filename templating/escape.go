package templating

import (
	"fmt"
	"reflect"
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
	place        places
	text         bool // it may be the text of a macro
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
		return native.JSON(strconv.Itoa(v))
	case int32:
		return native.JSON(strconv.FormatInt(int64(v), 10))
	case int64:
		return native.JSON(strconv.FormatInt(v, 10))
	case bool:
		return native.JSON(strconv.FormatBool(v))
	case []byte:
		return escapeString(string(v), at)
	case fmt.Stringer:
		if rv := reflect.ValueOf(v); rv.Kind() != reflect.Pointer || !rv.IsNil() {
			return escapeString(v.String(), at)
		}
	case error:
		return escapeString(v.Error(), at)
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
		return native.JSON(strconv.FormatInt(rv.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return native.JSON(strconv.FormatUint(rv.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return native.JSON(strconv.FormatFloat(rv.Float(), 'f', -1, rv.Type().Bits()))
	case reflect.Pointer:
		if !rv.IsNil() { // optional fields of Kubernetes objects
			return escape(rv.Elem().Interface(), at)
		}
		refuse(at, "the value is nil; give a default with coalesce, or test it with if")
	case reflect.Invalid:
		refuse(at, "the value is nil; give a default with coalesce, or test it with if")
	}
	// Types whose String method has a pointer receiver, such as
	// intstr.IntOrString.
	if ptr := reflect.New(rv.Type()); ptr.Type().Implements(stringerType) {
		ptr.Elem().Set(rv)
		return escapeString(ptr.Interface().(fmt.Stringer).String(), at)
	}
	refuse(at, fmt.Sprintf("a value of type %T has no text: show its fields or elements", v))
	return ""
}

var stringerType = reflect.TypeFor[fmt.Stringer]()

func refuse(at *site, message string) { panic(&refusal{site: *at, message: message}) }

func refuseValue(at *site, s, why string) {
	refuse(at, fmt.Sprintf("refused in %s: %s: %s", at.place, shorten(s), why))
}

// escapeString is the table of section 2.2 of the configuration manual, read
// backwards: which bytes need a backslash, and which cannot be written.
func escapeString(s string, at *site) native.JSON {
	n := 0 // bytes that need a backslash
	high := false
	set := specials(at.place)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c < 0x20 || c == 0x7f:
			refuseValue(at, s, fmt.Sprintf("control character %q", c))
		case c >= 0x80:
			high = true
		case set[c>>6]&(1<<(c&63)) != 0:
			n++
		}
	}
	if high && !utf8.ValidString(s) {
		refuseValue(at, s, "not UTF-8")
	}
	if at.place&(mapStart|crtStart) != 0 {
		checkStart(s, at)
	}
	if n == 0 {
		return native.JSON(s)
	}
	switch at.place {
	case argument, double:
		return native.JSON(backslash(s, n, set))
	case single:
		refuseValue(at, s, "a single quote cannot be written inside single quotes: use double quotes")
	case mapStart, mapKey:
		refuseValue(at, s, "white space ends the key")
	case crtStart, crtWord:
		refuseValue(at, s, "white space and brackets end the word")
	}
	return native.JSON(s)
}

// checkStart refuses what would turn the line of a map or a crt-list into
// another one.
func checkStart(s string, at *site) {
	switch {
	case s == "":
		refuseValue(at, s, "with nothing here the next word would take its place")
	case s[0] == '#':
		refuseValue(at, s, "a line that starts with # is a comment")
	}
}

// asciiSet has a bit for each of the first 128 characters.
type asciiSet [2]uint64

func setOf(chars string) (set asciiSet) {
	for i := 0; i < len(chars); i++ {
		set[chars[i]>>6] |= 1 << (chars[i] & 63)
	}
	return set
}

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
		if c < 0x80 && set[c>>6]&(1<<(c&63)) != 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// embed checks text that a macro wrote. Its values are escaped already, for
// text outside quotes; inside quotes the same text would mean something else.
func embed(s string, at *site) native.JSON {
	if at.place&(double|single) != 0 && strings.ContainsAny(s, "\\\"'$\n") {
		refuseValue(at, s, "a macro's text with quotes, backslashes, $ or line feeds cannot stand inside quotes")
	}
	// What stands behind the text is escaped for the place that the template
	// shows, so the text must not lead to another one.
	switch at.place {
	case argument:
		if kindConfig.after(argument, s)&^(argument|comment) != 0 {
			refuseValue(at, s, "a macro's text must close its quotes, and cannot end in a backslash")
		}
	case comment:
		if strings.Contains(s, "\n") {
			refuseValue(at, s, "a macro's text with line feeds cannot stand in a comment")
		}
	case mapKey, mapValue, crtWord:
		if !at.text && strings.Contains(s, "\n") {
			refuseValue(at, s, "a macro's text with line feeds cannot stand in a line that began before: show the call itself")
		}
	}
	return native.JSON(s)
}
