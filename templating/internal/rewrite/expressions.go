package rewrite

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/open2b/scriggo/ast"
)

// resultType refuses macros and using blocks that declare a type for their text: the
// escaper would treat such text as a value.
func (t *Tree) resultType(typ ast.Expression) {
	if id, ok := typ.(*ast.Identifier); ok && id != nil && (id.Name == "string" || formatTypes[id.Name] && id.Name != "json") {
		t.fail(t.file, id.Pos(), leaveOutType(id.Name))
	}
}

// expressions finds the parts of expressions with a text of their own: macros, function
// literals and rendered files.
func (t *Tree) expressions(n ast.Node) {
	defer func(depth int) { t.depth = depth }(t.depth)
	if isNil(n) || !t.deeper(n) {
		return
	}
	t.limit(n)
	switch n := n.(type) {
	case *ast.Func:
		t.function(n)
		return
	case *ast.Render:
		t.extension(n, n.Path)
		t.buffered++
		start := t.points.StartApart()
		delete(t.trees, visit{n.Tree, start}) // an earlier walk may have been unbuffered
		t.points.Finish(t.tree(n.Tree, start))
		t.buffered--
		return
	case *ast.Tree, *ast.Block:
		return
	case *ast.Identifier:
		t.Used[n.Name] = t.names.Vars[n.Name]
		switch n.Name {
		case "include", "include_all":
			t.includes = true
		case "first_seen":
			t.Assigns = true // one run for all items would remember earlier items
		}
		return
	case *ast.Var:
		for i, id := range n.Lhs {
			t.noteAlias([]ast.Expression{id}, n.Rhs[min(i, len(n.Rhs)):])
		}
	case *ast.Assignment:
		t.noteAlias(n.Lhs, n.Rhs)
		for _, v := range n.Lhs {
			t.assigned(v)
		}
	case *ast.UnaryOperator:
		if n.Op == ast.OperatorAddress {
			t.assigned(n.Expr)
		}
	case *ast.Call:
		t.locateDebug(n)
		t.spread(n)
		if id, ok := n.Func.(*ast.Identifier); ok && formatTypes[id.Name] && len(n.Args) == 1 {
			t.fail(t.file, n.Pos(), "the conversion "+id.Name+"(...) is not available; raw(...) writes text as it is")
		}
	}
	children(n, t.expressions)
}

// function walks a macro or a function once.
func (t *Tree) function(n *ast.Func) {
	if t.macros[n] {
		return
	}
	t.macros[n] = true
	if n.Type != nil {
		for _, param := range slices.Concat(n.Type.Parameters, n.Type.Result) {
			t.expressions(param.Type)
		}
	}
	if n.Type != nil && n.Type.Macro {
		for _, result := range n.Type.Result {
			t.resultType(result.Type)
		}
	}
	name := t.macro // for a function literal: it may write the text of the macro
	if n.Ident != nil {
		name = n.Ident.Name
	}
	t.apart(name, n.Body)
	if n.Body != nil {
		guard(n)
	}
}

// formatTypes are Scriggo's names for text that needs no escaping.
var formatTypes = map[string]bool{"html": true, "css": true, "js": true, "json": true, "markdown": true}

// children calls visit for each direct child of a node.
func children(n ast.Node, visit func(n ast.Node)) {
	if v := reflect.ValueOf(n); v.Kind() == reflect.Pointer {
		walk(v.Elem(), func(v reflect.Value) bool {
			n, ok := v.Interface().(ast.Node)
			if _, position := n.(*ast.Position); ok && !position {
				visit(n)
			}
			return !ok
		}, nil)
	}
}

// walk visits all values below a value by reflection, so it misses no kind of node. It
// enters a pointer or an interface if into returns true. It calls behind, unless nil, after
// the elements of each list.
func walk(v reflect.Value, into func(v reflect.Value) bool, behind func(list reflect.Value)) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() && into(v) {
			walk(v.Elem(), into, behind)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i), into, behind)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), into, behind)
		}
		if behind != nil {
			behind(v)
		}
	}
}

func isNil(n ast.Node) bool {
	if n == nil {
		return true
	}
	v := reflect.ValueOf(n)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// debugType is the type of the standard function debug.
var debugType = reflect.TypeFor[func(values ...any) string]()

// locateDebug gives a call of debug its position.
func (t *Tree) locateDebug(call *ast.Call) {
	id, ok := call.Func.(*ast.Identifier)
	if !ok || id.Name != "debug" || t.names.Globals["debug"] == nil || reflect.TypeOf(t.names.Globals["debug"]) != debugType {
		return
	}
	pos := call.Pos()
	line, column := t.src.Position(t.file, pos.Start)
	call.Func = ast.NewIdentifier(id.Pos(), Debug)
	call.Args = append([]ast.Expression{
		ast.NewBasicLiteral(pos, ast.StringLiteral, strconv.Quote(t.file)), number(pos, line), number(pos, column),
	}, call.Args...)
}

func number(pos *ast.Position, n int) *ast.BasicLiteral {
	return ast.NewBasicLiteral(pos, ast.IntLiteral, strconv.Itoa(n))
}

// assigned notes that the template changes the variable of an expression.
func (t *Tree) assigned(expr ast.Expression) {
	switch e := expr.(type) {
	case *ast.Identifier:
		t.Assigns = t.Assigns || t.names.Vars[e.Name]
	case *ast.Selector:
		t.assigned(e.Expr)
	case *ast.Index:
		t.assigned(e.Expr)
	}
}
