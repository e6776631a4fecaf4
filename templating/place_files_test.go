package templating_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestFilesSayWhatTheyAreFor has values in files by what HAProxy reads them for.
func TestFilesSayWhatTheyAreFor(t *testing.T) {
	const plain = "not plain enough"
	for _, tt := range []struct{ entry, template, x, want, refused string }{
		{"a_reg.map", "{{ x }} v\n", ".*", `\.\* v`, ""},
		{"a_reg.map", "^{{ x }}$ {{ x }}\n", "a.b", `^a\.b$ a.b`, ""},
		{"a_reg.map", "^[{{ x }}]$ v\n", "a", "", "in brackets"},
		{"a_reg.map", "\\{{ x }} v\n", "d", "", "behind a backslash"},
		{"a_reg.map", "{{ x }} v\n", "a b", "", "ends the key"},
		{"a_reg.map", "{{ raw(x) }} v\n", ".*", ".* v", ""},
		{"a_reg.map", "{{ regex(x) }} v\n", "^/a.*", "^/a.* v", ""},
		{"a_reg.map", "{{ regex(x) }} v\n", "a b", "", "ends the key"},
		{"a.map", "{{ regex(x) }} v\n", "a", "", "reads a regular expression"},
		{"a_reg.map", "{{ sanitize_regex(x) }} v\n", "a.b", `a\.b v`, ""},
		{"a_reg.map", "{% macro M(x string) %}{{ x }} v\n{% end %}{{ M(x) }}", "a.b", `a\.b v`, ""},
		{"a_reg.lst", "{{ x }}\n", ".*", `\.\*`, ""},
		{"a_reg.acl", "^{{ x }}\n", "-f a|b", `^-f a\|b`, ""},
		{"a.map", "{{ x }} v\n", "a.b/c", "a.b/c v", ""},
		{"a.lst", "{{ x }}\n", ".*", ".*", ""},

		{"a_lf.html", "<p>{{ x }} %ci</p>\n", "%[env(HOME)]", "<p>%%[env(HOME)] %ci</p>", ""},
		{"a_lf.txt", "%{{ x }}", "ci", "", "right behind a %"},
		{"a_lf.txt", "%\n{{ x }}", "ci", "%\nci", ""},
		{"a_lf.txt", "%[req.hdr(\n{{ x }})]", "a)", "%[req.hdr(\n\"a)\")]", ""},
		{"a_lf.txt", "%[\n{{ x }}]", "env(HOME)", "", "cannot choose a sample fetch"},

		{"a.txt", "/c/{{ x }} h\n", "../x", "", "out of the folder"},
		{"a.txt", "/c/{{ x }} h\n", "a/x", "", "a name in it"},
		{"a.txt", "{{ x }} h\n", "/c/x.pem", "/c/x.pem h", ""},
		{"a.txt", "{{ x }} h\n", "/c/../x.pem", "", "out of the folder"},
		{"a.txt", "/c/x.pem [{{ x }} none] h\n", "verify", "", "cannot choose an option"},
		{"a.txt", "/c/x.pem [{{ x }}fy none] h\n", "veri", "", "cannot choose an option"},
		{"a.txt", "/c/x.pem [verify {{ x }}] h\n", "required", "/c/x.pem [verify required] h", ""},
		{"a.txt", "/c/x.pem [alpn h2 ca-file /c/{{ x }}] h\n", "../x", "", plain},
		{"a.txt", "/c/x.pem [alpn {{ x }}] h\n", "h2] x", "", plain},
		{"a.txt", "/c/x.pem[alpn {{ x }}] h\n", "a/b", "", plain},
		{"a.txt", "/c/x.pem {{ x }}\n", "*.a.test", "/c/x.pem *.a.test", ""},
		{"a.txt", "/c/x.pem [alpn h2] a {{ x }}\n", "!a.test", "", "the name of a server"},

		{"a.dat", "a {{ x }}\n", "a.b-c_d:1", "a a.b-c_d:1", ""},
		{"a.dat", "a {{ x }}\n", ".*", "", "does not show"},
		{"a.dat", "a {{ x }}\n", "a/b", "", "does not show"},
		{"a.dat", "a {{ raw(x) }}\n", "a/b", "a a/b", ""},
	} {
		e, err := templating.Compile(files(tt.entry, tt.template), &templating.Options{Vars: map[string]any{"x": ""}})
		got := ""
		if err == nil {
			got, err = e.Render(t.Context(), tt.entry, map[string]any{"x": tt.x})
		}
		if tt.refused == "" && (err != nil || strings.TrimSuffix(got, "\n") != tt.want) || tt.refused != "" && !isRefused(err, tt.refused) {
			t.Errorf("%s: %q with %q: got %q, %v; want %q, refused %q", tt.entry, tt.template, tt.x, got, err, tt.want, tt.refused)
		}
	}
}

// TestHAProxyReadsFiles has HAProxy check what hostile values become in each file.
func TestHAProxyReadsFiles(t *testing.T) {
	haproxy := haproxyOr(t)
	dir := t.TempDir()
	for _, x := range []string{"plain", "a.b*c+d?[e]{2}^$|(f)", "%[env(HOME)]", "%", `back\slash`, "it's", `say"hi`, "(", "[", "ü"} {
		for name, template := range map[string]string{"m_reg.map": "^{{ x }}$ {{ x }}\n", "l_reg.lst": "^{{ x }}$\n", "p_lf.html": "<p>{{ x }} %ci</p>"} {
			e := compile(t, files(name, template), &templating.Options{Vars: map[string]any{"x": ""}})
			text, err := e.Render(t.Context(), name, map[string]any{"x": x})
			require.NoError(t, err)
			writeFile(t, dir, name, text)
		}
		cfg := strings.ReplaceAll(`defaults
  mode http
  timeout client 1s
  timeout server 1s
  timeout connect 1s
frontend f
  bind unix@DIR/s
  http-request deny if { path,map_reg(DIR/m_reg.map) -m found } { path -m reg -f DIR/l_reg.lst }
  http-request return status 200 content-type text/html lf-file DIR/p_lf.html
`, "DIR", dir)
		writeFile(t, dir, "haproxy.cfg", cfg)
		if out, err := exec.Command(haproxy, "-c", "-f", filepath.Join(dir, "haproxy.cfg")).CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", x, err, out)
		}
	}
}
