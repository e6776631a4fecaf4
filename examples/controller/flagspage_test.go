package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/kit"
)

var update = flag.Bool("update", false, "write docs/flags.md")

const flagsFile = "../../docs/flags.md"

// flagsHead is what stands above the table.
const flagsHead = `# Flags of the reference controller

This page is made of the code: ` + "`go test ./examples/controller -run TestFlagsPage -update`" + ` writes it. ` + "`-h`" + ` prints the same.

- [controller.md](controller.md) says which flags go together.
- [serving.md](serving.md) has those for what is served beside routes.
- [tenants.md](tenants.md) has those for what is kept apart.
- All that is wrong is said at once, before anything starts, with a line for each flag.

| Flag | Default | Meaning |
|---|---|---|
`

// flagsPage is docs/flags.md.
func flagsPage(t *testing.T) string {
	c, err := parseFlags(nil, kit.NewLog(io.Discard))
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString(flagsHead)
	c.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		is, byDefault := "`-"+f.Name+"`", ""
		if boolean, ok := f.Value.(interface{ IsBoolFlag() bool }); value != "" && (!ok || !boolean.IsBoolFlag()) {
			is = "`-" + f.Name + " " + value + "`"
		}
		if v := f.DefValue; v != "" && v != "0" && v != "0s" && v != "false" {
			byDefault = "`" + v + "`"
		}
		if line, _, more := strings.Cut(usage, "\n"); more { // the names of limits
			usage = strings.Replace(line, "The names with their defaults:", "[tenants.md](tenants.md#limits) has the names.", 1)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", is, byDefault, strings.NewReplacer("|", `\|`, "*", `\*`).Replace(usage))
	})
	return b.String()
}

// TestFlagsPage: docs/flags.md has the flags of the program.
func TestFlagsPage(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile(flagsFile, []byte(flagsPage(t)), 0o644))
	}
	text, err := os.ReadFile(flagsFile)
	require.NoError(t, err)
	require.Equal(t, flagsPage(t), string(text), "run go test -run TestFlagsPage -update in this folder")
}

// TestPagesNameFlags: each flag that a page about the controller names is one.
func TestPagesNameFlags(t *testing.T) {
	c, err := parseFlags(nil, kit.NewLog(io.Discard))
	require.NoError(t, err)
	foreign := map[string]bool{"c": true, "k": true, "f": true, "vv": true} // of haproxy, kubectl and go
	found := 0
	for _, page := range []string{"controller", "moving", "troubleshooting", "serving", "tenants", "ingress", "operations", "restarts", "annotations", "templates"} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("`-([a-z][a-z0-9-]*)[` =]").FindAllStringSubmatch(string(text), -1) {
			if !foreign[m[1]] {
				require.NotNil(t, c.Lookup(m[1]), "docs/%s.md: there is no flag -%s", page, m[1])
				found++
			}
		}
	}
	require.Greater(t, found, 60)
}
