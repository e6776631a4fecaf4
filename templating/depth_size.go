package templating

import (
	"reflect"
	"slices"
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

// checkSize is called behind assignments in a loop or a function, where a value
// can grow without end, and for arguments of functions, which may call each
// other.
func checkSize(v any) {
	switch v := v.(type) {
	case string:
		checkText("a variable", len(v))
	case int, bool, int64, float64:
	default:
		checkValue(reflect.ValueOf(v), maxLook)
	}
}

// maxLook is how deep checkSize looks into lists, and at how many elements at
// each end of one: what was added last is there.
const maxLook = 4

func checkValue(rv reflect.Value, depth int) {
	switch rv.Kind() {
	case reflect.String:
		checkText("a variable", rv.Len())
	case reflect.Interface:
		checkValue(rv.Elem(), depth)
	case reflect.Map:
		checkElements(rv.Len())
	case reflect.Slice:
		checkElements(rv.Len())
		for i := 0; i < rv.Len() && depth > 0; i++ {
			if i == maxLook && rv.Len() > 2*maxLook {
				i = rv.Len() - maxLook
			}
			checkValue(rv.Index(i), depth-1)
		}
	case reflect.Struct:
		for i := 0; i < rv.NumField() && depth > 0; i++ {
			checkValue(rv.Field(i), depth-1)
		}
	}
}

func checkElements(n int) {
	if n > maxElements {
		failf("%w: a variable would have %d elements, only %d can be", ErrTooLarge, n, maxElements)
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
	s := &sizer{t: t, seen: map[any]bool{}, inline: t.globals["len"] == nil && !t.vars["len"]}
	s.inline = s.inline && !namesLen(reflect.ValueOf(entry), map[any]bool{})
	file := t.file
	s.visit(reflect.ValueOf(entry), false)
	t.file = file
}

type sizer struct {
	t    *transformer
	seen map[any]bool
	// inline says that len is what it is in Go, so that it can be asked without
	// a call, which costs more than an assignment.
	inline bool
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
	switch n := v.Interface().(type) {
	case *ast.For: // what its third part assigns is seen in the next turn
		n.Body = append(s.checks(n.Post), n.Body...)
	case *ast.Func:
		if n.Body != nil && n.Type != nil {
			n.Body.Nodes = append(s.parameters(n.Type.Parameters), n.Body.Nodes...)
		}
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
		if id, ok := left.(*ast.Identifier); ok && id.Name == "_" {
			continue
		}
		if index, ok := left.(*ast.Index); ok && s.repeatable(index.Expr) { // of a map: the map grows
			checks = append(checks, s.checkLen(index.Expr))
		}
		var right ast.Expression // nil: one of the results of a call
		if len(a.Rhs) == len(a.Lhs) {
			right = a.Rhs[i]
		}
		adds := a.Type == ast.AssignmentAddition && !isNumeric(right)
		if (adds || right == nil || grows(right)) && s.repeatable(left) {
			checks = append(checks, checkCall(left))
		}
	}
	return checks
}

// parameters returns the checks of what a function is given.
func (s *sizer) parameters(all []*ast.Parameter) (checks []ast.Node) {
	var typ ast.Expression
	for i := len(all) - 1; i >= 0; i-- { // in "a, b string" only b has the type
		if all[i].Type != nil {
			typ = all[i].Type
		}
		if all[i].Ident == nil || all[i].Ident.Name == "_" {
			continue
		}
		switch typ := typ.(type) {
		case *ast.SliceType, *ast.MapType:
			checks = append(checks, s.checkLen(all[i].Ident))
		case *ast.Identifier:
			if typ.Name == "string" {
				checks = append(checks, s.checkLen(all[i].Ident))
			} else if typ.Name == "any" {
				checks = append(checks, checkCall(all[i].Ident))
			}
		case *ast.Interface:
			checks = append(checks, checkCall(all[i].Ident))
		}
	}
	return checks
}

func checkCall(v ast.Expression) ast.Node {
	return ast.NewCall(v.Pos(), ast.NewIdentifier(v.Pos(), sizeName), []ast.Expression{v}, false)
}

// checkLen is the check of what certainly has a length.
func (s *sizer) checkLen(v ast.Expression) ast.Node {
	if !s.inline {
		return checkCall(v)
	}
	pos := v.Pos()
	size := ast.NewCall(pos, ast.NewIdentifier(pos, "len"), []ast.Expression{v}, false)
	most := ast.NewBasicLiteral(pos, ast.IntLiteral, strconv.Itoa(maxElements))
	return ast.NewIf(pos, nil, ast.NewBinaryOperator(pos, ast.OperatorGreater, size, most),
		ast.NewBlock(pos, []ast.Node{checkCall(v)}), nil)
}

// repeatable reports whether an expression can be evaluated again: it calls
// nothing. A function of the host, such as first_seen, may answer otherwise the
// second time.
func (s *sizer) repeatable(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.Identifier, *ast.BasicLiteral:
		return true
	case *ast.Selector:
		return s.repeatable(e.Expr)
	case *ast.Index:
		return s.repeatable(e.Expr) && s.repeatable(e.Index)
	case *ast.UnaryOperator:
		return s.repeatable(e.Expr)
	case *ast.BinaryOperator:
		return s.repeatable(e.Expr1) && s.repeatable(e.Expr2)
	case *ast.TypeAssertion:
		return s.repeatable(e.Expr)
	case *ast.Call:
		id, ok := e.Func.(*ast.Identifier)
		return ok && id.Name == "len" && !slices.ContainsFunc(e.Args, func(e ast.Expression) bool { return !s.repeatable(e) })
	}
	return false
}

// grows reports whether an expression may be larger than what was there before:
// also a variable, since what it was declared with is not checked.
func grows(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.BasicLiteral, *ast.Func:
		return false
	case *ast.BinaryOperator:
		return e.Op == ast.OperatorAddition && !isNumeric(e.Expr1) && !isNumeric(e.Expr2)
	}
	return true
}

// namesLen reports whether something in a tree is named len, but the function.
func namesLen(v reflect.Value, seen map[any]bool) bool {
	switch v.Kind() {
	case reflect.Interface:
		return !v.IsNil() && namesLen(v.Elem(), seen)
	case reflect.Pointer:
		if v.IsNil() || seen[v.Interface()] {
			return false
		}
		seen[v.Interface()] = true
		switch n := v.Interface().(type) {
		case *ast.Position:
			return false
		case *ast.Identifier:
			return n.Name == "len"
		case *ast.Call:
			if id, ok := n.Func.(*ast.Identifier); ok && id.Name == "len" {
				return namesLen(reflect.ValueOf(n.Args), seen)
			}
		}
		return namesLen(v.Elem(), seen)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && namesLen(v.Field(i), seen) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if namesLen(v.Index(i), seen) {
				return true
			}
		}
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
