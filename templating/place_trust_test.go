package templating_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestMadeWords has words that mean something to HAProxy and that a value makes with
// the text of the template and with other values.
func TestMadeWords(t *testing.T) {
	const macro = "{% macro M(x string) %}{{ x }}{% end %}"
	for _, tt := range []struct{ template, a, b, refused string }{
		{"compression direction {{ a }}f", "i", "", ""}, // the place of a text
		{"unheard-of {{ a }}f TRUE", "i", "", "condition"},
		{"unheard-of i{{ a }} TRUE", "f", "", "condition"},
		{"unheard-of i{{ a }}f TRUE", "", "", "condition"},
		{"unheard-of un{{ a }}ss TRUE", "le", "", "condition"},
		{"unheard-of u{{ a }}l{{ b }}s TRUE", "n", "es", "condition"},
		{"unheard-of {{ a }}f TRUE", "sti", "", ""},
		{"unheard-of {{ a }}f TRUE", "", "", ""},
		{`unheard-of {{ a }}""{{ b }} TRUE`, "i", "f", "condition"},
		{`unheard-of {{ a }}''{{ b }} TRUE`, "i", "f", "condition"},
		{`unheard-of "{{ a }}"f TRUE`, "i", "", "condition"},
		{`unheard-of {{ a }}{{ raw("f") }} TRUE`, "i", "", "condition"},
		{`unheard-of {{ a }}\f`, "i", "", ""},
		{"unheard-of {% if b == `` %}i{% end %}{{ a }}", "f", "", "condition"},
		{"unheard-of {% for _, c := range split(a, ``) %}{{ c }}{% end %}", "unless", "", "condition"},
		{"unheard-of u{% for _, c := range split(a, ``) %}{{ c }}{% end %}s", "nles", "", "condition"},
		{"http-request deny if a {{ a }}r b", "o", "", "condition"},
		{"http-request deny if a {{ a }}r b", "colo", "", ""},
		{"http-request deny if { path /a {{ a }}} }", "", "", "condition"},
		{macro + "unheard-of {{ M(a) }}f", "i", "", "condition"},
		{macro + "unheard-of i{{ M(a) }}", "f", "", "condition"},
		{macro + "unheard-of {{ M(a) }}{{ M(b) }}", "i", "f", "condition"},
		{macro + "unheard-of {{ M(a) }}{{ b }}", "i", "f", "condition"},
		{"{% macro N(x string) %}a {{ x }}{% end %}unheard-of {{ N(a) }}f", "i", "", "condition"},
		{"{% macro If() %}if{% end %}http-request deny {{ If() }} {{ a }}", "blocked", "", ""},
		{"acl c path -{{ a }} /x", "f", "", "flag"},
		{"acl c path -{{ a }} /x", "-", "", "flag"},
		{"acl c path -- -{{ a }} /x", "f", "", ""},
		{"http-check expect hdr name -{{ a }} b", "m", "", "flag"},
		{"http-request deny if { req.fhdr(a) lo{{ a }} /x }", "wer", "", "converter"},
		{"http-request deny if { req.fhdr(a) {{ a }}(/x) /x }", "map", "", "converter"},
		{"http-request deny if { req.fhdr(a) {{ a }}p(/x) /x }", "ma", "", "converter"},
		{"http-request deny if { req.fhdr(a) lo{{ a }} /x }", "west", "", ""},
		{macro + "http-request deny if { req.fhdr(a) {{ M(a) }} /x }", "lower", "", "converter"},
		{"http-request deny if { req.hdr_cnt(a) g{{ a }} 5 }", "e", "", "operator"},
		{"log 192.0.2.1 {{ a }} 80 local0", "len", "", "an option"},
		{"log 192.0.2.1 l{{ a }} 80 local0", "en", "", "an option"},
		{"server s 192.0.2.1 unheard-of {{ a }}", "backup", "", "an option"},
		{"server s 192.0.2.1 unheard-of ba{{ a }}", "ckup", "", "an option"},
	} {
		checkTrust(t, tt.template, tt.a, tt.b, tt.refused)
	}
}

