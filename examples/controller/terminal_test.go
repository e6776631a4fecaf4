package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// TestTerminal: whatever a resource says, it neither clears the terminal of who looks
// at it nor forges a line there. What is wrong, refused, quarantined and planned is
// still named.
func TestTerminal(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	const hostile = `web\e[2J\x7f\x9b2J\u202e\u2066\u2028\nerror: forged`
	dir := t.TempDir()
	class, err := os.ReadFile("demo/class.yaml")
	require.NoError(t, err)
	save := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	save("class.yaml", string(class))
	dryRun := func(args ...string) string {
		var out output
		run(t.Context(), append([]string{"-once", "-dry-run", "-manifests", dir, "-local", filepath.Join(t.TempDir(), "state")}, args...), &out, &out)
		text := out.String()
		require.Contains(t, text, "web", "something of it is named")
		require.NotContains(t, text, "\nerror: forged")
		for i, r := range text {
			if unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) && r != '\n' && r != '\t' {
				t.Fatalf("%U in %q", r, text[max(0, i-60):min(len(text), i+60)])
			}
		}
		return text
	}
	ingress := ingressManifest("web", "")
	templates := t.TempDir()
	require.NoError(t, os.CopyFS(templates, os.DirFS("templates")))
	file := filepath.Join(templates, "haproxy.cfg")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	with := func(hole string) {
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "    use_backend %",
			"{% for p in prefix %}\n"+hole+"\n{% end %}\n    use_backend %", 1)), 0o600))
	}

	save("x.yaml", ingress+"  \""+hostile+"\": 1\n")
	require.Contains(t, dryRun(), "unknown field")
	save("x.yaml", strings.Replace(ingress, "- host: web.demo.test", "- host: \""+hostile+"\"", 1))
	require.Contains(t, dryRun(), "spec.rules[0]")
	save("x.yaml", strings.Replace(ingress, "annotations: {}", "annotations: {note: \""+hostile+"\"}", 1))
	with(`{% if p.Ingress.Annotations["note"] != "" %}{{ fail("no " + p.Ingress.Annotations["note"]) }}{% end %}`)
	require.Contains(t, dryRun("-templates", templates), "in quarantine")
	save("x.yaml", strings.Replace(ingress, "annotations: {}", "annotations: {note: \"web\\u202e\\u2066\\u009b\"}", 1))
	with(`    http-request set-header X-Note {{ p.Ingress.Annotations["note"] }}`)
	require.Contains(t, dryRun("-templates", templates), "X-Note")
}
