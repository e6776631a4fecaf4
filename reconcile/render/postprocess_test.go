package render

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestPostProcessor(t *testing.T) {
	for _, c := range []struct {
		name  string
		p     PostProcessor
		in    string
		out   string
		lines []int
	}{
		{"within lines", PostProcessor{Pattern: `^\s+`, Replacement: "  "}, "a\n    b\n\tc\n", "a\n  b\n  c\n", nil},
		{"ends of lines", PostProcessor{Pattern: `\s+$`}, "a  \nb\t\n", "a\nb\n", nil},
		{"groups", PostProcessor{Pattern: `(\w+) (?P<x>\w+)`, Replacement: "${x} $1 $$1"}, "a b\n", "b a $1\n", nil},
		{"not across lines", PostProcessor{Pattern: `a(?s:.*)b`, Replacement: "x"}, "a\nb\nab\n", "a\nb\nx\n", nil},
		{"line feeds cannot match", PostProcessor{Pattern: `\n`, Replacement: ""}, "a\nb\n", "a\nb\n", nil},
		{"a line that becomes empty stays", PostProcessor{Pattern: `^#.*`}, "#a\nb\n", "\nb\n", nil},
		{"then it is squeezed", PostProcessor{Pattern: `^#.*`, Squeeze: true}, "#a\nb\n", "b\n", []int{2}},
		{"carriage returns stay", PostProcessor{Pattern: `$`, Replacement: ";"}, "a\r\nb", "a;\r\nb;", nil},
		{"squeeze", PostProcessor{Squeeze: true}, "\n \na\n\n\t\n\nb\n\nc\n\n\n", "a\n\nb\n\nc\n", []int{3, 4, 7, 8, 9}},
		{"nothing to squeeze", PostProcessor{Squeeze: true}, "a\n\nb\n", "a\n\nb\n", []int{1, 2, 3}},
		{"nothing but blank lines", PostProcessor{Squeeze: true}, "\n\n", "", nil},
		{"nothing", PostProcessor{Squeeze: true}, "", "", nil},
		{"an open last line", PostProcessor{Squeeze: true}, "\na", "a", []int{2}},
	} {
		out, lines, err := apply(c.p, c.in)
		require.NoError(t, err, c.name)
		require.Equal(t, c.out, out, c.name)
		require.Equal(t, c.lines, lines, c.name)
	}
}

// apply does what [Templates] do with one processor.
func apply(p PostProcessor, text string) (out string, lines []int, err error) {
	c, err := p.compile()
	if err != nil {
		return "", nil, err
	}
	all := &postProcessing{all: []*compiledProcessor{c}}
	if out = all.replace(text); all.squeezes() {
		out, lines = squeeze(out)
	}
	return out, lines, nil
}

func TestPostProcessorCheck(t *testing.T) {
	for _, c := range []struct {
		p    PostProcessor
		want string
	}{
		{PostProcessor{}, "neither a pattern nor Squeeze"},
		{PostProcessor{Replacement: "x"}, "a replacement without a pattern"},
		{PostProcessor{Pattern: "("}, "missing closing )"},
		{PostProcessor{Pattern: "a", Replacement: "b\nbackend evil"}, "line feed"},
		{PostProcessor{Pattern: "a", Replacement: "b\r"}, "line feed or another control"},
		{PostProcessor{Pattern: "(a)", Replacement: "$1x"}, `the group "1x", which is not there`},
		{PostProcessor{Pattern: "(a)", Replacement: "$2"}, `the group "2"`},
		{PostProcessor{Pattern: "(a)", Replacement: "${name}"}, `the group "name"`},
		{PostProcessor{Pattern: "a", Files: "map/[x"}, "syntax error in pattern"},
		{PostProcessor{Pattern: "a", Files: "hosts.map"}, "want a kind and a name"},
	} {
		require.ErrorContains(t, c.p.Check(), c.want)
		templates := site(t, map[string]string{"haproxy.cfg": "global\n"}, nil, nil)
		templates.Post = []PostProcessor{c.p}
		require.ErrorContains(t, templates.Check(), c.want)
		_, err := templates.Render(t.Context())
		require.ErrorContains(t, err, c.want)
	}
}

