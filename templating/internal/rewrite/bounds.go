package rewrite

import (
	"reflect"

	"github.com/open2b/scriggo/ast"
)

// bound adds a call of Grow to the body of a loop whose text goes to a buffer.
func (t *Tree) bound(loop ast.Node, body []ast.Node) []ast.Node {
	if t.buffered == 0 || t.bounded[loop] {
		return body
	}
	t.bounded[loop] = true
	pos := loop.Pos()
	size := textSize(ast.NewBlock(pos, body))
	if size == 0 {
		return body
	}
	return append([]ast.Node{ast.NewCall(pos, ast.NewIdentifier(pos, Grow), []ast.Expression{number(pos, size)}, false)}, body...)
}

// textSize returns the length of the text of statements. Loops and macros in them do not
// count: they have bounds of their own.
func textSize(n ast.Node) (size int) {
	children(n, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Text:
			size += len(n.Text)
		case *ast.Func, *ast.For, *ast.ForIn, *ast.ForRange, *ast.Tree:
		default:
			size += textSize(n)
		}
	})
	return size
}

// guard adds Enter and Leave to a macro, and Function to a function. It adds no deferred
// Leave: Scriggo 0.60 fails on it, and evaluates the arguments of a return after it.
func guard(fn *ast.Func) {
	call := func(name string) ast.Node {
		return ast.NewCall(fn.Pos(), ast.NewIdentifier(fn.Pos(), name), nil, false)
	}
	if fn.Type == nil || !fn.Type.Macro {
		fn.Body.Nodes = append([]ast.Node{call(Function)}, fn.Body.Nodes...)
		return
	}
	beforeReturns(reflect.ValueOf(fn.Body).Elem(), func() ast.Node { return call(Leave) })
	fn.Body.Nodes = append(append([]ast.Node{call(Enter)}, fn.Body.Nodes...), call(Leave))
}

// beforeReturns adds a statement before each return of a body, except in its functions.
func beforeReturns(v reflect.Value, statement func() ast.Node) {
	around(v, func(n ast.Node) []ast.Node {
		if _, ok := n.(*ast.Return); ok {
			return []ast.Node{statement(), n}
		}
		return []ast.Node{n}
	})
}

// around replaces each statement of a body, except in its functions.
func around(v reflect.Value, replace func(ast.Node) []ast.Node) {
	into := func(v reflect.Value) bool {
		switch v.Interface().(type) {
		case *ast.Func, *ast.Tree, *ast.Position, *ast.Render:
			return false
		}
		return true
	}
	walk(v, into, func(list reflect.Value) {
		if nodes, ok := list.Interface().([]ast.Node); ok && list.CanSet() {
			var out []ast.Node
			for _, n := range nodes {
				out = append(out, replace(n)...)
			}
			list.Set(reflect.ValueOf(out))
		}
	})
}
