package templating_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/templating"
)

// site is what a host makes of two objects.
type hostSite struct {
	Name string
	Of   []any
}

func (s *hostSite) Owners() []any { return s.Of }

func ingress(name string) *networkingv1.Ingress {
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// mapped prints each line of an output with what wrote it.
func mapped(t *templating.Traced) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(t.Text) {
		n++
		o := t.Origin(n)
		fmt.Fprintf(&b, "%s <- %s:%d:%d%s\n", strings.TrimRight(line, "\n"), o.File, o.Line, o.Column, named(o.Owners))
	}
	return b.String()
}

func named(owners []any) string {
	var names []string
	for _, o := range owners {
		switch o := o.(type) {
		case interface{ GetName() string }:
			names = append(names, o.GetName())
		case map[string]any:
			names = append(names, o["metadata"].(map[string]any)["name"].(string))
		default:
			names = append(names, fmt.Sprint(o))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " " + fmt.Sprint(names)
}

// tracedVars is what the templates of TestSourceMap see.
func tracedVars() map[string]any {
	a, b := ingress("a"), ingress("b")
	manifest := func(name string) map[string]any {
		return map[string]any{"kind": "Service", "metadata": map[string]any{"name": name}}
	}
	return map[string]any{
		"ings": []*networkingv1.Ingress{a, b}, "values": []networkingv1.Ingress{*a, *b},
		"maps": []map[string]any{manifest("s1"), manifest("s2")}, "anys": []any{a, manifest("s2"), "text", nil},
		"sites": []*hostSite{{"x", []any{a, b}}, {"y", nil}}, "siteValues": []hostSite{{"x", []any{b}}},
		"words": []string{"one", "two"}, "none": []string{}, "x": any(nil),
	}
}

func compileTraced(tb testing.TB, pairs ...string) *templating.Engine {
	tb.Helper()
	e, err := templating.Compile(files(pairs...), &templating.Options{Entries: []string{pairs[0]},
		Globals: map[string]any{"Ingress": reflect.TypeFor[networkingv1.Ingress]()}, Vars: map[string]any{
			"ings": []*networkingv1.Ingress(nil), "values": []networkingv1.Ingress(nil), "maps": []map[string]any(nil), "anys": []any(nil),
			"sites": []*hostSite(nil), "siteValues": []hostSite(nil), "words": []string(nil), "none": []string(nil), "x": (*any)(nil),
		}})
	require.NoError(tb, err)
	return e
}

var update = flag.Bool("update", false, "write what the tests in testdata got as what they want")

// cutFiles splits a case of TestSourceMap.
func cutFiles(source string) (pairs []string, want string) {
	name := "a.cfg"
	var text strings.Builder
	flush := func() {
		if name == "want" {
			want = text.String()
		} else {
			pairs = append(pairs, name, strings.ReplaceAll(text.String(), "*T", "*Ingress"))
		}
		text.Reset()
	}
	for line := range strings.Lines(source) {
		if next, ok := strings.CutPrefix(line, "-- "); ok {
			flush()
			name = strings.TrimSuffix(next, " --\n")
			continue
		}
		text.WriteString(line)
	}
	flush()
	return pairs, want
}

// TestSourceMap has templates in testdata/sourcemap, and what wrote each line of
// their output: "text <- file:line:column [owners]". The first file of a case is
// a.cfg, the others begin with "-- name --", and "-- want --" is what is wanted.
func TestSourceMap(t *testing.T) {
	cases, err := filepath.Glob("testdata/sourcemap/*.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(cases), 20)
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			pairs, want := cutFiles(string(source))
			e := compileTraced(t, pairs...)
			vars := tracedVars()
			traced, err := e.RenderTraced(t.Context(), "a.cfg", vars)
			require.NoError(t, err)
			require.Empty(t, traced.Refused)
			got := mapped(traced)
			if *update {
				templates, _, _ := strings.Cut(string(source), "-- want --\n")
				require.NoError(t, os.WriteFile(file, []byte(templates+"-- want --\n"+got), 0o644))
			} else if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if plain, err := e.Render(t.Context(), "a.cfg", vars); err != nil || plain != traced.Text {
				t.Errorf("traced\n%q\nrendered\n%q, %v", traced.Text, plain, err)
			}
		})
	}
}
