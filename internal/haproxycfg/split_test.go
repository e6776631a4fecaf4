package haproxycfg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Section
	}{
		{name: "empty", text: "", want: nil},
		{name: "only a preamble", text: "# hello\n\n", want: []Section{{Line: 1, Header: 1, Text: "# hello\n\n"}}},
		{
			name: "comments above a header belong to it, the preamble does not",
			text: "# file\n\nglobal\n  maxconn 1\n# the shop\n# of Anna\nbackend shop\n  server a :1\n",
			want: []Section{
				{Line: 1, Header: 1, Text: "# file\n\n"},
				{Kind: "global", Line: 3, Header: 3, Text: "global\n  maxconn 1\n"},
				{Kind: "backend", Name: "shop", Line: 5, Header: 7, Text: "# the shop\n# of Anna\nbackend shop\n  server a :1\n"},
			},
		},
		{
			name: "an empty line keeps a comment with the section before",
			text: "global\n# end of global\n\nbackend b\n",
			want: []Section{
				{Kind: "global", Line: 1, Header: 1, Text: "global\n# end of global\n\n"},
				{Kind: "backend", Name: "b", Line: 4, Header: 4, Text: "backend b\n"},
			},
		},
		{
			name: "indented, quoted and named headers",
			text: "  defaults base # x\n\tfrontend 'my web' from base\n\"backend\" b\nba\\ckend no\ncache c\n",
			want: []Section{
				{Kind: "defaults", Name: "base", Line: 1, Header: 1, Text: "  defaults base # x\n"},
				{Kind: "frontend", Name: "my web", Line: 2, Header: 2, Text: "\tfrontend 'my web' from base\n"},
				{Kind: "backend", Name: "b", Line: 3, Header: 3, Text: "\"backend\" b\nba\\ckend no\n"},
				{Kind: "cache", Name: "c", Line: 5, Header: 5, Text: "cache c\n"},
			},
		},
		{
			name: "words that only start like a section",
			text: "global\nbackends x\nlistener\npeers-x\n#backend c\n \nlisten l\r\nlast",
			want: []Section{
				{Kind: "global", Line: 1, Header: 1, Text: "global\nbackends x\nlistener\npeers-x\n#backend c\n \n"},
				{Kind: "listen", Name: "l", Line: 7, Header: 7, Text: "listen l\r\nlast"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Split(tt.text)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("sections (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the text, its sections are all of it.
func TestSplitJoins(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	for name, c := range map[string]struct {
		text     string
		sections int
	}{
		"line ends of Windows":   {"global\r\n  daemon\r\n\r\n# c\r\nbackend b\r\n  mode http\r\n", 2},
		"tabs":                   {"\tglobal\n\t\tdaemon\n\tbackend\tb\n", 2},
		"conditions":             {".if defined(A)\nbackend a\n.else\nbackend b\n.endif\n", 3},
		"repeated and unnamed":   {"global\nglobal\ndefaults\ndefaults\ndefaults from a\nbackend\nbackend a\nbackend a\n", 8},
		"unknown sections":       {"global\nnamespace_list\n  namespace a\nhealthcheck h\nbackend b\n", 2},
		"lines over 64 KiB":      {"global\n  # " + long + "\nbackend b\n  acl a path " + long + "\nbackend " + long + "\n", 3},
		"no line feed at last":   {"global\n  daemon\nbackend b", 2},
		"only blanks":            {" \n\t\n\n", 1},
		"a quote that is open":   {"backend \"b\n  mode http\nbackend c\n", 2},
		"bytes that are no text": {"\x00\xffglobal\nbackend \xff\n\x00", 2},
		"comments everywhere":    {"# a\n# b\n\n# c\nglobal # d\n# e\n  # f\n# g\nbackend b # h\n# i\n", 3},
	} {
		t.Run(name, func(t *testing.T) {
			sections := Split(c.text)
			if len(sections) != c.sections {
				t.Errorf("%d sections, want %d", len(sections), c.sections)
			}
			var joined strings.Builder
			for _, s := range sections {
				joined.WriteString(s.Text)
			}
			if joined.String() != c.text {
				t.Errorf("joined: %.200q", joined.String())
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("global\n# c\nbackend b\n\n#x\n  'listen' l\n")
	f.Add("#\n#\nbackend")
	f.Fuzz(func(t *testing.T, text string) {
		var joined strings.Builder
		line := 1
		for _, s := range Split(text) {
			if s.Text == "" {
				t.Error("a section without text")
			}
			if s.Line != line || s.Header < s.Line {
				t.Errorf("section %q is said to start in line %d, header in %d; it is line %d", s.Name, s.Line, s.Header, line)
			}
			line += strings.Count(s.Text, "\n")
			joined.WriteString(s.Text)
		}
		if joined.String() != text {
			t.Errorf("joined: %q\ntext:   %q", joined.String(), text)
		}
	})
}

func TestFields(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{"", nil},
		{"   # only a comment", nil},
		{"\tserver  a\t:80 check\r\n", []string{"server", "a", ":80", "check"}},
		{"a b#c d", []string{"a", "b"}},
		{`a "b #c" '#d' \#e`, []string{"a", "b #c", "#d", "#e"}},
		{`log-format %{+Q}o\ %t\ %s\ %{-Q}r`, []string{"log-format", "%{+Q}o %t %s %{-Q}r"}},
		{`log-format "%{+Q}o %t"' %s'\ %{-Q}r`, []string{"log-format", "%{+Q}o %t %s %{-Q}r"}},
		{`a "" ''b`, []string{"a", "", "b"}},
		{`x '\n$"' "\$\"\'\\" \n\r\t\x41`, []string{"x", `\n$"`, `$"'\`, "\n\r\tA"}},
		{`x "\y" \z $HOME`, []string{"x", `\y`, `\z`, "$HOME"}},
		{`x a\`, []string{"x", `a\`}},
	}
	for _, tt := range tests {
		got, err := Fields(tt.line)
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.line, diff)
		}
	}
}

func TestFieldsErrors(t *testing.T) {
	for line, want := range map[string]string{
		`a "b`:     `column 3: syntax error: quote is not closed`,
		`a 'b "c"`: `column 3: syntax error: quote is not closed`,
		`a \x4`:    `column 3: syntax error: \x wants two hexadecimal digits`,
		`a "\xzz"`: `column 4: syntax error: \x wants two hexadecimal digits`,
	} {
		words, err := Fields(line)
		if err == nil || err.Error() != want || !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
		if diff := cmp.Diff([]string{"a"}, words); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

// HAProxy itself says what the words of a line are: it echoes the last one of
// a "log-tag" line in an error, or takes the line.
func TestFieldsAgreesWithHAProxy(t *testing.T) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is missing:", err)
		}
		t.Skip("haproxy is missing:", err)
	}
	for _, word := range []string{`a\ b`, `"a b"`, `'a b'`, `"a\ b"`, `a"#"b`, `"a\$b"`, `a\'b`, `"a\'b"`, `a\yb`, `"a\yb"`, `'a\'`, `a\$b`, `"a'b"`, `\x41\x7ab`, `a#b`} {
		line := "bogus " + word
		words, err := Fields(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		// The keyword of an unknown directive is echoed as HAProxy read it.
		file := filepath.Join(t.TempDir(), "haproxy.cfg")
		require.NoError(t, os.WriteFile(file, []byte("global\n  x"+word+"\n"), 0o600))
		out, _ := exec.CommandContext(t.Context(), binary, "-c", "-f", file).CombinedOutput()
		if want := fmt.Sprintf("unknown keyword 'x%s'", words[1]); !strings.Contains(string(out), want) {
			t.Errorf("%s: no %q in %s", line, want, out)
		}
	}
}

func TestExpands(t *testing.T) {
	for line, want := range map[string]bool{
		`a "$B"`: true, `a "x${B}"`: true, `a '$B'`: false, `a $B`: false, `a "\$B"`: false, `a 'x"'"$B"`: true,
		`path-info ^(/.+\.php)$`: false, `a # "$B"`: false, `a "#$B"`: true, `a \"$B`: false, ``: false,
	} {
		if got := Expands(line); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// HAProxy itself says where it expands a variable.
func TestExpandsAsHAProxy(t *testing.T) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is missing:", err)
		}
		t.Skip("haproxy is missing:", err)
	}
	for _, word := range []string{`"$HAPTIC_X"`, `'$HAPTIC_X'`, `$HAPTIC_X`, `"\$HAPTIC_X"`, `"${HAPTIC_X}"`, `'"'"$HAPTIC_X"`} {
		file := filepath.Join(t.TempDir(), "haproxy.cfg")
		require.NoError(t, os.WriteFile(file, []byte("global\n  bogus"+word+"\n"), 0o600))
		cmd := exec.CommandContext(t.Context(), binary, "-c", "-f", file)
		cmd.Env = append(os.Environ(), "HAPTIC_X=expanded")
		out, _ := cmd.CombinedOutput()
		if got := strings.Contains(string(out), "expanded'"); got != Expands(word) {
			t.Errorf("%s: HAProxy expands: %v\n%s", word, got, out)
		}
	}
}

func FuzzFields(f *testing.F) {
	f.Add(`a "b c" 'd' \# # x`)
	f.Add(`"\x41\`)
	f.Fuzz(func(t *testing.T, line string) {
		words, err := Fields(line)
		if err != nil && !errors.Is(err, ErrSyntax) {
			t.Errorf("error of another kind: %v", err)
		}
		if err != nil || strings.Contains(line, "\r") {
			return
		}
		// What is read and written in quotes reads the same.
		quoted := make([]string, len(words))
		for i, w := range words {
			if strings.ContainsAny(w, "\n\r") {
				return
			}
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		again, err := Fields(strings.Join(quoted, " "))
		require.NoError(t, err)
		if diff := cmp.Diff(words, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-first +second):\n%s", line, diff)
		}
	})
}
