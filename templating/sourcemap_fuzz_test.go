package templating_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// FuzzTraced checks that a traced render does what the render does, and that
// every line has an origin that is there.
func FuzzTraced(f *testing.F) {
	cases, _ := filepath.Glob("testdata/sourcemap/*.txt")
	for _, file := range cases {
		source, err := os.ReadFile(file)
		require.NoError(f, err)
		pairs, _ := cutFiles(string(source))
		f.Add(pairs[1])
	}
	f.Add("{% macro A(n int) %}{{ n }}{% if n > 0 %}{{ A(n-1) }}{% end %}{% end %}{{ A(3) }}{{ A(9) != `` }}{% owner(1) %}")
	f.Fuzz(func(t *testing.T, src string) {
		if strings.Contains(src, "go ") {
			return // what it writes when is chance
		}
		compareTraced(t, map[string]any{"words": []string{"one", "a b"}, "ings": tracedVars()["ings"], "x": any("x")}, "a.cfg", src)
	})
}

// compareTraced renders a template in both ways.
func compareTraced(t *testing.T, vars map[string]any, pairs ...string) {
	t.Helper()
	e, err := templating.Compile(files(append(pairs, "_p.cfg", "p {{ words[0] }}\n")...), &templating.Options{
		Entries: []string{"a.cfg"}, MaxOutput: 1 << 16,
		Vars: map[string]any{"words": vars["words"], "ings": vars["ings"], "x": (*any)(nil)}})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // it may be endless
	defer cancel()
	want, wantErr := e.Render(ctx, "a.cfg", vars)
	if ctx.Err() != nil {
		return
	}
	traced, err := e.RenderTraced(ctx, "a.cfg", vars)
	if ctx.Err() != nil {
		return
	}
	if wantErr != nil {
		if err == nil && len(traced.Refused) == 0 {
			t.Fatalf("%q\ntraced without the error %v", pairs, wantErr)
		}
		return
	}
	if err != nil || traced.Text != want || len(traced.Refused) > 0 {
		t.Fatalf("%q\ntraced %q, %v, %v\nrendered %q", pairs, traced.Text, err, traced.Refused, want)
	}
	n := 0
	for line := range strings.Lines(want) {
		if n++; traced.Origin(n).File == "" || traced.Origin(n).Line < 1 || traced.Origin(n).Column < 1 {
			t.Fatalf("%q\nline %d has no origin: %q", pairs, n, line)
		}
	}
}

// writer makes a template out of bytes: every statement nested in every other.
type writer struct {
	choices []byte
	text    strings.Builder
	depth   int
	macros  int
}

func (w *writer) next(n int) int {
	if len(w.choices) == 0 {
		return 0
	}
	c := int(w.choices[0])
	w.choices = w.choices[1:]
	return c % n
}

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(&w.text, format, args...) }

// block writes some statements.
func (w *writer) block() {
	w.depth++
	for range 1 + w.next(3) {
		w.statement()
	}
	w.depth--
}

func (w *writer) within(head string, end string) {
	w.printf("%s", head)
	w.block()
	w.printf("%s", end)
}

func (w *writer) statement() {
	if w.depth > 6 || w.text.Len() > 4000 || len(w.choices) == 0 {
		w.printf("t%d\n", w.text.Len())
		return
	}
	end := []string{"{% end %}", "{% end %}\n"}[w.next(2)]
	switch w.next(14) {
	case 0:
		w.printf("t%d\n", w.text.Len())
	case 1:
		w.printf("  t%d", w.text.Len())
	case 2:
		w.printf("{{ words[%d] }}\n", w.next(2))
	case 3:
		w.printf("{%% owner(%d) %%}", w.text.Len())
	case 4:
		w.within("{% for _, ing := range ings %}{{ ing.Name }}", end)
	case 5:
		w.within("{% for i, w := range words %}{{ i }}{{ w }}\n", "{% if i == 0 %}{% continue %}{% end %}"+end)
	case 6:
		w.within("{% if len(words) > 1 %}", "{% else %}never"+end)
	case 7:
		w.within("{% switch words[0] %}{% case `one` %}", "{% default %}d"+end)
	case 8:
		w.macros++
		name := fmt.Sprint("M", w.macros)
		w.within("{% if true %}{% macro "+name+"(n int) %}{{ n }}", "{% if n > 3 %}{% return %}{% end %}.{% end macro %}")
		uses := []string{"{{ %[1]s(1) }}", "{{ indent(%[1]s(2), 2) }}", "{%% var v = %[1]s(4) %%}{{ v }}{{ v }}", "{{ %[1]s(1) + %[1]s(5) }}",
			"{%% if %[1]s(3) != `` %%}y{%% end %%}", "{{ raw(string(%[1]s(1))) }}"}
		w.printf(uses[w.next(len(uses))], name)
		w.text.WriteString(end)
	case 9:
		w.within("{% show itea; using %}", "{% end using %}")
	case 10:
		w.within("{% if true %}{% var u = itea; using %}", "{% end using %}{{ u }}"+end)
	case 11:
		w.printf(`{{ render "_p.cfg" }}`)
	case 12:
		w.printf("{%% if true %%}{%% var r = render \"_p.cfg\" %%}{{ r }}%s", end)
	case 13:
		w.printf("{%% if true %%}{%% var f = func(n int) int { owner(n); return n } %%}{{ f(%d) }}%s", w.text.Len(), end)
	}
}

// FuzzTracedStatements is FuzzTraced with templates that compile.
func FuzzTracedStatements(f *testing.F) {
	f.Add([]byte{2, 0, 8, 1, 4, 0, 3, 9, 0, 2, 8, 1, 5, 11, 12, 13, 4})
	f.Add([]byte("the quick brown fox jumps over the lazy dog and back again"))
	f.Fuzz(func(t *testing.T, choices []byte) {
		w := &writer{choices: choices}
		w.block()
		compareTraced(t, map[string]any{"words": []string{"one", "a b"}, "ings": tracedVars()["ings"], "x": any("x")}, "a.cfg", w.text.String())
	})
}
