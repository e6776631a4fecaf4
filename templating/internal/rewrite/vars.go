package rewrite

import (
	"maps"
	"slices"

	"github.com/open2b/scriggo/ast"
)

// touchVars makes every file that is written where it stands read the host's
// variables first thing. Scriggo 0.60 gives a macro the zero value of a
// variable that nothing outside of macros has read before.
func (t *Tree) touchVars(entry *ast.Tree) {
	trees := map[*ast.Tree]bool{entry: true}
	for v := range t.trees {
		trees[v.tree] = true
	}
	for tree := range trees {
		if !t.imported[tree] && extended(tree) == nil {
			tree.Nodes = append(t.touches(), tree.Nodes...)
		}
	}
	for fn := range t.macros { // the same for what is nested in macros
		if fn.Body != nil && hasClosure(fn.Body) {
			fn.Body.Nodes = append(t.touches(), fn.Body.Nodes...)
		}
	}
}

// touches returns "_ = name" for all variables of the host that occur.
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
