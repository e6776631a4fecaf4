package templating_test

import (
	"strings"
	"testing"
)

// TestInside is the table of what HAProxy reads inside a word.
func TestInside(t *testing.T) {
	tests := []struct {
		name, template, x, want, refused string
	}{
		{name: "log-format", template: "http-request set-header X {{ x }}", x: "100%", want: "http-request set-header X 100%%"},
		{name: "behind a percent sign", template: "http-request set-header X %{{ x }}", x: "ci", refused: "write %% for a percent sign"},
		{name: "in a variable", template: "log-format %c{{ x }}", x: "i", refused: "write %% for a percent sign"},
		{name: "behind a doubled percent sign", template: "log-format %%{{ x }}", x: "ci", want: "log-format %%ci"},
		{name: "text, no format", template: "http-request return string {{ x }}", x: "100%", want: "http-request return string 100%"},
		{name: "argument of a sample", template: "http-request set-var(txn.a) str({{ x }})", x: "a,b)", want: `http-request set-var(txn.a) str(\"a,b)\")`},
		{name: "name of a fetch", template: "http-request set-var(txn.a) {{ x }}", x: "env(A)", refused: "cannot choose a sample fetch"},
		{name: "name of a converter", template: "http-request set-var(txn.a) path,{{ x }}", x: "lower", refused: "cannot choose a sample fetch"},
		{name: "name of a variable", template: "http-request set-var(txn.{{ x }}) path", x: "a) src", refused: "the name of a variable"},
		{name: "regular expression", template: "acl a path_reg ^{{ x }}$", x: "a.b", want: `acl a path_reg ^a\\.b$`},
		{name: "quoted already", template: "acl a path_reg ^{{ sanitize_regex(x.(string)) }}$", x: "a.b", want: `acl a path_reg ^a\\.b$`},
		{name: "the author's own", template: "acl a path_reg ^{{ raw(x.(string)) }}$", x: "a.b", want: `acl a path_reg ^a.b$`},
		{name: "in brackets", template: "acl a path_reg [{{ x }}]", x: "a", refused: "in brackets"},
		{name: "behind -m reg", template: "acl a path -i -m reg {{ x }}", x: "a.b", want: `acl a path -i -m reg a\\.b`},
		{name: "flag", template: "acl a path -i {{ x }}", x: "-f", refused: "as a flag"},
		{name: "flag that is none", template: "acl a path -i -- {{ x }}", x: "-f", want: "acl a path -i -- -f"},
		{name: "end of a condition", template: "http-request deny if { path {{ x }} }", x: "}", refused: "part of a condition"},
		{name: "name of an ACL", template: "http-request deny if {{ x }}", x: "or", refused: "part of a condition"},
		{name: "section", template: "backend {{ x }}", x: "a from b", refused: "not a name"},
		{name: "section without a name", template: "backend {{ x }}\n", x: "", refused: "with nothing here"},
		{name: "part of a name", template: "backend a{{ x }}\n", x: "", want: "backend a\n"},
		{name: "address", template: "server s {{ x }}:80", x: "unix@/run/x", refused: "not a host"},
		{name: "variable in an address", template: "bind {{ x }}", x: "$A", refused: "not a host"},
		{name: "two addresses", template: "bind {{ x }}", x: ":80,unix@/x", refused: "not a host"},
		{name: "part of a path", template: "errorfile 503 /e/{{ x }}.http", x: "../x", refused: "leads out"},
		{name: "path", template: "errorfile 503 {{ x }}", x: "/e/503.http", want: "errorfile 503 /e/503.http"},
		{name: "keyword", template: "{{ x }} a", x: "lua-load", refused: "what a line is"},
		{name: "keyword in a macro", template: "{% macro M(x any) %}{{ x }} a{% end %}{{ M(x) }}", x: "backend", refused: "what a line is"},
		{name: "macro in a regular expression", template: "{% macro M(x any) %}{{ x }}{% end %}acl a path_reg {{ M(x) }}", x: "a.b", refused: "macro's text"},
		{name: "macro in a name", template: "{% macro M(x any) %}{{ x }}{% end %}backend {{ M(x) }}", x: "a b", refused: "not a name"},
		{name: "macro in an argument", template: "{% macro M(x any) %}{{ x }}{% end %}acl a str({{ M(x) }}) b", x: `a"b`, refused: "macro's text"},
		{name: "not known", template: "unheard-of {{ x }}", x: "%[src]", refused: "use raw"},
		{name: "other lines in branches", template: "{% if x == `a` %}http-request set-header X{% else %}http-request return string{% end %} {{ x }}", x: "1%", refused: "another branch"},
		{name: "the same in branches", template: "{% if x == `a` %}http-request set-header X{% else %}http-request return string{% end %} {{ x }}", x: "1", want: "http-request return string 1"},
		{name: "patterns in a loop", template: "acl a path_beg{% for i := range []int{1,2} %} /{{ x }}{% end %}", x: "a(b),%", want: "acl a path_beg /a(b),% /a(b),%"},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			got, err := render(t, tt.x, "haproxy.cfg", tt.template)
			check(t, got, err, tt.want, tt.refused)
		})
	}
}
