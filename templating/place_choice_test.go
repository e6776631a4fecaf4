package templating_test

import (
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/templating"
)

// TestChoices has values where HAProxy expects one of its own words: what a line
// is, an option, a fetch, a variable of the environment. A value is none of them.
func TestChoices(t *testing.T) {
	const line, option, fetch, environment = "what a line is", "cannot choose an option", "cannot choose a sample fetch", "environment variable"
	for template, refused := range map[string]string{
		"{{ x }} a":                line,
		"  {{ x }}":                line,
		"no {{ x }}":               line,
		"tune.{{ x }}-{{ x }} 1":   line,
		"{{ x }}{{ x }} a":         line,
		`"{{ x }}" a`:              line,
		"{{ x }}-request deny":     line,
		"server s a {{ x }}":       option,
		"server s a check {{ x }}": option,
		"server s a ssl verify none {{ x }} backup":     option,
		"server s a no-{{ x }}":                         option,
		"server-template s 3 a {{ x }}":                 option,
		"default-server {{ x }}":                        option,
		"bind :80 {{ x }}":                              option,
		"bind :80 ssl crt /a {{ x }}":                   option,
		"http-request {{ x }}":                          option,
		"http-request lua.{{ x }}":                      option,
		"http-request deny {{ x }} 403":                 option,
		"http-request return status 200 {{ x }} /etc/a": option,
		"http-response {{ x }} X":                       option,
		"tcp-request content {{ x }}":                   option,
		"option {{ x }}":                                option,
		"stats {{ x }}":                                 option,
		"use_backend b {{ x }} TRUE":                    option,
		"http-request set-var(txn.a) env({{ x }})":      environment,
		"http-request set-var(txn.a) env(A{{ x }})":     environment,
		"http-request set-header X %[env({{ x }})]":     environment,
		`http-request set-header X "%[env('{{ x }}')]"`: environment,
		"setenv {{ x }} a":                              environment,
		"presetenv {{ x }} a":                           environment,
		"http-request set-var(txn.a) lua.{{ x }}":       fetch,
		"http-request set-var(txn.a) path,lua.{{ x }}":  fetch,
		"http-request set-header X %[lua.{{ x }}]":      fetch,
		"http-request use-service lua.{{ x }}":          fetch,
		"acl a path -m {{ x }} b":                       "how patterns match",
	} {
		values := []string{"backup", "a", "unheard-of", "HOME"}
		if refused == line { // HAProxy accepts no other
			values = []string{"backend", "http-request", "lua-load", "server"}
		}
		for _, x := range values {
			got, err := render(t, x, "haproxy.cfg", template)
			check(t, got, err, "", refused)
		}
	}
}

// TestWrittenChoices has the values of options, and the words of which a
// template may let a value choose.
func TestWrittenChoices(t *testing.T) {
	for template, x := range map[string]string{
		"server s a:80 check inter {{ x }} backup":         "2s",
		"server s a:80 unheard-of {{ x }}":                 "a",
		"server s a:80 weight {{ x }} cookie {{ x }}":      "7",
		"server-template s 3 {{ x }}:80 check":             "a.test",
		"bind :80 maxconn {{ x }} ssl crt /a alpn {{ x }}": "8",
		"balance {{ x }}":                                  "leastconn",
		"balance hdr({{ x }})":                             "X-A",
		"balance url_param {{ x }}":                        "id",
		"mode {{ x }}":                                     "tcp",
		"timeout {{ x }} 5s":                               "client",
		"log 192.0.2.1:514 {{ x }} {{ x }}":                "local0",
		"log 192.0.2.1:514 len 80 format rfc5424 {{ x }}":  "local0",
		"log global":                                                               "",
		"retry-on {{ x }} {{ x }}":                                                 "503",
		"compression type text/html {{ x }} {{ x }}":                               "text/css",
		"http-request set-timeout server {{ x }}":                                  "5s",
		"http-request return status {{ x }} content-type {{ x }}":                  "200",
		"http-request set-var(txn.a) req.hdr({{ x }}),word({{ x }})":               "a",
		"http-request set-var(txn.a) var(txn.{{ x }})":                             "a",
		"http-request set-var(txn.{{ x }}) lua.f({{ x }})":                         "a",
		"http-check expect ! rstatus {{ x }}":                                      "5",
		"http-check expect status {{ x }}":                                         "200",
		"redirect scheme https code {{ x }} if TRUE":                               "301",
		"stick on src table {{ x }}":                                               "t",
		"stick-table type {{ x }} size {{ x }} expire {{ x }}":                     "ip",
		"cookie {{ x }} insert indirect nocache":                                   "SRV",
		"stats socket {{ x }} mode 600 level admin":                                "/run/s",
		"{{ x }}backend b":                                                         "",
		"server s a:80 {{ x }}":                                                    "",
		"server s a:80 {{ raw(x.(string)) }}":                                      "backup check",
		"{{ raw(x.(string)) }}":                                                    "http-request deny",
		"http-request {{ raw(x.(string)) }} if { path {{ x }} }":                   "deny",
		"use_backend {{ x }} if { path /a }":                                       "b",
		"userlist {{ x }}\n user {{ x }} insecure-password {{ x }} groups {{ x }}": "a",
	} {
		got, err := render(t, x, "haproxy.cfg", template)
		check(t, got, err, strings.NewReplacer("{{ x }}", x, "{{ raw(x.(string)) }}", x).Replace(template), "")
	}
}

