package rewrite

import (
	"reflect"
	"strconv"

	"github.com/open2b/scriggo/ast"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Bounds of a template. Beyond them Scriggo takes minutes, or the memory of the process, to
// compile or for a single step of a render.
const (
	maxTree  = 1000      // depth of nested statements and expressions
	maxWalk  = 512 << 10 // visits of statements and expressions; the walk visits the body of a loop until it knows all places
	maxConst = 1 << 20   // bytes of a constant text
)

// deeper counts a node, and reports whether the walk may visit its children.
func (t *Tree) deeper(n ast.Node) bool {
	t.depth++
	t.visits++
	switch {
	case t.tooDeep:
	case t.depth > maxTree:
		t.tooDeep = true
		t.fail(t.file, n.Pos(), "statements and expressions are nested more than "+strconv.Itoa(maxTree)+" deep: use macros and variables")
	case t.visits > maxWalk:
		t.tooDeep = true
		t.fail(t.file, n.Pos(), "more than "+strconv.Itoa(maxWalk)+" steps to find the places of all values: put fewer loops in each other")
	}
	return !t.tooDeep
}

type textAt struct {
	text *ast.Text
	from place.Points
}

// after returns the points behind a text. It reads the text once from each place.
func (t *Tree) after(p place.Points, n *ast.Text) place.Points {
	end, ok := t.texts[textAt{n, p}]
	if !ok {
		end = t.points.After(p, string(n.Text[n.Cut.Left:len(n.Text)-n.Cut.Right]))
		t.texts[textAt{n, p}] = end
	}
	return end
}

// limit refuses code that could take any amount of memory, and makes make check its length.
func (t *Tree) limit(n ast.Node) {
	switch n := n.(type) {
	case *ast.ArrayType:
		t.fail(t.file, n.Pos(), "arrays are not available: use a list, such as []"+n.ElementType.String())
	case *ast.TypeDeclaration:
		if _, ok := n.Type.(*ast.SliceType); ok {
			t.fail(t.file, n.Pos(), "a type of lists cannot be declared: write "+n.Type.String())
		}
	case *ast.CompositeLiteral:
		t.literal(n, n.Type)
	case *ast.Const:
		for i, rhs := range n.Rhs {
			if i < len(n.Lhs) {
				t.constants[n.Lhs[i].Name] = max(t.constants[n.Lhs[i].Name], t.constant(rhs, 0))
			}
		}
	case *ast.BinaryOperator:
		if size := t.constant(n, 0); size > maxConst {
			t.fail(t.file, n.Pos(), "a constant text of "+strconv.Itoa(size)+" bytes, at most "+strconv.Itoa(maxConst)+" are allowed")
		}
	case *ast.Call:
		t.length(n)
	}
}

// literal refuses keys in lists: one key can make a list of any length.
func (t *Tree) literal(expr, typ ast.Expression) {
	n, ok := expr.(*ast.CompositeLiteral)
	if op, is := typ.(*ast.UnaryOperator); is && op.Op == ast.OperatorPointer {
		typ = op.Expr
	}
	if !ok || typ == nil {
		return
	}
	list := false
	var elem ast.Expression
	switch typ := typ.(type) {
	case *ast.SliceType:
		list, elem = true, typ.ElementType
	case *ast.MapType:
		elem = typ.ValueType
	case *ast.Identifier:
		host, ok := t.names.Globals[typ.Name].(reflect.Type)
		list = ok && (host.Kind() == reflect.Slice || host.Kind() == reflect.Array)
	}
	for _, kv := range n.KeyValues {
		if kv.Key != nil && list {
			t.fail(t.file, kv.Key.Pos(), "a list cannot have keys: write its elements in their order")
		}
		if elem != nil {
			if inner, ok := kv.Value.(*ast.CompositeLiteral); ok && inner.Type == nil {
				t.literal(inner, elem)
			}
		}
	}
}

// constant returns the length of a constant text in bytes, 0 for other expressions. It
// stops at the depth that [Tree.deeper] allows.
func (t *Tree) constant(expr ast.Expression, depth int) int {
	if depth > maxTree {
		return 0
	}
	switch e := expr.(type) {
	case *ast.BasicLiteral:
		return len(e.Value)
	case *ast.Identifier:
		return t.constants[e.Name]
	case *ast.BinaryOperator:
		if e.Op == ast.OperatorAddition {
			return min(t.constant(e.Expr1, depth+1)+t.constant(e.Expr2, depth+1), 1<<40)
		}
	case *ast.Call: // a conversion
		if len(e.Args) == 1 {
			return t.constant(e.Args[0], depth+1)
		}
	}
	return 0
}

// length adds a check to each length of a make call.
func (t *Tree) length(n *ast.Call) {
	if !isName(n.Func, "make") || t.names.Globals["make"] != nil || len(n.Args) < 2 {
		return
	}
	for i, arg := range n.Args[1:] {
		if call, ok := arg.(*ast.Call); ok && isName(call.Func, Length) {
			return
		}
		n.Args[i+1] = ast.NewCall(n.Pos(), ast.NewIdentifier(n.Pos(), Length), []ast.Expression{arg}, false)
	}
}
