package templating

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/open2b/scriggo/ast"
)

// Names that no template can spell, for the functions that follow a traced
// render.
const (
	traceName     = "trace "
	elementName   = "element "
	beginName     = "begin "
	beginFileName = "begin file "
	endName       = "end "
	beginTextName = "begin text "
	endTextName   = "end text "
)

// instrument puts calls of the recorder into a tree, its macros and the files
// that it renders, extends and imports.
func (t *transformer) instrument(tree *ast.Tree) {
	in := &instrumenter{t: t, seen: map[any]bool{}}
	in.visit(reflect.ValueOf(tree))
}

type instrumenter struct {
	t     *transformer
	seen  map[any]bool
	file  string // the file that is visited
	level int    // how many loops are around, in this macro or file
	// declares is true at the top of a file that only declares, where statements
	// cannot stand.
	declares bool
}

// inFunction is the level at the start of a function. It is deeper than all
// loops, so that what a function says of owners ends with the statement that
// called it.
const inFunction = 1 << 20

// visit goes over all fields of a node.
func (in *instrumenter) visit(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		render, ok := v.Interface().(*ast.Render)
		in.visit(v.Elem())
		if ok && v.CanSet() {
			v.Set(reflect.ValueOf(in.text(render)))
		}
	case reflect.Pointer:
		if !v.IsNil() && !in.seen[v.Interface()] {
			in.seen[v.Interface()] = true
			in.node(v)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				in.visit(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			in.visit(v.Index(i))
		}
		if nodes, ok := v.Interface().([]ast.Node); ok && !in.declares && v.CanSet() {
			v.Set(reflect.ValueOf(in.statements(nodes)))
		}
	}
}

// node visits what a pointer points to, and puts calls at the start and the end
// of what has one.
func (in *instrumenter) node(v reflect.Value) {
	file, level, declares := in.file, in.level, in.declares
	defer func() { in.file, in.level, in.declares = file, level, declares }()
	switch n := v.Interface().(type) {
	case *ast.Position:
	case *ast.Tree:
		in.file, in.level = n.Path, 0
		in.declares = onlyDeclares(n)
		in.visit(v.Elem())
	case *ast.Import:
		if n.Tree != nil && !in.seen[n.Tree] {
			in.seen[n.Tree] = true
			in.file, in.level, in.declares = n.Tree.Path, 0, true
			in.visit(reflect.ValueOf(n.Tree).Elem())
		}
	case *ast.Show:
		for _, expr := range n.Expressions { // a rendered file here writes to where the others do
			in.visit(reflect.ValueOf(expr))
		}
	case *ast.Default: // takes a rendered file as it is
		in.visit(reflect.ValueOf(n.Expr1))
		in.visit(reflect.ValueOf(n.Expr2))
	case *ast.Func:
		in.level, in.declares = inFunction, false
		if n.Type != nil && n.Type.Macro {
			in.level = 0
		}
		in.visit(v.Elem())
		if in.level == 0 && n.Body != nil {
			in.surround(n.Body, n.Pos())
		}
	case *ast.Using:
		in.visit(reflect.ValueOf(&n.Statement).Elem())
		in.level, in.declares = 0, false
		in.visit(reflect.ValueOf(n.Body))
		in.surround(n.Body, n.Pos())
	case *ast.For, *ast.ForIn, *ast.ForRange:
		in.loop(n.(ast.Node), v)
	default:
		in.visit(v.Elem())
	}
}

// surround puts begin and end around the text of a macro.
func (in *instrumenter) surround(body *ast.Block, pos *ast.Position) {
	id := in.spot(spot{level: in.level}, pos)
	nodes := append([]ast.Node{in.call(beginName, pos, id)}, body.Nodes...)
	body.Nodes = append(nodes, in.call(endName, pos, id))
	beforeReturns(reflect.ValueOf(body), func() ast.Node { return in.call(endName, pos, id) })
}

