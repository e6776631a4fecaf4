package eventimmutability

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// scope is what is known of the variables of a function, at the statement that
// is looked at.
type scope struct {
	writes *writes
	info   *types.Info
	vars   map[types.Object]origin
	copied map[string]bool // fields of its own copy that were replaced, as source text
}

// value says where the references in the value of x lead.
func (s *scope) value(x ast.Expr) origin {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return s.vars[s.info.ObjectOf(x)]
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		if from, _ := s.place(x); from && !s.copied[types.ExprString(x)] {
			return shared
		}
	case *ast.UnaryExpr:
		if x.Op != token.AND {
			return elsewhere
		}
		switch from, seen := s.place(x.X); {
		case seen:
			return shared
		case from:
			return own
		}
	case *ast.SliceExpr:
		return s.value(x.X)
	case *ast.TypeAssertExpr:
		return s.value(x.X)
	case *ast.CallExpr:
		if tv := s.info.Types[x.Fun]; tv.IsType() && len(x.Args) == 1 { // a conversion
			return s.value(x.Args[0])
		}
	}
	return elsewhere
}

// place says whether the variable x is part of an event, and whether others see
// it too.
func (s *scope) place(x ast.Expr) (from, seen bool) {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return s.vars[s.info.ObjectOf(x)] != elsewhere, false
	case *ast.StarExpr:
		return s.behind(x.X)
	case *ast.SelectorExpr:
		if isPointer(s.info.TypeOf(x.X)) {
			return s.behind(x.X)
		}
		return s.place(x.X)
	case *ast.IndexExpr:
		switch s.info.TypeOf(x.X).Underlying().(type) {
		case *types.Slice, *types.Map:
			from = s.value(x.X) != elsewhere
			return from, from
		case *types.Pointer:
			return s.behind(x.X)
		case *types.Array:
			return s.place(x.X)
		}
	}
	return false, false
}

func (s *scope) behind(pointer ast.Expr) (from, seen bool) {
	o := s.value(pointer)
	return o != elsewhere, o == shared
}

func isPointer(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// write reports x, which is assigned to, where others see it.
func (s *scope) write(x ast.Expr) {
	if _, seen := s.place(x); seen {
		s.writes.report(x.Pos(), "writes to", x)
	}
}

func (s *scope) assign(a *ast.AssignStmt) {
	for i, lhs := range a.Lhs {
		rhs := elsewhere
		switch {
		case len(a.Lhs) == len(a.Rhs):
			rhs = s.value(a.Rhs[i])
		case len(a.Rhs) == 1 && i == 0: // v, ok := x.(T) or m[k]
			rhs = s.value(a.Rhs[0])
		}
		id, isIdent := lhs.(*ast.Ident)
		switch {
		case isIdent && (a.Tok == token.DEFINE || a.Tok == token.ASSIGN):
			s.bind(id, rhs)
			continue
		case isIdent:
			continue
		}
		s.write(lhs)
		if a.Tok == token.ASSIGN {
			s.copied[types.ExprString(lhs)] = rhs == elsewhere
		}
	}
}

func (s *scope) bind(name *ast.Ident, o origin) {
	obj := s.info.ObjectOf(name)
	if obj == nil {
		return
	}
	if o == elsewhere {
		delete(s.vars, obj)
		return
	}
	s.vars[obj] = o
}

func (s *scope) ranged(r *ast.RangeStmt) {
	o := s.value(r.X)
	for _, x := range []ast.Expr{r.Key, r.Value} {
		if id, ok := x.(*ast.Ident); ok {
			s.bind(id, o)
		}
	}
}

func (s *scope) typeSwitch(t *ast.TypeSwitchStmt) {
	a, ok := t.Assign.(*ast.AssignStmt)
	if !ok || len(a.Rhs) != 1 {
		return
	}
	o := s.value(a.Rhs[0])
	for _, clause := range t.Body.List {
		if obj := s.info.Implicits[clause]; obj != nil && o != elsewhere {
			s.vars[obj] = o
		}
	}
}

// mutators of the standard library change their first argument.
var mutators = map[string]map[string]bool{
	"slices": set("Sort", "SortFunc", "SortStableFunc", "Reverse", "Delete", "DeleteFunc", "Insert", "Replace", "Compact", "CompactFunc"),
	"sort":   set("Sort", "Stable", "Slice", "SliceStable", "Strings", "Ints", "Float64s"),
	"maps":   set("Copy", "DeleteFunc", "Insert"),
}

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func (s *scope) call(call *ast.CallExpr) {
	switch fn := typeutil.Callee(s.info, call).(type) {
	case *types.Builtin:
		s.builtin(fn.Name(), call)
	case *types.Func:
		if fn.Pkg() != nil && mutators[fn.Pkg().Path()][fn.Name()] && len(call.Args) > 0 {
			if s.value(call.Args[0]) == shared {
				s.writes.report(call.Pos(), fn.Pkg().Name()+"."+fn.Name()+" changes", call.Args[0])
			}
			return
		}
		s.pass(fn, call)
	}
}

func (s *scope) builtin(name string, call *ast.CallExpr) {
	if len(call.Args) == 0 || s.value(call.Args[0]) != shared {
		return
	}
	switch name {
	case "append":
		if x, ok := ast.Unparen(call.Args[0]).(*ast.SliceExpr); ok && x.Max != nil {
			return // s[:n:n] has no room: append copies
		}
		s.writes.report(call.Pos(), "append may write behind", call.Args[0])
	case "delete", "clear", "copy":
		s.writes.report(call.Pos(), name+" changes", call.Args[0])
	}
}

// pass has functions of the package looked at that are given a part of an event.
func (s *scope) pass(fn *types.Func, call *ast.CallExpr) {
	for i, arg := range call.Args {
		if s.value(arg) == shared {
			s.writes.enqueue(fn, i)
		}
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || fn.Signature().Recv() == nil {
		return
	}
	o := s.value(sel.X)
	if isPointer(fn.Signature().Recv().Type()) && !isPointer(s.info.TypeOf(sel.X)) { // &x
		o = elsewhere
		if _, seen := s.place(sel.X); seen {
			o = shared
		}
	}
	if o == shared {
		s.writes.enqueue(fn, -1)
	}
}
