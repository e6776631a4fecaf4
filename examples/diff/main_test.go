package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// folder writes the files of an archive and goes there.
func folder(t *testing.T, archive string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, f := range txtar.Parse([]byte(archive)).Files {
		require.NoError(t, os.MkdirAll(filepath.Dir(f.Name), 0o700))
		require.NoError(t, os.WriteFile(f.Name, f.Data, 0o600))
	}
}

const archive = `
-- a/haproxy.cfg --
frontend web
    bind :80
    use_backend %[req.hdr(host),map(/etc/haproxy/maps/hosts.map)]
backend shop
    server s1 192.0.2.1:80
-- a/maps/hosts.map --
shop.example.com shop
-- b/haproxy.cfg --
frontend web
    bind :80
    use_backend %[req.hdr(host),map(/etc/haproxy/maps/hosts.map)]
backend shop
    # moved
    server s1 192.0.2.7:80
-- b/maps/hosts.map --
shop.example.com shop
www.example.com shop
-- bad/haproxy.cfg --
frontend web
-- bad/maps/hosts.txt --
x
`

func TestDiff(t *testing.T) {
	folder(t, archive)
	const plan = `~ server s1 in backend shop (runtime)
    address: 192.0.2.1:80 -> 192.0.2.7:80
`
	for name, c := range map[string]struct {
		args   string
		code   int
		stdout string // part of it
		stderr string
	}{
		"folders":            {args: "a b", code: 2, stdout: "+ map entry www.example.com in map hosts.map (runtime)"},
		"files":              {args: "a/haproxy.cfg b/haproxy.cfg", code: 2, stdout: plan},
		"equal":              {args: "a a", code: 0},
		"no such file":       {args: "a c", code: 1, stderr: "c: no such file"},
		"folder without one": {args: "a a/maps", code: 1, stderr: "a/maps: open haproxy.cfg"},
		"wrong name":         {args: "bad a", code: 1, stderr: `bad: invalid configuration: map "hosts.txt": the name must end in .map`},
		"one argument":       {args: "a", code: 1, stderr: "usage: diff"},
		"flag at the end":    {args: "a b -json", code: 1, stderr: "all flags in front"},
		"help":               {args: "-h", code: 0, stderr: "usage: diff"},
		"unknown flag":       {args: "-x a b", code: 1, stderr: "usage: diff"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			require.Equal(t, c.code, run(strings.Fields(c.args), &stdout, &stderr), "%s%s", &stdout, &stderr)
			require.Contains(t, stdout.String(), c.stdout)
			require.Contains(t, stderr.String(), c.stderr)
			require.Equal(t, c.stderr == "", stderr.Len() == 0, "errors and help go to stderr alone")
			require.Equal(t, c.stderr != "", stdout.Len() == 0)
		})
	}
}

// What the README has its readers try.
func TestDiffOfSamples(t *testing.T) {
	var stdout, stderr strings.Builder
	require.Equal(t, 2, run([]string{"testdata/before", "testdata/after"}, &stdout, &stderr), "%s", &stderr)
	require.Equal(t, `~ server s1 in backend shop (runtime)
    address: 192.0.2.1:80 -> 192.0.2.7:80
+ server s3 in backend shop (runtime)
    address: (none) -> 192.0.2.3:80
    weight: (none) -> 50
    check: (none) -> yes
    inter: (none) -> 2s
~ http-request 0 in frontend web (reload: http-request can change only at a reload)
    http-request deny if { path_beg /admin } (none) -> !{ src 10.0.0.0/8 }
+ map entry www.example.com in map hosts.map (runtime)
    value: (none) -> shop
Plan: 2 to create, 2 to update, 0 to delete; one reload.
`, stdout.String())
}

func TestDiffJSON(t *testing.T) {
	folder(t, archive)
	var stdout, stderr strings.Builder
	require.Equal(t, 2, run([]string{"-json", "a", "b"}, &stdout, &stderr), "%s", &stderr)
	var plan dataplane.Plan
	require.NoError(t, json.Unmarshal([]byte(stdout.String()), &plan))
	require.Len(t, plan.Ops, 2)
	require.Equal(t, dataplane.ImpactRuntime, plan.Impact())
	var again strings.Builder
	require.NoError(t, show(&again, &plan, true))
	require.Equal(t, stdout.String(), again.String())
}
