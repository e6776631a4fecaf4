package haptic

import (
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// TestTroubleshooting: docs/troubleshooting.md has each typed error of the public packages,
// each event that is a warning or an error, and each component, and no other.
func TestTroubleshooting(t *testing.T) {
	text, err := os.ReadFile("docs/troubleshooting.md")
	require.NoError(t, err)
	rows := map[string]map[string]bool{} // by section
	section := ""
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], " |")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			if rows[section] == nil {
				rows[section] = map[string]bool{}
			}
			rows[section][m[1]] = true
		}
	}
	found := map[string]map[string]bool{
		"Errors of the packages": errorKinds(t), "Components": components(t), "Lines of the log": {},
	}
	for _, e := range reports() {
		if r := e.Report(); r.Level >= slog.LevelWarn {
			found["Lines of the log"][r.Name] = true
		}
	}
	for _, kind := range []dataplane.ProcessKind{dataplane.ProcessEnded, dataplane.ProcessSilent, dataplane.ProcessStartFailed} {
		e := reconcile.HAProxyChanged{ProcessEvent: dataplane.ProcessEvent{Kind: kind}}
		found["Lines of the log"][e.Report().Name] = true
	}
	delete(found["Lines of the log"], reconcile.HAProxyChanged{ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessStarted}}.Report().Name)
	found["Lines of the log"]["deployment.scheduled"] = true // a warning where it waits for old workers
	for section, names := range found {
		if len(names) < 10 {
			t.Errorf("%s: only %d were found in the code", section, len(names))
		}
		for name := range names {
			if !rows[section][name] {
				t.Errorf("docs/troubleshooting.md, %s: a row for %s is missing", section, name)
			}
		}
		for name := range rows[section] {
			if !names[name] {
				t.Errorf("docs/troubleshooting.md, %s: the code has no %s", section, name)
			}
		}
	}
}

// isPublic reports whether a folder is a package that users import for their program.
func isPublic(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	switch first {
	case ".", "examples", "internal":
		return false
	}
	return !strings.Contains(dir, "internal") && !strings.HasSuffix(dir, "test")
}

// errorKinds are the exported errors of public packages: variables ErrX, and types with
// a method Error or whose name says so.
func errorKinds(t *testing.T) map[string]bool {
	kinds, methods := map[string]bool{}, map[string]bool{}
	types := map[string]string{} // by folder and name
	for _, name := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(name))
		if !isPublic(dir) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Error" {
				methods[dir+"."+receiver(fn)] = true
			}
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, id := range s.Names {
						if id.IsExported() && strings.HasPrefix(id.Name, "Err") {
							kinds[path.Base(dir)+"."+id.Name] = true
						}
					}
				case *ast.TypeSpec:
					types[dir+"."+s.Name.Name] = path.Base(dir) + "." + s.Name.Name
					if s.Name.IsExported() && s.Assign.IsValid() && strings.Contains(s.Name.Name, "Error") { // an alias
						kinds[path.Base(dir)+"."+s.Name.Name] = true
					}
				}
			}
		}
	}
	for of := range methods {
		if name := types[of]; ast.IsExported(name[strings.LastIndex(name, ".")+1:]) {
			kinds[name] = true
		}
	}
	return kinds
}

// receiver is the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// components are the names of all checks of health.
func components(t *testing.T) map[string]bool {
	names := map[string]bool{}
	check := regexp.MustCompile(`\.Check(?:Quietly)?\("([a-z-]+)", (?:observe\.)?(?:Live|ReadyToServe|Reported),`)
	for _, name := range sources(t) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range check.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	return names
}
