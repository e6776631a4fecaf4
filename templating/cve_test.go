package templating_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/templating"
)

// TestCVEs has the attacks on other controllers, by number, as they would be
// made here: what a resource says goes into a template, and either is refused
// or changes nothing but the word where it stands. Where the advisory names the
// field, so does the case.
func TestCVEs(t *testing.T) {
	tests := []struct {
		cve, what       string
		entry, template string
		values          []string // hostile
		allRefused      bool
	}{
		{cve: "CVE-2021-25742", what: "snippet annotation: directives of the tenant's own, which read the controller's token", entry: "haproxy.cfg",
			template: "backend b\n  {{ x }}\n  server s 192.0.2.1:80\n", allRefused: true,
			values: []string{"errorfile", "lua-load", "http-request", "a\nhttp-request return status 200", "backend"}},
		{cve: "CVE-2021-25745", what: "path of a rule with directives in it", entry: "haproxy.cfg",
			template: "frontend f\n  use_backend b if { path_beg {{ x }} }\n",
			values:   []string{"/a } || { src 0.0.0.0/0", "/a\n  use_backend evil", "-f", "}", "/a # ", "/a\" or \"", "/${TOKEN}"}},
		{cve: "CVE-2021-25746", what: "annotation with directives in it", entry: "haproxy.cfg",
			template: "backend b\n  http-request set-header X-From \"{{ x }}\"\n  http-request add-header X-Via {{ x }}\n",
			values:   []string{"a\"\n  http-request return file /etc/passwd", "1s\n  server evil 192.0.2.9:80", "%[env(TOKEN)]", "${TOKEN}", `\"`}},
		{cve: "CVE-2021-25748", what: "line feed in a path goes round the check of CVE-2021-25745", entry: "prefix.map", allRefused: true,
			template: "x.test{{ x }} ns_b_80\n", values: []string{"/\ngood.test/ ns_evil_80", "/\rgood.test/ ns_evil_80", "/a ns_evil_80", "/a\tns_evil_80", "/\x00"}},
		{cve: "CVE-2024-7646", what: "carriage return in an annotation goes round the check of its values", entry: "haproxy.cfg", allRefused: true,
			template: "backend b\n  http-request set-header X \"{{ x }}\"\n", values: []string{"a\rhttp-request deny", "a\r\nX-Admin: 1", "\r", "a\x0bb", "a\x0cb"}},
		{cve: "CVE-2025-24513", what: "name that becomes a part of a file's path leads out of the folder", entry: "haproxy.cfg", allRefused: true,
			template: "frontend f\n  errorfile 503 /etc/haproxy/errors/{{ x }}.http\n  http-request set-var(txn.b) path,map_str(/etc/haproxy/maps/{{ x }}.map)\n",
			values:   []string{"../../etc/passwd", "..", "a/../../b", "/etc/passwd", "a/b", ".", "a\x00", "a)", "$HOME"}},
		{cve: "CVE-2025-24514", what: "auth-url annotation ends the string where it stands", entry: "haproxy.cfg",
			template: "backend auth\n  http-request set-header X-Auth-Url \"{{ x }}\"\n  http-request redirect location {{ x }} if { path /login }\n",
			values:   []string{"http://x/#;}\n}\nssl_engine ../a.so", `http://x/" if TRUE`, "http://x/%[env(TOKEN)]", "http://x/ code 301", `http://x/\`}},
		{cve: "CVE-2025-1097", what: "auth-tls-match-cn annotation: a regular expression that ends its string", entry: "haproxy.cfg",
			template: "frontend f\n  http-request deny unless { ssl_c_s_dn(cn) -m reg ^{{ x }}$ }\n  acl cn ssl_c_s_dn(cn),regsub({{ x }},ok) -m str ok\n",
			values:   []string{"CN=.*", "a|.*", "a$ }\n}\n", "a),str(ok", `a"),str("ok`, "}", `\`, "(?i)a", "[a"}},
		{cve: "CVE-2025-1098", what: "mirror annotations: a target that ends its line, a UID", entry: "haproxy.cfg",
			template: "backend b\n  server mirror {{ x }}:80 check\n  server s {{ x }}\n  server t unix@{{ x }}\n", allRefused: true,
			values: []string{"x.test;\n}", "x.test check\n  server evil 192.0.2.9", "unix@/run/admin.sock", "fd@3", "/run/admin.sock", "${TOKEN}", "a,b", "a b", `a"b`}},
		{cve: "CVE-2025-1974", what: "the admission controller loads a file through an injected directive: a configuration that is only checked is as dangerous", entry: "haproxy.cfg",
			template: "global\n  {{ x }} /tmp/evil\nbackend b\n  server s 192.0.2.1:80 {{ x }}\n", allRefused: true,
			values: []string{"lua-load", "ssl-engine a\nlua-load", "ssl-provider-path", "setenv", "external-check", "a(b)", "%[env(A)]", "chroot"}},
		{cve: "CVE-2026-24512", what: "path of a rule of type ImplementationSpecific with directives in it", entry: "haproxy.cfg",
			template: "frontend f\n  acl p path_reg ^{{ x }}\n  http-request set-path {{ x }} if p\n  http-request replace-path {{ x }} {{ x }}\n",
			values:   []string{`/a"; return 200`, "/a\n  http-request deny", `/(.*)\n`, `/\1`, "/%[env(TOKEN)]", "/a { }", "/${TOKEN}", "/a#b"}},
		{cve: "CVE-2026-4342", what: "annotations that together end a comment, or a string", entry: "haproxy.cfg",
			template: "backend b # {{ x }}\n  # {{ x }} {{ x }}\n  http-request set-header X-A \"{{ x }}\" if { hdr(a) -m str \"{{ x }}\" }\n  http-request set-header {{ x }} {{ x }}{{ x }}\n",
			values:   []string{`\`, `"`, "%", `a\`, "%[", "]", "{", "${", "}", "'", "\nhttp-request deny", "\r", "\u0085a", "*/"}},
		{cve: "CVE-2025-24030", what: "path of a request or a name that leads to the admin interface", entry: "haproxy.cfg", allRefused: true,
			template: "backend b\n  server s {{ x }}\n  use-server {{ x }} if TRUE\n", values: []string{"unix@/run/haproxy.sock", "/run/haproxy.sock", "../stats/prometheus", "s/../..", "abns@admin", "127.0.0.1:9999/../quitquitquit"}},
		{cve: "CVE-2025-24030", what: "the runtime socket, behind the family that the author wrote", entry: "haproxy.cfg", allRefused: true,
			template: "backend b\n  server s unix@{{ x }}\n  server t abns@{{ x }}\n", values: []string{"/run/haproxy.sock", "admin", "fd@3", "/"}},
		{cve: "CVE-2025-24030", what: "a second address, beside the socket to listen on", entry: "haproxy.cfg", allRefused: true,
			template: "frontend f\n  bind unix@{{ x }}\n", values: []string{"/run/s,:9999", "/run/s,ipv4@:9999", "/run/s level admin", "/run/s,fd@3", ",:9999", "/run/s/../haproxy.sock", "/run/s$HOME", "@3"}},
		{cve: "CVE-2025-24030", what: "a second address, beside the runtime socket", entry: "haproxy.cfg", allRefused: true,
			template: "global\n  stats socket {{ x }} level admin\n", values: []string{"/run/s,:9999", "/run/s,ipv4@:9999", "/run/s level admin", "/run/s,fd@3", ",:9999", "/run/s/../haproxy.sock", "/run/s$HOME", "@3"}},
	}
	for _, tt := range tests {
		t.Run(tt.cve, func(t *testing.T) {
			e := compile(t, files(tt.entry, tt.template), &templating.Options{Vars: map[string]any{"x": ""}})
			for _, x := range tt.values {
				out, err := e.Render(t.Context(), tt.entry, map[string]any{"x": x})
				if err != nil {
					continue
				}
				require.False(t, tt.allRefused, "%s: %q makes\n%s", tt.what, x, out)
				sameStructure(t, tt.what, strings.ReplaceAll(tt.template, "{{ x }}", "x"), out)
			}
		})
	}
}

// sameStructure fails if two configurations differ in more than the text of
// words: in lines, words of a line, sections, or whether a variable expands.
func sameStructure(t *testing.T, what, want, got string) {
	t.Helper()
	wantLines, gotLines := strings.Split(want, "\n"), strings.Split(got, "\n")
	require.Len(t, wantLines, len(gotLines), "%s: another structure:\n", what)
	require.Len(t, haproxycfg.Split(want), len(haproxycfg.Split(got)), "%s: another structure:\n", what)
	for i := range wantLines {
		w, _ := haproxycfg.Fields(wantLines[i])
		g, err := haproxycfg.Fields(gotLines[i])
		if err != nil || len(w) != len(g) || len(w) > 0 && w[0] != g[0] {
			t.Fatalf("%s: %q became %q, %v", what, w, g, err)
		}
		require.NotContains(t, strings.ReplaceAll(gotLines[i], "%%", ""), "%[", "%s: an expression", what)
	}
}
