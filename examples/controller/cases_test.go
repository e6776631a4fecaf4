package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBuiltinCases runs the cases that stand with the built-in templates, as
// -test does.
func TestBuiltinCases(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-test", "templates/cases", "-namespace", "other", "-default-certificate", "other/tls", "-default-backend", "other/web:80", "-tcp-services", "other/tcp"}, &stdout, &stderr)
	require.Zero(t, code, "%s%s", stdout.String(), stderr.String())
	require.Contains(t, stdout.String(), "15 cases: 15 passed, 0 failed")
}

// failing is a case that no template passes.
const failing = "name: impossible\nassertions:\n- {type: contains, pattern: no such line}\n"

func TestCasesFromFilesAndFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		return name
	}
	write("templates/haproxy.cfg", "global\n    maxconn 10\n")
	write("templates/cases/good.yaml", "name: good\nassertions:\n- {type: contains, pattern: maxconn 10}\n")
	write("wrong/a.yaml", "name: a\nassertion: []\n")
	write("none/README", "no case\n")
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"a folder":          {[]string{"-test", filepath.Join(dir, "templates/cases"), "-templates", filepath.Join(dir, "templates")}, 0, "ok    good\n1 case: 1 passed"},
		"a file that fails": {[]string{"-test", write("bad.yaml", failing)}, 1, "bad.yaml:3: contains haproxy.cfg /no such line/: no match"},
		"a mistake":         {[]string{"-test", filepath.Join(dir, "wrong")}, 1, `a.yaml:2:1: assertion: case "a": unknown key; did you mean assertions?`},
		"no cases":          {[]string{"-test", filepath.Join(dir, "none")}, 1, "there are no cases"},
		"no folder":         {[]string{"-test", filepath.Join(dir, "missing")}, 1, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.Equal(t, c.code, run(t.Context(), c.args, &out, &out), out.String())
			require.Contains(t, out.String(), c.says)
		})
	}
}

// TestTemplatesThatFailTheirCasesDeployNothing is the check at the start.
func TestTemplatesThatFailTheirCasesDeployNothing(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	templates, manifests, local := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "haproxy")
	text, err := os.ReadFile("templates/haproxy.cfg")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(templates, "haproxy.cfg"), []byte(strings.SplitAfter(string(text), "TLSv1.2\n")[0]), 0o644))
	args := []string{"-manifests", manifests, "-local", local, "-templates", templates, "-once", "-dry-run"}
	var out bytes.Buffer
	require.Equal(t, 2, run(t.Context(), args, &out, &out), out.String())

	require.NoError(t, os.Mkdir(filepath.Join(templates, "cases"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(templates, "cases", "a.yaml"), []byte(failing), 0o644))
	out.Reset()
	require.Equal(t, 1, run(t.Context(), args, &out, &out), out.String())
	require.Contains(t, out.String(), "impossible")
	require.NotContains(t, out.String(), "Plan:")
}
