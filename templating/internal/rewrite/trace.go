package rewrite

import (
	"reflect"
	"strings"

	"github.com/open2b/scriggo/ast"

	"github.com/hapticsdk/haptic/templating/internal/origin"
)

// trace adds calls of the recorder to a tree, its macros, and the files that it renders,
// extends and imports.
func (t *Tree) trace(tree *ast.Tree) {
	in := &tracer{t: t, seen: map[any]bool{}, end: -1, declared: map[string]bool{}, functions: map[string]bool{}, known: map[ast.Node]bool{}}
	if !t.NoUses {
		in.declareAll(tree)
	}
	in.visit(reflect.ValueOf(tree))
}

type tracer struct {
	t     *Tree
	seen  map[any]bool
	file  string // the current file
	level int    // how many loops are around, in this macro or file
	// declares is true at the top of a file with declarations alone: statements cannot
	// stand there.
	declares bool
	end      int             // the number of the current macro, -1 for none
	declared map[string]bool // variables of all scopes
	// functions are variables that hold a function of the host. Scriggo cannot pass such a
	// value to the recorder.
	functions map[string]bool
	known     map[ast.Node]bool
	hoisted   int // how many variables hoist made
}

// inFunction is the level at the start of a function. It is deeper than all loops: the
// owners that a function sets end with the statement that calls it.
const inFunction = 1 << 20

