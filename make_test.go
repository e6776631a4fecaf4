package haptic

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	makeTarget = regexp.MustCompile(`(?m)^([a-z0-9-]+):(?: |$)`)
	// makeCall is in a line of a script by itself, of a page as code.
	makeCall   = regexp.MustCompile("(?m)(?:^ *|run: |&& |`)make ([a-z0-9-]+|\\$\\{\\{ matrix\\.run \\}\\})")
	matrixRuns = regexp.MustCompile(`(?m)^ +run: \[(.*)\]$`)
	benchmark  = regexp.MustCompile(`(?m)^func Benchmark`)
)

// TestMakeTargets: the Makefile has each target that a workflow, CI or a page names. Workflows
// run those that judge a change or a night.
func TestMakeTargets(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	callers := []string{".ci/run", "README.md", "CONTRIBUTING.md", "SECURITY.md"}
	workflows, err := filepath.Glob(".github/workflows/*.yml")
	require.NoError(t, err)
	called := map[string][]string{}
	for _, name := range append(callers, workflows...) {
		text := read(t, name)
		for _, m := range makeCall.FindAllStringSubmatch(text, -1) {
			names := []string{m[1]}
			if strings.HasPrefix(m[1], "$") {
				list := matrixRuns.FindStringSubmatch(text)
				require.NotNil(t, list, "%s: its matrix has no runs", name)
				names = strings.Split(list[1], ", ")
			}
			called[name] = append(called[name], names...)
		}
		for _, target := range called[name] {
			require.True(t, targets[target], "%s: make %s: no such target", name, target)
		}
	}
	for name, wants := range map[string][]string{
		".ci/run":                       {"test", "e2e"},
		"README.md":                     {"test"},
		".github/workflows/test.yml":    {"test"},
		".github/workflows/e2e.yml":     {"e2e"},
		".github/workflows/nightly.yml": {"race", "soak", "hostile", "mistakes"},
	} {
		require.Subset(t, called[name], wants, name)
	}
}

// TestBenchmarksRunOnce: each package with benchmarks runs them with its tests.
func TestBenchmarksRunOnce(t *testing.T) {
	tests := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, "_test.go") {
			tests[filepath.ToSlash(filepath.Dir(name))] += read(t, name)
		}
		return err
	}))
	for dir, text := range tests {
		if !benchmark.MatchString(text) || dir == "." {
			continue
		}
		require.Contains(t, text, "\nfunc TestBenchmarks(", dir)
	}
}

func read(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
