package templating_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/templating"
)

var hostileRuns = flag.Int("hostile", 20_000, "values that the hostile tests render")

// readers read a word as HAProxy does and give back the value in it.
var readers = map[string]func(word string) (string, bool){
	"text": func(word string) (string, bool) { return word, true },
	// parse_logformat_string: %% is a percent sign, every other % is more.
	"format": func(word string) (string, bool) {
		rest := strings.ReplaceAll(word, "%%", "")
		return strings.ReplaceAll(word, "%%", "%"), !strings.Contains(rest, "%")
	},
	"argument": func(word string) (string, bool) {
		args, ok := readArguments(word)
		return strings.Join(args, "\x00"), ok && len(args) == 1
	},
	"map": func(word string) (string, bool) {
		args, ok := readArguments(word)
		if !ok || len(args) != 1 {
			return "", false
		}
		name, begins := strings.CutPrefix(args[0], "/m/")
		name, ends := strings.CutSuffix(name, ".map")
		return name, begins && ends
	},
	// exp_replace reads what the format makes: a doubled backslash is one.
	"replacement": func(word string) (string, bool) {
		rest := strings.ReplaceAll(strings.ReplaceAll(word, "%%", ""), `\\`, "")
		return strings.ReplaceAll(strings.ReplaceAll(word, "%%", "%"), `\\`, `\`), !strings.ContainsAny(rest, `%\`)
	},
	"regexp": literal,
	"argument regexp": func(word string) (string, bool) {
		args, ok := readArguments(word)
		if !ok || len(args) != 2 || args[1] != "x" {
			return "", false
		}
		return literal(args[0])
	},
}

// literal returns the one text that a regular expression matches.
func literal(word string) (string, bool) {
	re, err := regexp.Compile(word)
	if err != nil {
		return "", false
	}
	return re.LiteralPrefix()
}

// readArguments is make_arg_list of HAProxy: the arguments of "name(a,b)",
// optionally inside of %[].
func readArguments(word string) (args []string, ok bool) {
	if inside, found := strings.CutPrefix(word, "%["); found {
		if word, ok = strings.CutSuffix(inside, "]"); !ok {
			return nil, false
		}
	}
	_, word, ok = strings.Cut(word, "(")
	if !ok {
		return nil, false
	}
	var arg strings.Builder
	var quote byte
	for i := 0; i < len(word); i++ {
		c := word[i]
		switch {
		case c == '"' && quote != '\'' || c == '\'' && quote != '"':
			if quote ^= c; quote != 0 {
				quote = c
			}
		case c == '\\' && quote != '\'' && i+1 < len(word):
			switch i++; word[i] {
			case '\\', ' ', '"', '\'':
				arg.WriteByte(word[i])
			case 'r', 'n', 't':
				return nil, false // a control character
			default:
				arg.WriteByte('\\')
				i--
			}
		case quote == 0 && c == ',':
			args = append(args, arg.String())
			arg.Reset()
		case quote == 0 && c == ')':
			return append(args, arg.String()), i == len(word)-1
		default:
			arg.WriteByte(c)
		}
	}
	return nil, false
}

// linesWithPlaces is a line for each kind of place: where the value stands, and
// how HAProxy reads it there.
var linesWithPlaces = []struct {
	line   string
	word   int
	before string // the value in the word
	after  string
	reader string
}{
	{line: `backend {{ x }}`, word: 1, reader: "text"},
	{line: `backend {{ x }} from d`, word: 1, reader: "text"},
	{line: `server {{ x }} 192.0.2.1:80`, word: 1, reader: "text"},
	{line: `server s {{ x }}:80 check`, word: 2, after: ":80", reader: "text"},
	{line: `server s 192.0.2.1 sni str({{ x }}) check`, word: 4, reader: "argument"},
	{line: `server s 192.0.2.1 cookie {{ x }} check`, word: 4, reader: "text"},
	{line: `bind {{ x }} ssl`, word: 1, reader: "text"},
	{line: `http-request set-header X {{ x }}`, word: 3, reader: "format"},
	{line: `http-request set-header X "a {{ x }}"`, word: 3, before: "a ", reader: "format"},
	{line: `http-request set-header X 'a {{ x }}'`, word: 3, before: "a ", reader: "format"},
	{line: `http-request set-header X "%[str({{ x }})]"`, word: 3, reader: "argument"},
	{line: `http-request set-header X '%[str("{{ x }}")]'`, word: 3, reader: "argument"},
	{line: `http-request set-header {{ x }} v`, word: 2, reader: "text"},
	{line: `http-request return status 200 string "{{ x }}"`, word: 5, reader: "text"},
	{line: `http-request return status 200 lf-string {{ x }}`, word: 5, reader: "format"},
	{line: `http-request redirect location https://{{ x }}/ code 301`, word: 3, before: "https://", after: "/", reader: "format"},
	{line: `http-request set-var(txn.a) str({{ x }}) if TRUE`, word: 2, reader: "argument"},
	{line: `http-request set-var(txn.a) "str('{{ x }}')"`, word: 2, reader: "argument"},
	{line: `http-request set-var(txn.a) 'str("{{ x }}")'`, word: 2, reader: "argument"},
	{line: `http-request set-var(txn.a) path,regsub({{ x }},x)`, word: 2, reader: "argument regexp"},
	{line: `http-request replace-path {{ x }} /a`, word: 2, reader: "regexp"},
	{line: `http-request replace-path /a {{ x }}`, word: 3, reader: "replacement"},
	{line: `http-response replace-value X a "b {{ x }}"`, word: 4, before: "b ", reader: "replacement"},
	{line: `http-request set-header X a if { path_reg ^{{ x }}$ }`, word: 7, before: "^", after: "$", reader: "regexp"},
	{line: `acl a path_reg {{ x }}`, word: 3, reader: "regexp"},
	{line: `acl a path_beg {{ x }}`, word: 3, reader: "text"},
	{line: `acl a path -m str -- {{ x }} /b`, word: 6, reader: "text"},
	{line: `http-request deny if { hdr(host) -i {{ x }} } { path /a }`, word: 6, reader: "text"},
	{line: `use_backend {{ x }} if { path /a }`, word: 1, reader: "text"},
	{line: `log-format "a {{ x }} %ci"`, word: 1, before: "a ", after: " %ci", reader: "format"},
	{line: `http-request set-var(txn.a) path,map_str(/m/{{ x }}.map)`, word: 2, reader: "map"},
	{line: `errorfile 503 /e/{{ x }}.http`, word: 2, before: "/e/", after: ".http", reader: "text"},
	{line: `unheard-of {{ x }} b`, word: 1, reader: "text"},
	{line: `unheard-of "{{ x }}" b`, word: 1, reader: "text"},
	{line: `description '{{ x }}'`, word: 1, reader: "text"},
}

type placeTest struct {
	engine *templating.Engine
	index  int
	words  []string // of the line, with x for the value
}

func placeTests(tb testing.TB) []placeTest {
	tb.Helper()
	var tests []placeTest
	for i, l := range linesWithPlaces {
		e, err := templating.Compile(files("a.cfg", "before\n"+l.line+"\nafter\n"), &templating.Options{Vars: map[string]any{"x": ""}})
		if err != nil {
			tb.Fatal(l.line, err)
		}
		words, err := haproxycfg.Fields(strings.ReplaceAll(l.line, "{{ x }}", "x"))
		if err != nil {
			tb.Fatal(l.line, err)
		}
		tests = append(tests, placeTest{e, i, words})
	}
	return tests
}

// checkPlace renders a value and reads it back: it is refused, or it is the
// value and nothing else, and all else is what it was. It reports whether the
// value was rendered.
func checkPlace(t *testing.T, tt placeTest, x string) bool {
	out, err := tt.engine.Render(t.Context(), "a.cfg", map[string]any{"x": x})
	if err != nil {
		return false
	}
	checkOutput(t, tt, x, out)
	return true
}

func checkOutput(t *testing.T, tt placeTest, x, out string) {
	t.Helper()
	l := linesWithPlaces[tt.index]
	lines := strings.Split(out, "\n")
	if len(lines) != 4 || lines[0] != "before" || lines[2] != "after" || strings.ContainsAny(out, "\r\x00") {
		t.Fatalf("%s with %q: the lines are %q", l.line, x, lines)
	}
	want := tt.words
	words, err := haproxycfg.Fields(lines[1])
	if err != nil || len(words) != len(want) {
		t.Fatalf("%s with %q: the words are %q, %v", l.line, x, words, err)
	}
	for i := range words {
		if i != l.word && words[i] != want[i] {
			t.Fatalf("%s with %q: word %d is %q", l.line, x, i, words[i])
		}
	}
	word := strings.TrimSuffix(strings.TrimPrefix(words[l.word], l.before), l.after)
	got, ok := readers[l.reader](word)
	if !ok || got != x {
		t.Fatalf("%s with %q: %q reads as %q", l.line, x, words[l.word], got)
	}
}

// fragments are what means something to HAProxy somewhere.
var fragments = []string{"a", "b.c", "-", "-f", "/etc/passwd", "..", "../", "/", ".", " ", "  ", "\t", "\n", "\r", "\x00", "\x7f", "\xff", "é", "\u2028",
	`"`, "'", `\`, `\\`, `\n`, `\x20`, "#", "$", "${HOME}", "$HOME", "%", "%%", "%[src]", "%[env(HOME)]", "%{+Q}o", "%ci", "(", ")", ",", "[", "]", "{", "}", "| ", "||",
	"if", "unless", "or", "!", "backend", "server", "unix@", "fd@", "*", "+", "?", "^", "|", `\d`, "[a-z]", ";", ":", "=", "0", "443", "x", "from d", "<", ">", "&", "~", "@", "`"}

func hostileValue(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(5) {
		if r.IntN(8) == 0 {
			b.WriteByte(byte(r.IntN(256)))
		} else {
			b.WriteString(fragments[r.IntN(len(fragments))])
		}
	}
	return b.String()
}

// FuzzPlaces puts a value into every kind of place.
func FuzzPlaces(f *testing.F) {
	for i := range linesWithPlaces {
		for _, s := range fragments {
			f.Add(uint8(i), s)
		}
	}
	tests := placeTests(f)
	f.Fuzz(func(t *testing.T, place uint8, x string) { checkPlace(t, tests[int(place)%len(tests)], x) })
}

// TestHostileMillions is FuzzPlaces over values made of what means something to
// HAProxy. With -hostile it runs as often as one likes; the seed is printed.
func TestHostileMillions(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	tests := placeTests(t)
	rendered := 0
	for n := range *hostileRuns {
		tt, x := tests[n%len(tests)], hostileValue(r)
		text, ok := templating.Shown(tt.engine, "a.cfg", x)
		if ok {
			rendered++
			before, after, _ := strings.Cut(linesWithPlaces[tt.index].line, "{{ x }}")
			checkOutput(t, tt, x, "before\n"+before+text+after+"\nafter\n")
		}
		if n%101 == 0 && checkPlace(t, tt, x) != ok { // 101 is prime: all places in turn
			t.Fatalf("%q: rendered otherwise", x)
		}
	}
	t.Log(fmt.Sprintf("seed %d: %d values, %d rendered, the others refused", seed, *hostileRuns, rendered))
	if rendered < *hostileRuns/20 {
		t.Error("nearly everything is refused: the test says nothing")
	}
}
