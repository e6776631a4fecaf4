package templating_test

import (
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/templating"
)

// TestAllErrors has templates with several errors. What is wanted is all of
// them, as "file:line: message", and none that follows from another.
func TestAllErrors(t *testing.T) {
	tests := []struct{ name, template, want string }{
		{"shown", "{{ nope }}\n{{ ings }}\n{% for _, ing := range ings %}\n{{ ing.Spec.Ruels }}\n{{ ing.Name }}{{ ing.Nmae }}{% end %}\n",
			"a.cfg:1: undefined: nope|a.cfg:4: ing.Spec.Ruels undefined|a.cfg:5: ing.Nmae undefined"},
		{"declaration", "{% var x = nope %}\n{{ x }}\n{% var y = x + 1 %}\n{{ y }}\n{{ other }}", "a.cfg:1: undefined: nope|a.cfg:5: undefined: other"},
		{"not used", "{% if true %}\n{% var x = 1 %}\n{{ x + nope }}\n{% end %}\n{{ other }}", "a.cfg:3: undefined: nope|a.cfg:5: undefined: other"},
		{"condition", "{% if nope %}\n{{ a }}\n{% else if nope2 %}\n{{ b }}\n{% else %}\n{{ c }}\n{% end %}",
			"a.cfg:1: undefined: nope|a.cfg:2: undefined: a|a.cfg:3: undefined: nope2|a.cfg:4: undefined: b|a.cfg:6: undefined: c"},
		{"loop", "{% for _, x := range nope %}\n{{ x.y }}\n{% end %}\n{{ other }}", "a.cfg:1: undefined: nope|a.cfg:4: undefined: other"},
		{"macro", "{% macro M(x nope) %}\n{{ x }}\n{% end %}\n{{ M(1) }}\n{% macro N() %}\n{{ other }}\n{% end %}", "a.cfg:1: undefined: nope|a.cfg:6: undefined: other"},
		{"switch", "{% switch 1 %}{% case 1 %}\n{{ a }}\n{% default %}\n{{ b }}\n{% end %}", "a.cfg:2: undefined: a|a.cfg:4: undefined: b"},
		{"shadowed", "{% var x = 1 %}\n{% if true %}\n{% var x = nope %}\n{{ x.Name }}\n{% end %}\n{{ x }}{{ other }}", "a.cfg:3: undefined: nope"},
		{"import", "{% import \"_m.cfg\" %}\n{{ Missing() }}\n{{ M() }}\n{{ other }}",
			"_m.cfg:2: undefined: inM|a.cfg:2: undefined: Missing|a.cfg:4: undefined: other"},
		{"rendered", "{{ render \"_p.cfg\" }}\n{{ other }}", "_p.cfg:1: undefined: inP|a.cfg:2: undefined: other"},
		{"statements", "{%%\n  a = 1\n  b = 2\n  var c = 3\n  _ = c\n%%}", "a.cfg:2: undefined: a|a.cfg:3: undefined: b"},
		{"function", "{% var f = func() int { return nope } %}\n{{ f() }}\n{{ other }}", "a.cfg:1: undefined: nope|a.cfg:3: undefined: other"},
		{"places and types", "set \"{% if true %}\"{% end %}{{ 1 }}\n\"\n{{ other }}", "a.cfg:1: the value stands|a.cfg:3: undefined: other"},
		{"syntax", "{{ nope }}\n{% if %}\n{{ other }}", "a.cfg:2: "},
		{"many", strings.Repeat("{{ nope }}\n", 20), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := templating.Compile(files("a.cfg", tt.template, "_p.cfg", "{{ inP }}\n", "_m.cfg", "{% macro M() %}\n{{ inM }}\n{% end %}"),
				&templating.Options{Entries: []string{"a.cfg"}, Vars: map[string]any{"ings": []*networkingv1.Ingress(nil)}})
			var got []string
			for _, e := range templating.Errors(err) {
				got = append(got, fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message))
			}
			want := strings.Split(tt.want, "|")
			if tt.name == "many" {
				want = make([]string, 10)
			}
			ok := len(got) == len(want)
			for i := range min(len(got), len(want)) {
				ok = ok && strings.HasPrefix(got[i], want[i])
			}
			if !ok {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}