// TestChoicesOfMacros: the first word of a macro's text may stand anywhere, and
// is refused where it would be a choice if a value is in it.
func TestChoicesOfMacros(t *testing.T) {
	const name, words = "{% macro M(a, b any) %}{{ a }}_{{ b }}{% end %}", "{% macro S(x any) %}server {{ x }} a{% end %}"
	for _, tt := range []struct{ template, refused string }{
		{name + `{{ M("use", x) }} a`, "what a line is"},
		{name + `{{ M("use", x) }} a`, "what a line is"},
		{name + `{% macro N(x any) %}{{ M("use", x) }} a{% end %}{{ N(x) }}`, "what a line is"},
		{name + `server s a {{ M("use", x) }}`, "cannot choose an option"},
		{name + `backend {{ M("use", x) }}`, ""},
		{name + `server s a weight {{ M("use", x) }}`, ""},
		{words + "{{ S(x) }}", ""},
		{"{% macro M(x any) %}{% if x != `` %}check inter {{ x }}{% end %}{% end %}server s a {{ M(x) }}", ""},
		{"{% macro M(x any) %}{{ raw(`server`) }} {{ x }}{% end %}{{ M(x) }} a", ""},
		{"{% import \"_m.cfg\" %}{{ First(x) }} a", "what a line is"},
	} {
		got, err := render(t, "backend", "haproxy.cfg", tt.template, "_m.cfg", "{% macro First(x any) %}{{ x }}{% end %}")
		if tt.refused != "" {
			check(t, got, err, "", tt.refused)
		} else if err != nil {
			t.Errorf("%s: %v", tt.template, err)
		}
	}
}

