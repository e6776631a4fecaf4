package templating

import (
	"github.com/open2b/scriggo/ast"
)

// text reports whether an expression calls a macro, as far as its form tells:
// what is called is neither a function of the host nor a method.
func (t *transformer) text(expr ast.Expression) bool {
	call, ok := expr.(*ast.Call)
	if !ok {
		id, ok := expr.(*ast.Identifier)
		return ok && id.Name == iteaName
	}
	switch f := call.Func.(type) {
	case *ast.Identifier:
		_, global := t.globals[f.Name]
		return !global || givesText[f.Name]
	case *ast.Selector:
		base, ok := f.Expr.(*ast.Identifier)
		return ok && t.packages[base.Name]
	}
	return false
}

// assigned notes that what an expression names is changed.
func (t *transformer) assigned(expr ast.Expression) {
	switch e := expr.(type) {
	case *ast.Identifier:
		t.assigns = t.assigns || t.vars[e.Name]
	case *ast.Selector:
		t.assigned(e.Expr)
	case *ast.Index:
		t.assigned(e.Expr)
	}
}
