package rewrite

import (
	"maps"
	"reflect"
	"slices"

	"github.com/open2b/scriggo/ast"
)

// complete adds calls to all bodies that depend on the whole tree.
//
// Every file with an output reads the host's variables first. Otherwise Scriggo 0.60 gives
// a macro the zero value of a variable that only macros read.
//
// Calls of Grown check the length of texts and lists behind each statement that joins some.
// At the start of a macro or a function they check its parameters. A template that doubles
// a text would otherwise take all memory before the watch notices.
func (t *Tree) complete(entry *ast.Tree) {
	trees := map[*ast.Tree]bool{entry: true}
	for v := range t.trees {
		trees[v.tree] = true
	}
	for tree := range trees {
		if !t.imported[tree] && extended(tree) == nil {
			around(reflect.ValueOf(tree).Elem(), grown)
			tree.Nodes = append(t.touches(), tree.Nodes...)
		}
	}
	for fn := range t.macros {
		if fn.Body == nil {
			continue
		}
		around(reflect.ValueOf(fn.Body).Elem(), grown)
		for _, param := range fn.Type.Parameters {
			if param.Ident != nil && param.Ident.Name != "_" && (isName(param.Type, "string") || isName(param.Type, "any")) {
				fn.Body.Nodes = append([]ast.Node{callGrown(ast.NewIdentifier(fn.Pos(), param.Ident.Name))}, fn.Body.Nodes...)
			}
		}
		if hasClosure(fn.Body) { // the same for functions and using blocks in macros
			fn.Body.Nodes = append(t.touches(), fn.Body.Nodes...)
		}
	}
}

// grown returns a statement, and a call of Grown for each sum and each appended list that
// it assigns.
func grown(n ast.Node) []ast.Node {
	out := []ast.Node{n}
	assigned := func(lhs, rhs ast.Expression, sum bool) {
		switch e := rhs.(type) {
		case *ast.BinaryOperator:
			sum = sum || e.Op == ast.OperatorAddition && !isNumber(e.Expr1) && !isNumber(e.Expr2)
		case *ast.Call:
			sum = sum || isName(e.Func, "append")
		}
		if sum && !isNumber(rhs) && !isName(lhs, "_") && !calls(lhs) {
			out = append(out, callGrown(lhs))
		}
	}
	switch n := n.(type) {
	case *ast.Var:
		for i := range min(len(n.Lhs), len(n.Rhs)) {
			assigned(n.Lhs[i], n.Rhs[i], false)
		}
	case *ast.Assignment:
		for i := range min(len(n.Lhs), len(n.Rhs)) {
			assigned(n.Lhs[i], n.Rhs[i], n.Type == ast.AssignmentAddition)
		}
	}
	return out
}

func callGrown(expr ast.Expression) ast.Node {
	return ast.NewCall(expr.Pos(), ast.NewIdentifier(expr.Pos(), Grown), []ast.Expression{expr}, false)
}

func isNumber(expr ast.Expression) bool {
	literal, ok := expr.(*ast.BasicLiteral)
	return ok && literal.Type != ast.StringLiteral
}

// calls reports whether an expression has a call: the template must not make it twice.
func calls(n ast.Node) (found bool) {
	if _, ok := n.(*ast.Call); ok {
		return true
	}
	children(n, func(n ast.Node) { found = found || calls(n) })
	return found
}

// touches returns "_ = name" for all variables of the host in the template.
func (t *Tree) touches() (nodes []ast.Node) {
	pos := &ast.Position{Line: 1, Column: 1}
	for _, name := range slices.Sorted(maps.Keys(t.Used)) {
		if t.Used[name] {
			nodes = append(nodes, ast.NewAssignment(pos, []ast.Expression{ast.NewIdentifier(pos, "_")},
				ast.AssignmentSimple, []ast.Expression{ast.NewIdentifier(pos, name)}))
		}
	}
	return nodes
}

// hasClosure reports whether there is a function or a using block in a node.
func hasClosure(n ast.Node) (found bool) {
	children(n, func(n ast.Node) {
		switch n.(type) {
		case *ast.Func, *ast.Using:
			found = true
		case *ast.Tree:
		default:
			found = found || hasClosure(n)
		}
	})
	return found
}
