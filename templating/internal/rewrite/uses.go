package rewrite

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/open2b/scriggo/ast"

	"github.com/hapticsdk/haptic/templating/internal/origin"
)

// uses returns calls for the recorder: before the statement, a call with the variables that
// the statement uses. Behind it, calls with the variables that hold the result; if the
// statement opens a block, these come before it too.
func (in *tracer) uses(n ast.Node) (before, behind []ast.Node) {
	if in.t.NoUses {
		return nil, nil
	}
	from, to, opens := madeOf(n)
	pos := n.Pos()
	var names []string
	args := []ast.Expression{nil}
	for _, expr := range from {
		if _, whole := (*expr).(*ast.Call); !whole || isShow(n) { // a call alone may return several values
			in.hoist(reflect.ValueOf(expr).Elem(), &before)
		}
		in.variables(*expr, func(id *ast.Identifier) {
			names = append(names, id.Name)
			args = append(args, ast.NewIdentifier(pos, id.Name))
		})
	}
	if len(names) > 0 {
		args[0] = text(pos, strings.Join(names, ","))
		before = append(before, ast.NewCall(pos, ast.NewIdentifier(pos, origin.Uses), args, false))
	}
	for _, expr := range to {
		if id, ok := expr.(*ast.Identifier); ok && id != nil && id.Name != "_" {
			behind = append(behind, in.gives(id))
		}
	}
	if opens {
		return append(before, behind...), nil
	}
	return before, behind
}

func isShow(n ast.Node) bool { _, ok := n.(*ast.Show); return ok }

// madeOf returns the expressions of a statement, and the variables that they are assigned
// to. opens says that the statement opens a block.
func madeOf(n ast.Node) (from []*ast.Expression, to []ast.Expression, opens bool) {
	all := func(list []ast.Expression) {
		for i := range list {
			from = append(from, &list[i])
		}
	}
	switch n := n.(type) {
	case *ast.Show:
		all(n.Expressions)
	case *ast.Call:
		if !ours(n) {
			all(n.Args)
		}
	case *ast.Var:
		all(n.Rhs)
		for _, id := range n.Lhs {
			to = append(to, id)
		}
	case *ast.Assignment:
		all(n.Rhs)
		to = n.Lhs
		if n.Type != ast.AssignmentSimple && n.Type != ast.AssignmentDeclaration { // t += x
			all(n.Lhs)
		}
		if ours(n) {
			return nil, nil, false
		}
	case *ast.ForIn:
		return []*ast.Expression{&n.Expr}, []ast.Expression{n.Ident}, true
	case *ast.ForRange:
		all(n.Assignment.Rhs)
		return from, n.Assignment.Lhs, true
	case *ast.If:
		if init, ok := n.Init.(*ast.Assignment); ok {
			all(init.Rhs)
			return from, init.Lhs, true
		}
	}
	return from, to, false
}

// hoist assigns the result of a host variable's method to a new variable before the
// statement. The recorder thus sees the object in {{ pods.GetSingle("a").Status.PodIP }}.
// hoist skips calls that may not run, such as those behind && and ||.
func (in *tracer) hoist(v reflect.Value, before *[]ast.Node) {
	walk(v, func(v reflect.Value) bool {
		if v.Kind() == reflect.Pointer {
			return true
		}
		switch n := v.Interface().(type) {
		case *ast.Func, *ast.Render, *ast.Position:
			return false
		case *ast.BinaryOperator:
			return n.Op != ast.OperatorAnd && n.Op != ast.OperatorOr && n.Op != ast.OperatorExtendedAnd && n.Op != ast.OperatorExtendedOr
		case *ast.Call:
			if in.ofHost(n) {
				in.hoisted++
				name := "value " + strconv.Itoa(in.hoisted) + " "
				in.declared[name] = true
				*before = append(*before, ast.NewAssignment(n.Pos(), []ast.Expression{ast.NewIdentifier(n.Pos(), name)}, ast.AssignmentDeclaration, []ast.Expression{n}))
				v.Set(reflect.ValueOf(ast.NewIdentifier(n.Pos(), name)))
				return false
			}
			if len(n.Args) == 1 { // the argument may be several values
				inner, ok := n.Args[0].(*ast.Call)
				return !ok || !in.ofHost(inner)
			}
		}
		return true
	}, nil)
}

