package rewrite

import (
	"reflect"

	"github.com/open2b/scriggo/ast"
)

// watchGrowth puts a call of Grown behind each statement that gives a variable a text or
// a list that was put together, and at the start of functions that take one. So
// what is doubled in a loop is refused before it takes the memory of the process.
func (t *Tree) watchGrowth(entry *ast.Tree) {
	trees := map[*ast.Tree]bool{entry: true}
	for v := range t.trees {
		trees[v.tree] = true
	}
	for tree := range trees {
		if !t.imported[tree] && extended(tree) == nil {
			around(reflect.ValueOf(tree).Elem(), t.checked)
		}
	}
	for fn := range t.macros {
		if fn.Body == nil {
			continue
		}
		around(reflect.ValueOf(fn.Body).Elem(), t.checked)
		for _, param := range fn.Type.Parameters {
			if param.Ident != nil && param.Ident.Name != "_" && isGrowable(param.Type) {
				fn.Body.Nodes = append([]ast.Node{grown(ast.NewIdentifier(fn.Pos(), param.Ident.Name))}, fn.Body.Nodes...)
			}
		}
	}
}

func grown(expr ast.Expression) ast.Node {
	return ast.NewCall(expr.Pos(), ast.NewIdentifier(expr.Pos(), Grown), []ast.Expression{expr}, false)
}

func isGrowable(typ ast.Expression) bool {
	_, list := typ.(*ast.SliceType)
	return list || isName(typ, "string") || isName(typ, "any")
}

// checked returns a statement with the calls behind it.
func (t *Tree) checked(n ast.Node) []ast.Node {
	out := []ast.Node{n}
	for _, expr := range t.growing(n) {
		out = append(out, grown(expr))
	}
	return out
}

// growing returns what a statement assigns a value to that was put together.
func (t *Tree) growing(n ast.Node) (grown []ast.Expression) {
	add := func(lhs, rhs ast.Expression) {
		if t.putsTogether(rhs) && !isName(lhs, "_") && !calls(lhs) {
			grown = append(grown, lhs)
		}
	}
	switch n := n.(type) {
	case *ast.Var:
		for i, rhs := range n.Rhs {
			if len(n.Lhs) == len(n.Rhs) {
				add(n.Lhs[i], rhs)
			}
		}
	case *ast.Assignment:
		for i, rhs := range n.Rhs {
			switch {
			case n.Type == ast.AssignmentAddition && !isNumber(rhs) && !calls(n.Lhs[i]):
				grown = append(grown, n.Lhs[i])
			case len(n.Lhs) == len(n.Rhs):
				add(n.Lhs[i], rhs)
			}
		}
	}
	return grown
}

// putsTogether reports whether an expression may be longer than what stands in it.
func (t *Tree) putsTogether(expr ast.Expression) bool {
	switch e := expr.(type) {
	case *ast.BinaryOperator:
		return e.Op == ast.OperatorAddition && !isNumber(e.Expr1) && !isNumber(e.Expr2)
	case *ast.Call:
		id, ok := e.Func.(*ast.Identifier)
		return !ok || id.Name == "append" || t.names.Globals[id.Name] == nil && id.Name != "make" && id.Name != "len"
	}
	return false
}

func isNumber(expr ast.Expression) bool {
	literal, ok := expr.(*ast.BasicLiteral)
	return ok && literal.Type != ast.StringLiteral
}

// calls reports whether there is a call in an expression, which must not be made twice.
func calls(n ast.Node) (found bool) {
	if _, ok := n.(*ast.Call); ok {
		return true
	}
	children(n, func(n ast.Node) { found = found || calls(n) })
	return found
}
