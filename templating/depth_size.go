package templating

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/open2b/scriggo/ast"
)

// Bounds of a value that a template makes.
const (
	maxText     = DefaultMaxOutput // bytes of a text
	maxElements = 1 << 22          // elements of a list, entries of a map
	maxArray    = 1 << 10          // elements of an array, which has all of them at once
)

// Names that no template can spell.
const (
	sizeName   = "check size "
	lengthName = "check length "
)

// checkSize is called behind each assignment in a loop or a function, where a
// value can grow without end.
func checkSize(v any) {
	switch v := v.(type) {
	case string:
		checkText("a variable", len(v))
		return
	case int, bool, int64, float64:
		return
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.String:
		checkText("a variable", rv.Len())
	case reflect.Slice, reflect.Map:
		if rv.Len() > maxElements {
			failf("%w: a variable would have %d elements, only %d can be", ErrTooLarge, rv.Len(), maxElements)
		}
	}
}

// checkText refuses a text that would be too large, before it is made.
func checkText(what string, size int) {
	if size > maxText || size < 0 {
		failf("%w: %s would have %d bytes, only %d can be", ErrTooLarge, what, size, maxText)
	}
}

// checkLength is around each length and capacity that make is given.
func checkLength(n int) int {
	if n > maxElements {
		failf("%w: make: %d elements wanted, only %d can be", ErrTooLarge, n, maxElements)
	}
	return n
}

// boundSizes puts the checks of sizes into a tree and all that it uses.
func (t *transformer) boundSizes(entry *ast.Tree) {
	s := &sizer{t: t, seen: map[any]bool{}}
	file := t.file
	s.visit(reflect.ValueOf(entry), false)
	t.file = file
}

type sizer struct {
	t    *transformer
	seen map[any]bool
}

// visit goes over all fields of a node; again says that it is in a loop or a
// function, so that it may run many times.
func (s *sizer) visit(v reflect.Value, again bool) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			s.visit(v.Elem(), again)
		}
	case reflect.Pointer:
		if !v.IsNil() && !s.seen[v.Interface()] {
			s.seen[v.Interface()] = true
			s.node(v, again)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.visit(v.Field(i), again)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			s.visit(v.Index(i), again)
		}
		if nodes, ok := v.Interface().([]ast.Node); ok && again && v.CanSet() {
			v.Set(reflect.ValueOf(s.statements(nodes)))
		}
	}
}

func (s *sizer) node(v reflect.Value, again bool) {
	switch n := v.Interface().(type) {
	case *ast.Position:
		return
	case *ast.Tree:
		file := s.t.file
		s.t.file = n.Path
		s.visit(v.Elem(), again)
		s.t.file = file
		return
	case *ast.For, *ast.ForIn, *ast.ForRange, *ast.Func:
		again = true
	case *ast.Call:
		s.lengths(n)
	case *ast.ArrayType:
		s.array(n)
	}
	s.visit(v.Elem(), again)
	if n, ok := v.Interface().(*ast.For); ok { // what its third part assigns is seen in the next turn
		n.Body = append(s.checks(n.Post), n.Body...)
	}
}

// statements puts checks behind the assignments of a list.
func (s *sizer) statements(nodes []ast.Node) []ast.Node {
	out := make([]ast.Node, 0, len(nodes))
	for _, n := range nodes {
		out = append(append(out, n), s.checks(n)...)
	}
	return out
}

// checks returns the checks of what a statement assigns to.
func (s *sizer) checks(n ast.Node) (checks []ast.Node) {
	a, ok := n.(*ast.Assignment)
	if !ok || a.Type != ast.AssignmentSimple && a.Type != ast.AssignmentAddition {
		return nil
	}
	for i, left := range a.Lhs {
		if len(a.Rhs) == len(a.Lhs) && isSmall(a.Rhs[i]) {
			continue
		}
		if index, ok := left.(*ast.Index); ok { // of a map: the map grows
			left = index.Expr
		}
		if id, ok := left.(*ast.Identifier); ok && id.Name != "_" {
			checks = append(checks, ast.NewCall(a.Pos(), ast.NewIdentifier(a.Pos(), sizeName),
				[]ast.Expression{ast.NewIdentifier(a.Pos(), id.Name)}, false))
		}
	}
	return checks
}

// isSmall reports whether an expression is a literal, or a sum with a number.
func isSmall(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.BasicLiteral:
		return true
	case *ast.BinaryOperator:
		return isNumeric(e.Expr1) || isNumeric(e.Expr2) || e.Op != ast.OperatorAddition
	}
	return false
}

func isNumeric(e ast.Expression) bool {
	l, ok := e.(*ast.BasicLiteral)
	return ok && l.Type != ast.StringLiteral
}

// lengths bounds what make is given.
func (s *sizer) lengths(call *ast.Call) {
	if id, ok := call.Func.(*ast.Identifier); !ok || id.Name != "make" || len(call.Args) < 2 {
		return
	}
	switch call.Args[0].(type) {
	case *ast.SliceType, *ast.MapType, *ast.ChanType:
	default:
		return
	}
	for i, n := range call.Args[1:] {
		call.Args[i+1] = ast.NewCall(n.Pos(), ast.NewIdentifier(n.Pos(), lengthName), []ast.Expression{n}, false)
	}
}

// array refuses arrays of which the template does not say that they are small.
func (s *sizer) array(n *ast.ArrayType) {
	if n.Len == nil {
		return
	}
	if l, ok := n.Len.(*ast.BasicLiteral); ok && l.Type == ast.IntLiteral {
		if size, err := strconv.ParseInt(strings.ReplaceAll(l.Value, "_", ""), 0, 64); err == nil && size <= maxArray {
			return
		}
	}
	s.t.fail(s.t.file, n.Pos(), "the length of an array must be a number up to "+strconv.Itoa(maxArray)+": use a list")
}
