// Package eventimmutability is an analyzer for go vet that finds events of
// package eventbus that can be written to after they were published, and code
// that does so.
//
// An event goes to all subscribers by assignment: what it points to is shared.
// The analyzer reports
//
//   - exported fields of events, and of questions, through which a subscriber can
//     reach a map, a slice or a variable behind a pointer. Pointers to structs
//     without exported fields are fine: their methods decide. So are interfaces,
//     functions and channels. What only tests publish is left alone.
//   - functions that get a Delivery or a question and write to what others see:
//     they assign through a pointer, a map or a slice, append to a slice, or hand
//     one to delete, clear, copy, or a function of slices, maps or sort that
//     changes it. Functions and methods of the same package to which they pass
//     the event are followed; those of other packages are not.
//
// A field that nobody writes to by agreement, or a type that has no exported way
// to do so, is marked in its doc comment or on its line:
//
//	Files []File //eventbus:immutable replaced as a whole at each render
//
// The reason is required.
package eventimmutability

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

const (
	busPath = "github.com/hapticsdk/haptic/eventbus"
	mark    = "//eventbus:immutable"
)

// Analyzer is what go vet runs.
var Analyzer = &analysis.Analyzer{
	Name:      "eventimmutability",
	Doc:       "report events of package eventbus that can be written to, and code that does",
	URL:       "https://pkg.go.dev/" + busPath,
	Run:       run,
	FactTypes: []analysis.Fact{new(immutable)},
}

// immutable is the fact that a type, or a field, was marked.
type immutable struct{}

func (*immutable) AFact()         {}
func (*immutable) String() string { return "immutable" }

func run(pass *analysis.Pass) (any, error) {
	exportMarks(pass)
	events := &events{pass: pass, seen: map[string]bool{}}
	writes := newWrites(pass)
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				events.call(n)
				writes.call(n)
			case *ast.FuncDecl:
				writes.deliveries(n.Type, n.Body)
			case *ast.FuncLit:
				writes.deliveries(n.Type, n.Body)
			}
			return true
		})
	}
	writes.follow()
	return nil, nil
}

// exportMarks exports a fact for each marked type and field.
func exportMarks(pass *analysis.Pass) {
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if n.Tok == token.TYPE && len(n.Specs) == 1 && marked(pass, n.Doc) {
					exportMark(pass, n.Specs[0].(*ast.TypeSpec).Name)
				}
			case *ast.TypeSpec:
				if marked(pass, n.Doc, n.Comment) {
					exportMark(pass, n.Name)
				}
			case *ast.Field:
				if len(n.Names) > 0 && marked(pass, n.Doc, n.Comment) {
					for _, name := range n.Names {
						exportMark(pass, name)
					}
				}
			}
			return true
		})
	}
}

func exportMark(pass *analysis.Pass, name *ast.Ident) {
	if obj := pass.TypesInfo.Defs[name]; obj != nil {
		pass.ExportObjectFact(obj, new(immutable))
	}
}

// marked says whether a comment has the mark, and reports one without a reason.
func marked(pass *analysis.Pass, groups ...*ast.CommentGroup) bool {
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			rest, ok := strings.CutPrefix(c.Text, mark)
			if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
			reason, _, _ := strings.Cut(rest, "//")
			if strings.TrimSpace(reason) == "" {
				pass.Reportf(c.Pos(), "%s needs a reason", mark)
			}
			return true
		}
	}
	return false
}

// busCall returns the name of the function of package eventbus that is called,
// and its type arguments; "" for any other call.
func busCall(pass *analysis.Pass, call *ast.CallExpr) (string, *types.TypeList) {
	fn, ok := typeutil.Callee(pass.TypesInfo, call).(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != busPath || fn.Signature().Recv() != nil {
		return "", nil
	}
	fun := ast.Unparen(call.Fun)
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	var name *ast.Ident
	switch f := fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return "", nil
	}
	return fn.Name(), pass.TypesInfo.Instances[name].TypeArgs
}