// TestPostProcessingKeepsOrigins: what wrote a line is found although lines
// went before it.
func TestPostProcessingKeepsOrigins(t *testing.T) {
	in := &Input{}
	templates := site(t, map[string]string{
		"haproxy.cfg":     "\n\nglobal\n\n\n  {# nothing #}\n  maxconn   7\n\n",
		"haproxy.d/b.cfg": "\nbackend   {{ b }}\n",
		"maps/x.map":      "\n\na   b\n",
		"general/x.http":  "a   b\n",
	}, map[string]any{"b": ""}, in)
	in.Each = map[string]Each{"haproxy.d/b.cfg": {Var: "b", Items: []any{"one", "two"}}}
	templates.Post = []PostProcessor{
		{Pattern: ` {3}`, Replacement: " "}, {Squeeze: true}, {Pattern: `^a +`, Replacement: "A ", Squeeze: true, Files: "map/*"},
	}
	for _, pure := range []bool{false, true} {
		templates.Pure = pure
		for range 2 {
			rendered, err := templates.Render(t.Context())
			require.NoError(t, err)
			require.Equal(t, "global\n\n  maxconn 7\n\nbackend one\n\nbackend two\n", rendered.Config.Main())
			hosts, _ := rendered.Config.File(dataplane.Map, "x.map")
			require.Equal(t, "A b\n", string(hosts.Content))
			page, _ := rendered.Config.File(dataplane.General, "x.http")
			require.Equal(t, "a   b\n", string(page.Content))
			for line, want := range map[int]string{1: "global", 3: "  maxconn   7", 5: "backend   {{ b }}", 7: "backend   {{ b }}"} {
				origin, err := rendered.Origins.Origin(t.Context(), dataplane.Position{Line: line})
				require.NoError(t, err)
				require.Equal(t, want, origin.Text, "line %d", line)
			}
		}
	}
	templates.Post = []PostProcessor{{Pattern: "maxconn", Replacement: "nbthread"}}
	require.Contains(t, mustRender(t, templates).Main(), "nbthread", "processors that change are compiled again")
}

func FuzzPostProcessor(f *testing.F) {
	f.Add("a\n\n\nb", `^\s*$`, "x")
	f.Add("\n\n", "a", "")
	f.Add("a\r\n \r\n\t\r\nb\n", `(a)|b`, "$1")
	f.Fuzz(func(t *testing.T, text, pattern, replacement string) {
		if len(pattern) > 100 {
			return
		}
		p := PostProcessor{Pattern: pattern, Replacement: replacement, Squeeze: true}
		out, lines, err := apply(p, text)
		if err != nil {
			return
		}
		var before []string
		for line := range strings.Lines(text) {
			before = append(before, line)
		}
		n := 0
		var re *regexp.Regexp
		if pattern != "" {
			re = regexp.MustCompile(pattern)
		}
		last := 0
		blank := true
		for line := range strings.Lines(out) {
			n++
			old := n
			if lines != nil {
				old = lines[n-1]
			}
			require.Greater(t, old, last, "in their order")
			last = old
			body := strings.TrimSuffix(strings.TrimSuffix(before[old-1], "\n"), "\r")
			want := body
			if re != nil {
				want = re.ReplaceAllString(body, replacement)
			}
			require.Equal(t, want+before[old-1][len(body):], line)
			require.False(t, blank && strings.Trim(line, " \t\r\n") == "")
			blank = strings.Trim(line, " \t\r\n") == ""
		}
		require.True(t, n == 0 || !blank)
		if lines != nil {
			require.Len(t, lines, n)
		}
		again, _ := squeeze(out)
		require.Equal(t, out, again)
	})
}

// TestSqueezedFilesKeepOrigins: nothing else is to blame because lines of a file moved.
func TestSqueezedFilesKeepOrigins(t *testing.T) {
	templates := site(t, map[string]string{"haproxy.cfg": "global\n", "maps/x.map": "\n\na 1\n\n\nb 2\nc 3\n"}, nil, &Input{})
	templates.Post = []PostProcessor{{Squeeze: true, Files: "map/*"}}
	rendered, err := templates.Render(t.Context())
	require.NoError(t, err)
	hosts, _ := rendered.Config.File(dataplane.Map, "x.map")
	require.Equal(t, "a 1\n\nb 2\nc 3\n", string(hosts.Content))
	for line, want := range map[int]string{1: "a 1", 3: "b 2", 4: "c 3"} {
		origin, err := rendered.Origins.Origin(t.Context(), dataplane.Position{Kind: dataplane.Map, Name: "x.map", Line: line})
		require.NoError(t, err)
		require.Equal(t, want, origin.Text)
	}
}