// TestAdjacentValues has two values beside each other that make a word which
// neither is.
func TestAdjacentValues(t *testing.T) {
	for _, tt := range []struct{ template, a, b, refused string }{
		{"acl c path {{ a }}{{ b }} /x", "", "-f", "flag"},
		{"acl c path {{ a }}{{ b }} /x", "-", "f", "flag"},
		{"acl c path_reg {{ a }}{{ b }} /x", "", "-f", "flag"},
		{"acl c path {{ a }}{{ b }} /x", "", "", "join"},
		{"http-request deny if {{ a }}{{ b }}", "o", "r", "condition"},
		{"http-request deny if {{ a }}{{ b }}", "", "or", "join"},
		{"http-request deny if { path {{ a }}{{ b }} }", "", "}", "join"},
		{"unheard-of {{ a }}{{ b }} TRUE", "i", "f", "condition"},
		{"unheard-of {{ a }}{{ b }} TRUE", "un", "less", "condition"},
		{"server {{ a }}{{ b }} 192.0.2.1", "", "", "join"},
		{"server {{ a }}{{ b }} 192.0.2.1", "a", "", ""},
		{"server {{ a }}{{ b }} 192.0.2.1", "a", "b", ""},
		{"server {{ a }}{{ b }}-c 192.0.2.1", "", "or", ""},
		{"server s {{ a }}{{ b }}", "unix", "@/run/x", "not a host"},
		{"server s {{ a }}{{ b }}", "-", "x", "not a host"},
		{"server s {{ a }}{{ b }}", "", "192.0.2.1", "join"},
		{"server s {{ a }}{{ b }}:80", "192.0.2", "", "another address"},
		{"server s {{ a }}:{{ b }}", "", "80", "another address"},
		{"server s {{ a }}:{{ b }}", "192.0.2.1", "", "another address"},
		{"server s ipv4@{{ a }}:{{ b }}", "", "80", "another address"},
		{"bind {{ a }}:{{ b }}", "", "80", "another address"},
		{"server s {{ a + b }}:80", "", "192.0.2.1", ""},
		{"stats auth {{ a }}:{{ b }}", "admin", "", "anybody"},
		{"stats auth {{ a }}:{{ b }}", "", "secret", "anybody"},
		{"bind :443 ssl crt /c/{{ a }}{{ b }}", "", "", "another path"},
		{"bind :443 ssl crt {{ a }}/{{ b }}", "", "x.pem", "another path"},
		{"bind :443 ssl crt {{ a }}/{{ b }}", "/c", "x.pem", ""},
		{"stats socket {{ a }}/{{ b }}", "/run", "", "another path"},
		{"use_backend %[path,map({{ a }}/{{ b }})]", "", "x.map", "another path"},
		{"errorfile 503 /e/{{ a }}{{ b }}/f", ".", ".", "a name in it"},
		{"errorfile 503 /e/{{ a }}{{ b }}/f", ".", "./..", "a name in it"},
		{"errorfile 503 {{ a }}{{ b }}", "/e/", "../f", ".."},
		{"errorfile 503 {{ a }}{{ b }}", "", "@x", "path"},
		{"http-request set-header X {{ a }}{{ b }}", "%", "[env(HOME)]", ""},
		{"http-request set-header X {{ a }}{{ b }}", "%[", "src]", ""},
		{"http-request set-var(txn.a) var({{ a }}{{ b }})", "pro", "c.secret", "process"},
		{"http-request set-var(txn.a) var({{ a }}{{ b }})", "", "proc.secret", "process"},
		{"http-request set-var(txn.a) var({{ a }})", "proc.secret", "", "process"},
		{"http-request set-var(txn.a) var({{ a }}.{{ b }})", "proc", "secret", "process"},
		{"http-request set-var(txn.a) var({{ a }}.{{ b }})", "txn", "a", ""},
		{"http-request set-var({{ a }}) path", "proc.secret", "", "process"},
		{"http-request set-var(txn.a) var({{ a }})", "txn.host", "", ""},
		{"http-request set-var(txn.a) path,map(/m/{{ a }}{{ b }})", ".", "./x", "a name in it"},
		{"http-request set-var(txn.a) path,map(/m/x.map,{{ a }}{{ b }})", "a", ",b)", ""},
		{"http-request set-path {{ a }}{{ b }}", `\`, "n", ""},
		{"retry-on {{ a }}{{ b }}", `\`, `"`, ""},
		{"{% for _, c := range []string{a, b} %}{{ c }}{% end %}", "http-", "request", "what a line is"},
		{"acl c path {% for _, c := range []string{a, b} %}{{ c }}{% end %} /x", "", "-f", "flag"},
	} {
		e := compile(t, files("haproxy.cfg", tt.template), &templating.Options{Vars: map[string]any{"a": "", "b": ""}})
		got, err := e.Render(t.Context(), "haproxy.cfg", map[string]any{"a": tt.a, "b": tt.b})
		switch {
		case tt.refused == "" && err != nil:
			t.Errorf("%s with %q and %q: %v", tt.template, tt.a, tt.b, err)
		case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
			t.Errorf("%s with %q and %q: got %q, %v; want it refused: %s", tt.template, tt.a, tt.b, got, err, tt.refused)
		}
	}
}
