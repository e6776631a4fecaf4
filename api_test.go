package haptic

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// api is a package that users import, with its tests.
type api struct {
	dir      string
	doc      *doc.Package
	examples map[string]bool // names that are called in an example with an output
}

// apis are all of them, the kits for tests included.
func apis(t *testing.T) (all []api) {
	folders := map[string][]string{}
	for _, name := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(name))
		if first, _, _ := strings.Cut(dir, "/"); first != "." && first != "examples" && first != "internal" && !strings.Contains(dir, "/internal") {
			folders[dir] = append(folders[dir], name)
		}
	}
	for dir, names := range folders {
		set, files := token.NewFileSet(), []*ast.File(nil)
		for _, name := range names {
			file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			require.NoError(t, err)
			files = append(files, file)
		}
		p, err := doc.NewFromFiles(set, files, module+"/"+dir)
		require.NoError(t, err)
		all = append(all, api{dir, p, calledInExamples(t, dir)})
	}
	slices.SortFunc(all, func(a, b api) int { return strings.Compare(a.dir, b.dir) })
	if len(all) < 15 {
		t.Fatalf("found only %d packages", len(all))
	}
	return all
}

// calledInExamples are the functions and methods that the examples of a folder call, or
// give away as values.
func calledInExamples(t *testing.T, dir string) map[string]bool {
	names, err := filepath.Glob(dir + "/*_test.go")
	require.NoError(t, err)
	called := map[string]bool{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if !strings.Contains(string(text), "func Example") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		require.NoError(t, err)
		bodies := map[string]*ast.BlockStmt{} // of this file: an example may call what stands beside it
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				bodies[fn.Name.Name] = fn.Body
			}
		}
		for _, e := range doc.Examples(file) {
			if e.Output != "" || e.EmptyOutput {
				note(called, bodies, bodies["Example"+e.Name], map[string]bool{})
			}
		}
	}
	return called
}

// note notes the names in a body, and in the functions of the same file that it calls.
func note(called map[string]bool, bodies map[string]*ast.BlockStmt, body *ast.BlockStmt, seen map[string]bool) {
	if body == nil {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			called[n.Sel.Name] = true
			if !seen[n.Sel.Name] {
				seen[n.Sel.Name] = true
				note(called, bodies, bodies[n.Sel.Name], seen)
			}
		case *ast.Ident:
			if !seen[n.Name] {
				seen[n.Name] = true
				note(called, bodies, bodies[n.Name], seen)
			}
		}
		return true
	})
}

// calledByOthers are methods that users do not call: package fmt, errors, encoding, http, a
// loop, an observer or a watcher does.
var calledByOthers = strings.Fields(`Error Unwrap Is As String GoString Format LogValue Report Events
	MarshalText UnmarshalText MarshalJSON UnmarshalJSON UnmarshalStrict ServeHTTP Write
	ListWatch MetadataListWatch Fetch Scheme SetScheme Settle SetPrevious Note`)

// isVerb reports whether a function does something: it has a context, or returns
// nothing, or an error. Others are questions, whose name says all.
func isVerb(fn *ast.FuncDecl) bool {
	if slices.Contains(calledByOthers, fn.Name.Name) || isOfTests(fn) || fn.Name.Name == "Main" { // which ends the process
		return false
	}
	results := fn.Type.Results
	if results == nil || fn.Recv == nil {
		return true
	}
	if last, ok := results.List[len(results.List)-1].Type.(*ast.Ident); ok && last.Name == "error" {
		return true
	}
	for _, p := range fn.Type.Params.List {
		if sel, ok := p.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
			return true
		}
	}
	return false
}

// isOfTests reports whether a function takes the test that it fails: no example has one.
func isOfTests(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		typ := p.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if sel, ok := typ.(*ast.SelectorExpr); ok && (sel.Sel.Name == "T" || sel.Sel.Name == "TB") {
			return true
		}
	}
	return false
}

// TestExamples: an example with an output shows each exported function, and each method
// that does something.
func TestExamples(t *testing.T) {
	verbs := 0
	for _, p := range apis(t) {
		funcs := slices.Clone(p.doc.Funcs)
		for _, typ := range p.doc.Types {
			funcs = append(append(funcs, typ.Funcs...), typ.Methods...)
		}
		for _, fn := range funcs {
			if !isVerb(fn.Decl) {
				continue
			}
			verbs++
			if !p.examples[fn.Name] {
				t.Errorf("%s: no example with an output calls %s", p.dir, strings.TrimPrefix(fn.Recv+"."+fn.Name, "."))
			}
		}
	}
	if verbs < 150 {
		t.Errorf("found only %d verbs", verbs)
	}
	t.Log(verbs, "verbs")
}

// TestComments: each exported name of the public packages has a comment, its own or that
// of its group, and each package says what it is for.
func TestComments(t *testing.T) {
	for _, p := range apis(t) {
		if !strings.HasPrefix(p.doc.Doc, "Package ") {
			t.Errorf("%s: the comment of the package is missing", p.dir)
		}
		missing := func(name string, comments ...string) {
			if strings.Join(comments, "") == "" {
				t.Errorf("%s: %s has no comment", p.dir, name)
			}
		}
		values := slices.Concat(p.doc.Consts, p.doc.Vars)
		funcs := slices.Clone(p.doc.Funcs)
		for _, typ := range p.doc.Types {
			missing(typ.Name, typ.Doc)
			values = append(append(values, typ.Consts...), typ.Vars...)
			funcs = append(append(funcs, typ.Funcs...), typ.Methods...)
		}
		for _, v := range values {
			for _, spec := range v.Decl.Specs {
				s := spec.(*ast.ValueSpec)
				missing(strings.Join(v.Names, ", "), v.Doc, s.Doc.Text(), s.Comment.Text())
			}
		}
		for _, fn := range funcs {
			if !slices.Contains(calledByOthers, fn.Name) {
				missing(fn.Recv+" "+fn.Name, fn.Doc)
			}
		}
	}
}
