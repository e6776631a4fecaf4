// Package printable makes foreign text safe for a terminal, a log and a page: no character
// in it moves a cursor, ends a line or turns the direction of writing.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line escapes all characters that are not printable, such as line feeds: \u000a. The
// escapes mean the same in JSON.
func Line(text string) string { return escape(text, "") }

// Text is [Line] for a text of several lines: it keeps line feeds and tabs.
func Text(text string) string { return escape(text, "\n\t") }

// Is reports whether a character is printable: it is no control character, no separator of
// lines or paragraphs, and no mark of the direction of writing.
func Is(r rune) bool {
	return !unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

func escape(text, keep string) string {
	stays := func(r rune) bool { return Is(r) && r != utf8.RuneError || strings.ContainsRune(keep, r) }
	if strings.IndexFunc(text, func(r rune) bool { return !stays(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text { // U+FFFD for invalid UTF-8
		if stays(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