// TestFailsClosed has what HAProxy reads in ways that the tables did not know once,
// and what they do not know: that is letters, digits, ".", "-", "_" and ":".
func TestFailsClosed(t *testing.T) {
	const plain, path, address, html, number = "not plain enough", "out of the folder", "not a host", "page of", "not a number"
	for _, tt := range []struct{ template, a, refused string }{
		{"dispatch {{ a }}", "$HOME", address},
		{"dispatch {{ a }}", "unix@/run/x", address},
		{"dispatch {{ a }}:80", "192.0.2.1", ""},
		{`http-request set-header X "a\x{{ a }}"`, "0a", `behind \x`},
		{`http-request set-header X "a\x0{{ a }}"`, "a", `behind \x`},
		{`http-request set-header X a\x0{{ a }}`, "a", `behind \x`},
		{`http-request set-header X "a\x20{{ a }}"`, "0a", ""},
		{`http-request set-header X 'a\x{{ a }}'`, "0a", ""},
		{".if 0 && {{ a }}", "0||1", plain},
		{".if streq({{ a }},b)", `a,a)||streq(b`, plain},
		{".elif {{ a }}", "1||1", plain},
		{"stats show-desc {{ a }}", "<script>", html},
		{"stats uri {{ a }}", `/"onclick=`, html},
		{"description {{ a }}", "<img src=x>", html},
		{"description {{ a }}", `it's "ours"`, ""},
		{"server-state-file-name {{ a }}", "../x", path},
		{"lua-prepend-path {{ a }}/?.lua", "/tmp/..", path},
		{"h1-case-adjust-file {{ a }}", "../x", path},
		{"default-bind crt /c/{{ a }}", "../x", path},
		{"backing-file {{ a }}", "../x", path},
		{"stats-file {{ a }}", "../x", path},
		{"httpclient.ssl.ca-file {{ a }}", "../x", path},
		{"default-path origin {{ a }}", "../x", path},
		{"server s 192.0.2.1 namespace {{ a }}", "../x", "not a name"},
		{"http-request set-var(txn.a) int(1),add({{ a }})", "proc.n", number},
		{"http-request set-var(txn.a) int(1),add({{ a }})", "txn.n", number},
		{"http-request set-var(txn.a) int(1),add({{ a }})", "-5", ""},
		{"http-request set-var(txn.a) int(1),add(txn.{{ a }})", "n", ""},
		{"http-request set-header X %[path,bytes(0,{{ a }})]", "proc.n", number},
		{"http-request set-var(txn.a) path,hmac(sha256,{{ a }})", "proc.n", "not a constant"},
		{"http-request set-var(txn.a) path,hmac(sha256,{{ a }})", "c2VjcmV0+/==", ""},
		{"http-request set-var(txn.a) path,jwt_verify({{ a }},/k)", "txn.alg", "not a constant"},
		{"http-request set-var(txn.a) path,unheard_of({{ a }})", "a/b", plain},
		{"http-request set-var(txn.a) path,unheard_of({{ a }})", "a.b-c_d:1", ""},
		{"http-request set-var(txn.a) lua.f({{ a }})", "a b", ""},
		{"stick-table type ip size 1k store http_req_rate({{ a }})", "a/b", plain},
		{"unheard-of {{ a }}", "a/b", `behind "unheard-of", not plain enough`},
		{"unheard-of {{ a }}", "a b", plain},
		{"unheard-of {{ a }}", "$HOME", plain},
		{"unheard-of {{ a }}", "a.b-c_d:1", ""},
		{"unheard-of {{ raw(a) }}", "/a/b", ""},
		{"server s 192.0.2.1 unheard-of {{ a }}", "../x", `behind "unheard-of", not plain enough`},
		{"{% macro M(x string) %}/etc/{{ x }}{% end %}unheard-of {{ M(a) }}", "..", plain},
		{"{% macro M(x string) %}{{ x }}{% end %}http-request set-path {{ M(a) }}", "/a b", "end the path"},
		{"{% macro M(x string) %}{{ x }}{% end %}description {{ M(a) }}", "<b>", html},
		{"{% macro M(x string) %}{{ x }}{% end %}http-request return string {{ M(a) }} if { path {{ a }} }", "/a", ""},
		{"{% macro M(x string) %}\n http-request set-path {{ x }}\n{% end %}{{ M(a) }}http-request set-path {{ a }}", "/a", ""},
		{"{% macro M(x string) %}{% if x != `` %}acl c path {{ x }}\n{% end %}{% end %}{{ M(a) }}http-request set-path {{ a }}", "/a", ""},
	} {
		checkTrust(t, tt.template, tt.a, "", tt.refused)
	}
}

func checkTrust(t *testing.T, template, a, b, refused string) {
	t.Helper()
	e, err := templating.Compile(files("haproxy.cfg", template), &templating.Options{Vars: map[string]any{"a": "", "b": ""}})
	got := ""
	if err == nil {
		got, err = e.Render(t.Context(), "haproxy.cfg", map[string]any{"a": a, "b": b})
	}
	require.False(t, refused == "" && err != nil, "%s with %q and %q: got %q, %v; refused should be %q", template, a, b, got, err, refused)
	require.False(t, refused != "" && !isRefused(err, refused), "%s with %q and %q: got %q, %v; refused should be %q", template, a, b, got, err, refused)
}