// ofHost reports a call such as resources.pods.GetSingle(...).
func (in *tracer) ofHost(call *ast.Call) bool {
	f, ok := call.Func.(*ast.Selector)
	for ok {
		if id, is := f.Expr.(*ast.Identifier); is {
			return in.t.names.Vars[id.Name] && !in.declared[id.Name]
		}
		f, ok = f.Expr.(*ast.Selector)
	}
	return false
}

// gives returns a call that tells the recorder: this variable comes from the objects of the
// statement.
func (in *tracer) gives(id *ast.Identifier) ast.Node {
	return ast.NewCall(id.Pos(), ast.NewIdentifier(id.Pos(), origin.Gives), []ast.Expression{text(id.Pos(), id.Name)}, false)
}

// take makes a macro report that its parameters come from the objects of its call.
func (in *tracer) take(n *ast.Func) {
	nodes := n.Body.Nodes[:1:1] // Begin
	for _, p := range n.Type.Parameters {
		if p.Ident != nil && p.Ident.Name != "_" {
			nodes = append(nodes, in.gives(p.Ident))
		}
	}
	n.Body.Nodes = append(nodes, n.Body.Nodes[1:]...)
}

func text(pos *ast.Position, s string) *ast.BasicLiteral {
	return ast.NewBasicLiteral(pos, ast.StringLiteral, strconv.Quote(s))
}

// variables calls yield for each variable whose value, or a part of it, is in the value of
// an expression. The key of an index does not count: it only chooses.
func (in *tracer) variables(n ast.Node, yield func(id *ast.Identifier)) {
	if isNil(n) {
		return
	}
	switch n := n.(type) {
	case *ast.Identifier:
		if (in.declared[n.Name] || in.t.names.Vars[n.Name]) && !in.functions[n.Name] {
			yield(n)
		}
	case *ast.Index:
		in.variables(n.Expr, yield)
	case *ast.TypeAssertion:
		in.variables(n.Expr, yield)
	case *ast.Call:
		if f, ok := n.Func.(*ast.Selector); ok {
			in.variables(f.Expr, yield)
		}
		for _, arg := range n.Args {
			in.variables(arg, yield)
		}
	case *ast.Func, *ast.Render, *ast.Tree, *ast.Block, *ast.CompositeLiteral:
	default:
		children(n, func(n ast.Node) { in.variables(n, yield) })
	}
}

// declareAll notes the variables that a tree and the files below it declare.
func (in *tracer) declareAll(n ast.Node) {
	if isNil(n) || in.known[n] {
		return
	}
	in.known[n] = true
	in.declare(n)
	children(n, in.declareAll)
}

// declare notes the variables that a node declares, in any scope.
func (in *tracer) declare(n ast.Node) {
	note := func(expr, typ, value ast.Expression) {
		id, ok := expr.(*ast.Identifier)
		if !ok || id == nil || id.Name == "_" || in.t.packages[id.Name] {
			return
		}
		_, ofType := typ.(*ast.FuncType)
		if from, ok := value.(*ast.Identifier); ok && !in.declared[from.Name] {
			_, host := in.t.names.Globals[from.Name]
			ofType = ofType || host && !in.t.names.Vars[from.Name]
		} else if ok {
			ofType = ofType || in.functions[from.Name]
		}
		in.declared[id.Name] = true
		in.functions[id.Name] = in.functions[id.Name] || ofType
	}
	at := func(values []ast.Expression, i, n int) ast.Expression {
		if len(values) != n {
			return nil // one call returns several values
		}
		return values[i]
	}
	switch n := n.(type) {
	case *ast.Var:
		for i, id := range n.Lhs {
			note(id, n.Type, at(n.Rhs, i, len(n.Lhs)))
		}
	case *ast.Assignment:
		if n.Type == ast.AssignmentDeclaration {
			for i, expr := range n.Lhs {
				note(expr, nil, at(n.Rhs, i, len(n.Lhs)))
			}
		}
	case *ast.ForIn:
		note(n.Ident, nil, nil)
	case *ast.Func:
		for _, p := range n.Type.Parameters {
			note(p.Ident, p.Type, nil)
		}
	}
}