// loop visits a loop, and has each turn say that it begins, and with what.
func (in *instrumenter) loop(n ast.Node, v reflect.Value) {
	var body *[]ast.Node
	var variable ast.Expression
	switch n := n.(type) {
	case *ast.For:
		body = &n.Body
	case *ast.ForIn:
		body, variable = &n.Body, n.Ident
	case *ast.ForRange:
		body = &n.Body
		if len(n.Assignment.Lhs) == 2 {
			variable = n.Assignment.Lhs[1]
		}
	}
	inner := *body
	*body = nil
	in.visit(v.Elem()) // all but the body
	in.level++
	in.visit(reflect.ValueOf(&inner).Elem())
	pos := n.Pos()
	turn := []ast.Node{in.call(traceName, pos, in.spot(spot{level: in.level, turn: true}, pos))}
	if id, ok := variable.(*ast.Identifier); ok && id != nil && id.Name != "_" {
		leave := ast.NewCall(pos, ast.NewIdentifier(pos, elementName), []ast.Expression{ast.NewIdentifier(pos, id.Name)}, false)
		turn = append(turn, ast.NewIf(pos, nil, leave, ast.NewBlock(pos, []ast.Node{ast.NewContinue(pos, nil)}), nil))
	}
	*body = append(turn, inner...)
}

// statements puts a call of trace before each statement of a list.
func (in *instrumenter) statements(nodes []ast.Node) []ast.Node {
	marked := make([]ast.Node, 0, 2*len(nodes))
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.Show:
			pos := n.Expressions[0].Pos()
			marked = append(marked, in.trace(pos, nil))
			if renders(n) {
				id := in.spot(spot{level: in.level}, pos)
				marked = append(marked, in.call(beginFileName, pos, id), n, in.call(endName, pos, id))
				continue
			}
		case *ast.Text:
			marked = append(marked, in.trace(n.Pos(), n))
		case *ast.Raw:
			if n.Text != nil {
				marked = append(marked, in.trace(n.Text.Pos(), n.Text))
			}
		case *ast.If, *ast.For, *ast.ForIn, *ast.ForRange, *ast.Switch, *ast.TypeSwitch, *ast.Using, *ast.Var,
			*ast.Assignment, *ast.Call:
			if !ours(n) {
				marked = append(marked, in.trace(n.Pos(), nil))
			}
		}
		marked = append(marked, n)
	}
	return marked
}

func renders(n *ast.Show) bool {
	for _, expr := range n.Expressions {
		if _, ok := expr.(*ast.Render); ok {
			return true
		}
	}
	return false
}

// ours reports whether the transformer put a statement there: a call of what no
// template can spell, or a variable that is only touched.
func ours(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Call:
		id, ok := n.Func.(*ast.Identifier)
		return ok && strings.HasSuffix(id.Name, " ")
	case *ast.Assignment:
		return n.Pos().End == 0
	}
	return false
}

// trace returns a call of trace for a statement, with the text that it writes.
func (in *instrumenter) trace(pos *ast.Position, text *ast.Text) ast.Node {
	s := spot{level: in.level}
	if text != nil {
		s.text = string(text.Text[text.Cut.Left : len(text.Text)-text.Cut.Right])
		s.start = text.Pos().Start + text.Cut.Left
	}
	return in.call(traceName, pos, in.spot(s, pos))
}

// spot numbers a place.
func (in *instrumenter) spot(s spot, pos *ast.Position) int {
	if pos == nil {
		pos = &ast.Position{Line: 1, Column: 1}
	}
	s.file = in.file
	s.line, s.column = in.t.src.position(in.file, pos.Start)
	if s.text == "" || !in.t.src.has(in.file, s.start, s.text) {
		s.start = -1
	}
	in.t.spots = append(in.t.spots, s)
	return len(in.t.spots) - 1
}

func (in *instrumenter) call(name string, pos *ast.Position, id int) *ast.Call {
	number := ast.NewBasicLiteral(pos, ast.IntLiteral, strconv.Itoa(id))
	return ast.NewCall(pos, ast.NewIdentifier(pos, name), []ast.Expression{number}, false)
}

// text has the recorder follow a rendered file whose text is a value.
func (in *instrumenter) text(n *ast.Render) ast.Expression {
	pos := n.Pos()
	begin := in.call(beginTextName, pos, in.spot(spot{level: in.level}, pos))
	return ast.NewCall(pos, ast.NewIdentifier(pos, endTextName), []ast.Expression{begin, n}, false)
}

// onlyDeclares reports whether a file extends another, so that statements
// cannot stand at its top level.
func onlyDeclares(tree *ast.Tree) bool {
	for _, n := range tree.Nodes {
		switch n := n.(type) {
		case *ast.Extends:
			return true
		case *ast.Statements:
			if len(n.Nodes) > 0 {
				if _, ok := n.Nodes[0].(*ast.Extends); ok {
					return true
				}
			}
		}
	}
	return false
}