// visit visits all fields of a node.
func (in *tracer) visit(v reflect.Value) {
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

// node visits the target of a pointer, and adds calls at the start and the end of a node
// with a text of its own.
func (in *tracer) node(v reflect.Value) {
	file, level, declares, end := in.file, in.level, in.declares, in.end
	defer func() { in.file, in.level, in.declares, in.end = file, level, declares, end }()
	switch n := v.Interface().(type) {
	case *ast.Position:
	case *ast.Tree:
		in.file, in.level = n.Path, 0
		in.declares = extended(n) != nil
		in.visit(v.Elem())
	case *ast.Import:
		if n.Tree != nil && !in.seen[n.Tree] {
			in.seen[n.Tree] = true
			in.file, in.level, in.declares = n.Tree.Path, 0, true
			in.visit(reflect.ValueOf(n.Tree).Elem())
		}
	case *ast.Show:
		for _, expr := range n.Expressions { // a rendered file here shares the output of the other expressions
			in.visit(reflect.ValueOf(expr))
		}
	case *ast.Default: // takes a rendered file as it is
		in.visit(reflect.ValueOf(n.Expr1))
		in.visit(reflect.ValueOf(n.Expr2))
	case *ast.Func:
		in.level, in.declares, in.end = inFunction, false, -1
		if n.Type != nil && n.Type.Macro {
			in.level = 0
			in.end = in.spot(origin.Spot{}, n.Pos())
		}
		in.visit(v.Elem())
		if in.end >= 0 && n.Body != nil {
			in.surround(n.Body, n.Pos(), in.end)
			in.take(n)
		}
	case *ast.Using:
		in.visit(reflect.ValueOf(&n.Statement).Elem())
		in.level, in.declares = 0, false
		in.visit(reflect.ValueOf(n.Body))
		in.surround(n.Body, n.Pos(), in.spot(origin.Spot{}, n.Pos()))
	case *ast.For, *ast.ForIn, *ast.ForRange:
		in.loop(n.(ast.Node), v)
	default:
		in.visit(v.Elem())
	}
}

// surround adds begin and end around the text of a macro.
func (in *tracer) surround(body *ast.Block, pos *ast.Position, id int) {
	nodes := append([]ast.Node{in.call(origin.Begin, pos, id)}, body.Nodes...)
	body.Nodes = append(nodes, in.call(origin.End, pos, id))
}

// loop visits a loop. It makes each turn report its start and its element.
func (in *tracer) loop(n ast.Node, v reflect.Value) {
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
	turn := []ast.Node{in.call(origin.Trace, pos, in.spot(origin.Spot{Level: in.level, Turn: true}, pos))}
	if id, ok := variable.(*ast.Identifier); ok && id != nil && id.Name != "_" {
		leave := ast.NewCall(pos, ast.NewIdentifier(pos, origin.Element), []ast.Expression{ast.NewIdentifier(pos, id.Name)}, false)
		turn = append(turn, ast.NewIf(pos, nil, leave, ast.NewBlock(pos, []ast.Node{ast.NewContinue(pos, nil)}), nil))
	}
	*body = append(turn, inner...)
}

// statements adds a call of trace before each statement of a list.
func (in *tracer) statements(nodes []ast.Node) []ast.Node {
	marked := make([]ast.Node, 0, 2*len(nodes))
	for _, n := range nodes {
		before, behind := in.uses(n)
		switch n := n.(type) {
		case *ast.Show:
			pos := n.Expressions[0].Pos()
			marked = append(marked, in.trace(pos, nil))
			if renders(n) {
				id := in.spot(origin.Spot{Level: in.level}, pos)
				marked = append(append(marked, before...), in.call(origin.BeginFile, pos, id), n, in.call(origin.End, pos, id))
				continue
			}
		case *ast.Text:
			marked = append(marked, in.trace(n.Pos(), n))
		case *ast.Raw:
			if n.Text != nil {
				marked = append(marked, in.trace(n.Text.Pos(), n.Text))
			}
		case *ast.Return: // of a macro
			if in.end >= 0 {
				marked = append(marked, in.call(origin.End, n.Pos(), in.end))
			}
		case *ast.If, *ast.For, *ast.ForIn, *ast.ForRange, *ast.Switch, *ast.TypeSwitch, *ast.Using, *ast.Var,
			*ast.Assignment, *ast.Call:
			if !ours(n) {
				marked = append(marked, in.trace(n.Pos(), nil))
			}
		}
		marked = append(append(append(marked, before...), n), behind...)
	}
	return marked
}

// renders reports whether a show node shows a rendered file.
func renders(n *ast.Show) bool {
	for _, expr := range n.Expressions {
		if _, ok := expr.(*ast.Render); ok {
			return true
		}
	}
	return false
}

// ours reports whether the transformer added a statement: a call with a name that no
// template can spell, or "_ = variable".
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
func (in *tracer) trace(pos *ast.Position, text *ast.Text) ast.Node {
	s := origin.Spot{Level: in.level}
	if text != nil {
		s.Text = string(text.Text[text.Cut.Left : len(text.Text)-text.Cut.Right])
		s.Start = text.Pos().Start + text.Cut.Left
	}
	return in.call(origin.Trace, pos, in.spot(s, pos))
}

// spot adds a spot and returns its number.
func (in *tracer) spot(s origin.Spot, pos *ast.Position) int {
	if pos == nil {
		pos = &ast.Position{Line: 1, Column: 1}
	}
	s.File = in.file
	s.Line, s.Column = in.t.src.Position(in.file, pos.Start)
	if s.Text == "" || !in.t.src.has(in.file, s.Start, s.Text) {
		s.Start = -1
	}
	in.t.Spots = append(in.t.Spots, s)
	return len(in.t.Spots) - 1
}

func (in *tracer) call(name string, pos *ast.Position, id int) *ast.Call {
	return ast.NewCall(pos, ast.NewIdentifier(pos, name), []ast.Expression{number(pos, id)}, false)
}

// text makes the recorder follow a rendered file whose text is a value.
func (in *tracer) text(n *ast.Render) ast.Expression {
	pos := n.Pos()
	begin := in.call(origin.BeginText, pos, in.spot(origin.Spot{Level: in.level}, pos))
	return ast.NewCall(pos, ast.NewIdentifier(pos, origin.EndText), []ast.Expression{begin, n}, false)
}
