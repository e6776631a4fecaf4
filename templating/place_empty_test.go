package templating_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestEmptyValues: a value of nothing is refused where HAProxy would read what
// stands behind it in its place, end the line there, or take a name of nothing for
// all names.
func TestEmptyValues(t *testing.T) {
	const (
		slides = "the next word would take its place"
		ends   = "for the end of its line"
		all    = "all that there are"
	)
	for template, refused := range map[string]string{
		// Of 2.6 to 3.2, HAProxy accepts these with nothing in place of x, and denies all.
		"http-request deny if {{ x }}":                                               slides,
		"http-request deny unless {{ x }}":                                           slides,
		`http-request deny if "{{ x }}"`:                                             ends,
		`http-request deny if "{{ x }}" { path /a }`:                                 ends,
		`http-request deny if '{{ x }}' { path /a }`:                                 ends,
		`http-request deny if TRUE "{{ x }}" { path /a }`:                            ends,
		`tcp-request connection reject if "{{ x }}"`:                                 ends,
		"http-request deny if !{{ x }} { path /a }":                                  slides,
		"http-request deny if ! {{ x }} { path /a }":                                 slides,
		"http-request deny deny_status {{ x }} if TRUE":                              slides,
		"http-request deny if { path {{ x }} /a }":                                   slides,
		`acl a path -- "{{ x }}" /a`:                                                 ends,
		`acl a src -- "{{ x }}" 10.0.0.0/8`:                                          ends,
		`server s 192.0.2.1:80 cookie "{{ x }}" ssl verify required`:                 ends,
		`server s 192.0.2.1:80 "{{ x }}" ssl verify required`:                        ends,
		`http-request set-var-fmt(txn.a) "{{ x }}" if { path /a }`:                   ends,
		`option httpchk GET "{{ x }}" HTTP/1.1`:                                      ends,
		`capture cookie "{{ x }}" len 3`:                                             ends,
		`"{{ x }}" a`:                                                                ends,
		"{% if x == `` %}http-request deny if \"{{ x }}\"{% end %}":                  ends,
		"{% macro M(s string) %}deny if \"{{ s }}\"{% end %}http-request {{ M(x) }}": ends,

		// What stands behind it would be the method, the sample or the variable.
		"http-request deny if { var(txn.a) -m {{ x }} str a }": slides,
		"http-request set-var(txn.a) {{ x }} if TRUE":          slides,
		"global\n  setenv {{ x }} a":                           slides,

		// The header of any name, the cookie, the parameter, the backend.
		"http-request deny if { req.hdr({{ x }}) -m str a }":            all,
		`http-request deny if { req.hdr("{{ x }}") -m str a }`:          all,
		"http-request deny if { req.hdr('{{ x }}') -m str a }":          all,
		"http-request deny if { req.hdr(a,{{ x }}) -m str a }":          all,
		"http-request deny if { path -m str a } { hdr_beg({{ x }}) a }": all,
		"use_backend b if { req.cook({{ x }}) -m str always }":          all,
		"use_backend b if { url_param({{ x }}) -m str always }":         all,
		"use_backend b if { nbsrv({{ x }}) lt 1 }":                      all,
		`http-request set-header X "%[req.hdr({{ x }}),lower]"`:         all,
		"http-request track-sc0 req.hdr({{ x }})":                       all,
		"stick on req.cook({{ x }}) table t":                            all,
		"http-request deny if { sc_http_req_rate(0,{{ x }}) gt 1 }":     all,

		// Nothing is a text like another, or a part of a word.
		"http-request set-header X %[str({{ x }}),concat({{ x }}),map_str(/a.map,{{ x }})]": "",
		"http-request set-header X %[str(a),regsub(a,{{ x }})]":                             "",
		"http-request deny if { req.hdr(X-{{ x }}) -m str a }":                              "",
		"http-request deny if { req.hdr({{ x }}X) -m str a }":                               "",
		`http-request set-header X "{{ x }} a"`:                                             "",
		`http-request set-header X "a {{ x }}"`:                                             "",
		"http-request set-header X {{ x }}%[src]":                                           "",
		"http-request deny if { path a{{ x }} }":                                            "",
		"http-request deny{% if x != `` %} if {{ x }}{% end %}":                             "",
		"server s 192.0.2.1:80 {{ x }}":                                                     "",
		"# {{ x }}":                                                                         "",
		`# "{{ x }}"`:                                                                       "",
	} {
		e := compile(t, files("haproxy.cfg", template), &templating.Options{Vars: map[string]any{"x": ""}})
		got, err := e.Render(t.Context(), "haproxy.cfg", map[string]any{"x": ""})
		require.False(t, refused == "" && err != nil, "%s: got %q, %v; refused should be %q", template, got, err, refused)
		require.False(t, refused != "" && !isRefused(err, refused), "%s: got %q, %v; refused should be %q", template, got, err, refused)
		if _, err := e.Render(t.Context(), "haproxy.cfg", map[string]any{"x": "7"}); err != nil && !isRefused(err, "a value cannot choose") {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// TestStored: what a table stores is no more than the template says.
func TestStored(t *testing.T) {
	const template = "stick-table type ip size 1k store http_req_rate({{ x }}),gpc0"
	for x, refused := range map[string]string{"10s": "", "1s),gpc1,http_err_rate(2s": "not plain enough", "1s),conn_cur": "not plain enough"} {
		got, err := renderWith(t, x, "haproxy.cfg", template)
		want := ""
		if refused == "" {
			want = "stick-table type ip size 1k store http_req_rate(10s),gpc0"
		}
		check(t, got, err, want, refused)
	}
	got, err := renderWith(t, "gpc0,conn_cur", "haproxy.cfg", "stick-table type ip size 1k store {{ x }}")
	check(t, got, err, "stick-table type ip size 1k store gpc0,conn_cur", "")
}

// TestMissingConditions: a rule whose condition is not written is none that applies
// always. HAProxy 2.6 to 3.2 accept each of those that are refused.
func TestMissingConditions(t *testing.T) {
	for template, refused := range map[string]bool{
		"http-request deny if {% if x != `` %}{ path {{ x }} }{% end %}\n":                                        true,
		"http-request deny if{% if x != `` %} { path {{ x }} }{% end %}":                                          true,
		"http-request deny unless {% for _, a := range split(x, `a`) %}{% if a != `` %}{{ a }}{% end %}{% end %}": true,
		"backend b\n  http-request deny if {% if x != `` %}a{% end %} # why\n":                                    true,
		"\thttp-request deny deny_status 429 if\t{% if x != `` %}a{% end %}\n":                                    true,
		"use_backend b if {% if x != `` %}a{% end %}":                                                             true,
		"redirect location / if {% if x != `` %}a{% end %}":                                                       true,
		"tcp-request content reject unless {% if x != `` %}a{% end %}":                                            true,
		"{% macro R(x string) %}http-request deny if {% if x != `` %}a{% end %}\n{% end %}{{ R(x) }}":             true,
		"http-request deny \"if\" {% if x != `` %}a{% end %}":                                                     false, // not what is looked for
		"http-request deny if{% if x == `` %} TRUE{% end %}":                                                      false,
		"http-request set-header X if":                                                                            false,
		"http-request return status 200 string if":                                                                false,
		"http-request deny if if":                                                                                 false,
		"http-request deny if a # if":                                                                             false,
		"server s 192.0.2.1:80 cookie if":                                                                         false,
		"description what if":                                                                                     false,
		"# http-request deny if":                                                                                  false,
	} {
		e := compile(t, files("haproxy.cfg", template), &templating.Options{Vars: map[string]any{"x": ""}})
		got, err := e.Render(t.Context(), "haproxy.cfg", map[string]any{"x": ""})
		require.Equal(t, isRefused(err, "has no condition"), refused, template)
		require.False(t, !refused && err != nil, "%s: got %q, %v", template, got, err)
		texts, err := e.RenderEach(t.Context(), "haproxy.cfg", "x", []any{"", ""}, nil)
		require.Equal(t, isRefused(err, "has no condition"), refused, "%s: each: got %q", template, texts)
	}
}

func isRefused(err error, why string) bool {
	for _, e := range templating.Errors(err) {
		if strings.Contains(e.Message, why) {
			return true
		}
	}
	return false
}
