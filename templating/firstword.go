package templating

import (
	"fmt"
	"strings"

	"github.com/open2b/scriggo/native"
)

// Values that are the first word of a line each, or a part of it, are refused
// where one of them makes a keyword by itself. What several make together, a loop
// over letters for example, is known once the line is written: the escaper notes
// where such values begin, and the words there are read when the run has ended.

// mark is where a value, or the text of a macro, was written that is a part of the
// first word of a line.
type mark struct {
	at, end int  // in the output
	site    int  // its number
	macro   bool // the text of a macro
}

// firstEscaper is the escaper of what is a part of a first word.
func firstEscaper(escaper any) any {
	note := func(env native.Env, v any, id int, text native.JSON) native.JSON {
		l, ok := env.Context().Value(limitsKey{}).(*limits)
		_, raw := v.(Raw)
		_, macro := v.(native.JSON)
		if at := 0; ok && !raw && text != "" {
			at = l.out.buf.Len()
			l.out.marks = append(l.out.marks, mark{at, at + len(text), id, macro})
		}
		return text
	}
	switch escape := escaper.(type) {
	case func(any, int) native.JSON:
		return func(env native.Env, v any, id int) native.JSON { return note(env, v, id, escape(v, id)) }
	case func(native.Env, any, int) native.JSON:
		return func(env native.Env, v any, id int) native.JSON { return note(env, v, id, escape(env, v, id)) }
	}
	return escaper
}

// madeKeyword finds a keyword that values made, and the number of its line.
func (o *output) madeKeyword(sites []site) (m mark, number int, word string) {
	text := o.buf.String()
	for _, m := range o.marks {
		if m.site >= len(sites) || m.macro && !sites[m.site].chosen {
			continue
		}
		start := strings.LastIndexAny(text[:m.at], "\n"+endOfItem) + 1
		line := text[start:]
		if i := strings.IndexAny(line, "\n"+endOfItem); i >= 0 {
			line = line[:i]
		}
		if word, ok := firstWord(line, m.at-start, m.end-start); ok && isKeyword(word) {
			return m, 1 + strings.Count(text[:start], "\n"), word
		}
	}
	return mark{}, 0, ""
}

// check says what is wrong with the output as a whole, and in which line.
func (o *output) check(entry string, sites []site) (err error, number int) {
	if m, n, word := o.madeKeyword(sites); n > 0 {
		at := sites[m.site]
		return &Error{Entry: entry, File: at.file, Line: at.line, Column: at.column,
			Message: fmt.Sprintf("line %d of the output begins with %s: %s", n, shorten(word), chosenLine)}, n
	}
	return checkLines(entry, o.buf.String())
}

// firstWord reads the first word of a line as HAProxy does, or the second one
// behind "no" and "default", and reports whether what was written from a place
// of the line to another is a part of it.
func firstWord(line string, from, to int) (word string, part bool) {
	var b strings.Builder
	place, begun, start := argument, false, 0
	for i := 0; ; i++ {
		end := i == len(line)
		if end || place == argument && strings.IndexByte(" \t\r#", line[i]) >= 0 {
			if begun {
				word = b.String()
				if part = from < i && to > start; part || end || word != "no" && word != "default" {
					return word, part
				}
			}
			if end || line[i] == '#' {
				return "", false
			}
			b.Reset()
			begun = false
			continue
		}
		if !begun {
			begun, start = true, i
		}
		before := place
		place = step(before, line[i])
		if place == before && place != argEscape || before == argEscape || before == dblEscape || before&(dblDollar|dblName) != 0 {
			b.WriteByte(line[i])
		}
	}
}
