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
		{name: "checked", template: "acl a path_reg {{ regex(x.(string)) }}", x: `^/a(.*)\.b c$`, want: `acl a path_reg ^/a(.*)\\.b\ c$`},
		{name: "checked, with alternatives", template: "acl a path_reg ^{{ regex(x.(string)) }}$", x: "/a|/b", want: "acl a path_reg ^(?:/a|/b)$"},
		{name: "checked and costly", template: "acl a path_reg ^{{ regex(x.(string)) }}$", x: "(a+)+", refused: "inside a repeat"},
		{name: "checked, a flag", template: "acl a path_reg {{ regex(x.(string)) }}", x: "-f", refused: "as a flag"},
		{name: "checked, elsewhere", template: "http-request set-header X {{ regex(x.(string)) }}", x: "a", refused: "where HAProxy reads a regular expression"},
		{name: "the author's own", template: "acl a path_reg ^{{ raw(x.(string)) }}$", x: "a.b", want: `acl a path_reg ^a.b$`},
		{name: "in brackets", template: "acl a path_reg [{{ x }}]", x: "a", refused: "in brackets"},
		{name: "behind -m reg", template: "acl a path -i -m reg {{ x }}", x: "a.b", want: `acl a path -i -m reg a\\.b`},
		{name: "flag", template: "acl a path -i {{ x }}", x: "-f", refused: "as a flag"},
		{name: "flag that is none", template: "acl a path -i -- {{ x }}", x: "-f", want: "acl a path -i -- -f"},
		{name: "end of a condition", template: "http-request deny if { path {{ x }} }", x: "}", refused: "part of a condition"},
		{name: "name of an ACL", template: "http-request deny if {{ x }}", x: "or", refused: "part of a condition"},
		{name: "section", template: "backend {{ x }}", x: "a from b", refused: "not a name"},
		{name: "section without a name", template: "backend {{ x }}\n", x: "", refused: "with an empty value here"},
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
		{name: "number", template: "http-request set-timeout server {{ x }}", x: "5s", want: "http-request set-timeout server 5s"},
		{name: "fetch in place of a number", template: "http-request set-timeout server {{ x }}", x: "date", refused: "not a number"},
		{name: "fetch in place of a mark", template: "http-request set-mark {{ x }}", x: "src", refused: "not a number"},
		{name: "fetch in place of a port", template: "http-check connect port {{ x }}", x: "dst_port", refused: "not a number"},
		{name: "argument in place of a number", template: "http-request set-timeout server str({{ x }})", x: "a)", want: `http-request set-timeout server str(\"a)\")`},
		{name: "expression of an option", template: "option forwarded host-expr {{ x }}", x: "src", refused: "cannot choose a sample fetch"},
		{name: "limit of a bandwidth", template: "http-request set-bandwidth-limit l limit {{ x }} period {{ x }}", x: "100k", want: "http-request set-bandwidth-limit l limit 100k period 100k"},
		{name: "converter behind a fetch", template: "http-request deny if { req.fhdr(a) {{ x }} /a }", x: "lower", refused: "as a converter"},
		{name: "converter with arguments", template: "http-request deny if { str(a) {{ x }} /a }", x: "map(/etc/a)", refused: "as a converter"},
		{name: "converter behind a converter", template: "http-request deny if { src lower {{ x }} /a }", x: "upper", refused: "as a converter"},
		{name: "no converter behind a flag", template: "http-request deny if { req.fhdr(a) -i {{ x }} }", x: "lower", want: "http-request deny if { req.fhdr(a) -i lower }"},
		{name: "no converter behind a keyword", template: "http-request deny if { hdr(a) {{ x }} }", x: "lower", want: "http-request deny if { hdr(a) lower }"},
		{name: "regular expression that is a converter", template: "http-request deny if { var(txn.a) {{ x }} -m reg a }", x: "lower", refused: "as a converter"},
		{name: "operator", template: "http-request deny if { req.hdr_cnt(a) {{ x }} 5 }", x: "ge", refused: "as an operator"},
		{name: "operator behind -m int", template: "http-request deny if { hdr(a) -m int {{ x }} 5 }", x: "ge", refused: "as an operator"},
		{name: "operator later", template: "http-request deny if { dst_port 80 {{ x }} 5 }", x: "ge", refused: "as an operator"},
		{name: "no operator between texts", template: "http-request deny if { hdr(a) {{ x }} }", x: "ge", want: "http-request deny if { hdr(a) ge }"},
		{name: "no operator behind -m str", template: "http-request deny if { hdr_cnt(a) -m str {{ x }} }", x: "ge", want: "http-request deny if { hdr_cnt(a) -m str ge }"},
		{name: "range of ports", template: "bind :{{ x }}", x: "1-65535", refused: "a range of ports"},
		{name: "range behind a host", template: "bind {{ x }}", x: "a.test:1-65535", refused: "a range of ports"},
		{name: "port of the client", template: "server s {{ x }}", x: "a.test:-1", refused: "not a host"},
		{name: "host with digits", template: "server s {{ x }}:80", x: "10-0-0-1.a.pod", want: "server s 10-0-0-1.a.pod:80"},
		{name: "socket", template: "stats socket {{ x }} level admin", x: "/run/s", want: "stats socket /run/s level admin"},
		{name: "address of a socket", template: "stats socket {{ x }} level admin", x: ":9999", refused: "an address in place"},
		{name: "user and password", template: "stats auth {{ x }}:p", x: "a:b", refused: "end the name of the user"},
		{name: "password", template: "stats auth u:{{ x }}", x: "a:b", want: "stats auth u:a:b"},
		{name: "both", template: "stats auth {{ x }}", x: "a:b", want: "stats auth a:b"},
		{name: "attributes of a cookie", template: "server s 192.0.2.1 cookie {{ x }}", x: "a;Domain=b", refused: "a cookie"},
		{name: "realm", template: `http-request auth realm "{{ x }}"`, x: `a", b="c`, want: `http-request auth realm "a\\\", b=\\\"c"`},
		{name: "URI of a check", template: "option httpchk GET {{ x }}", x: "/ HTTP/1.1", refused: "a space"},
		{name: "query of a path", template: "http-request set-path {{ x }}", x: "/a?b", refused: "end the path"},
		{name: "captured header", template: "capture request header {{ x }} len 10", x: "X-A", want: "capture request header X-A len 10"},
		{name: "value of a header that is expected", template: "http-check expect hdr name {{ x }} value -m beg {{ x }}", x: "a,b", want: "http-check expect hdr name a,b value -m beg a,b"},
		{name: "flag in its place", template: "http-check expect hdr name {{ x }}", x: "-m", refused: "as a flag"},
		{name: "expression that is expected", template: "http-check expect hdr name a value -m reg ^{{ x }}", x: "a.b", want: `http-check expect hdr name a value -m reg ^a\\.b`},
		{name: "map by a name that is made", template: "http-request set-map(/m/{{ x }}.map) %[src] {{ x }}", x: "a%b", want: "http-request set-map(/m/a%b.map) %[src] a%%b"},
		{name: "names are no flags of a redirect", template: "redirect location /{{ x }}", x: "100%", want: "redirect location /100%"},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			got, err := render(t, tt.x, "haproxy.cfg", tt.template)
			check(t, got, err, tt.want, tt.refused)
		})
	}
}
