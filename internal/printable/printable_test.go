package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestEscapes(t *testing.T) {
	for _, c := range []struct{ text, line, lines string }{
		{"plain, ümläut 日本 🙂 \\", "plain, ümläut 日本 🙂 \\", "plain, ümläut 日本 🙂 \\"},
		{"a\nb\tc\rd", `a\u000ab\u0009c\u000dd`, "a\nb\tc\\u000dd"},
		{"\x00\x1b[2J\x7f", `\u0000\u001b[2J\u007f`, `\u0000\u001b[2J\u007f`},
		{"\u0085\u009b31m", `\u0085\u009b31m`, `\u0085\u009b31m`},
		{"\u202a\u202e\u2066\u2069\u200e\u061c", `\u202a\u202e\u2066\u2069\u200e\u061c`, `\u202a\u202e\u2066\u2069\u200e\u061c`},
		{"\u2028\u2029", `\u2028\u2029`, `\u2028\u2029`},
		{"cut \xe6\x97", `cut \ufffd\ufffd`, `cut \ufffd\ufffd`},
	} {
		if got := Line(c.text); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.text, got, c.line)
		}
		if got := Text(c.text); got != c.lines {
			t.Errorf("Text(%q) = %q, want %q", c.text, got, c.lines)
		}
	}
}

// FuzzEscapes: what is escaped is printed, escaped once, and JSON stays JSON.
func FuzzEscapes(f *testing.F) {
	f.Add("a\x1b[31m\u202e\nb")
	f.Fuzz(func(t *testing.T, text string) {
		line := Line(text)
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !Is(r) }) || Line(line) != line {
			t.Errorf("Line(%q) = %q", text, line)
		}
		encoded, err := json.Marshal(text)
		require.NoError(t, err)
		var before, after string
		if json.Unmarshal(encoded, &before) != nil || json.Unmarshal([]byte(Text(string(encoded))), &after) != nil || before != after {
			t.Errorf("%q became %q in JSON", before, after)
		}
	})
}
