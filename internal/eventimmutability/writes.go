package eventimmutability

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// origin says where the references in a value lead.
type origin int

const (
	elsewhere origin = iota
	own              // a pointer to the function's own copy of an event
	shared           // what other subscribers see as well
)

// writes finds functions that write to events.
type writes struct {
	pass  *analysis.Pass
	decls map[*types.Func]*ast.FuncDecl
	todo  []task
	done  map[task]bool
	found map[token.Pos]bool // what was reported
}

// task is to look at a function whose parameter param (-1: the receiver) is an
// event or comes from one.
type task struct {
	fn    *types.Func
	param int
}

func newWrites(pass *analysis.Pass) *writes {
	w := &writes{pass: pass, decls: map[*types.Func]*ast.FuncDecl{}, done: map[task]bool{}, found: map[token.Pos]bool{}}
	for _, file := range pass.Files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				if fn, ok := pass.TypesInfo.Defs[d.Name].(*types.Func); ok {
					w.decls[fn] = d
				}
			}
		}
	}
	return w
}

// deliveries looks at a function that has Deliveries among its parameters.
func (w *writes) deliveries(typ *ast.FuncType, body *ast.BlockStmt) {
	roots := map[types.Object]origin{}
	for _, field := range typ.Params.List {
		for _, name := range field.Names {
			if obj := w.pass.TypesInfo.Defs[name]; obj != nil && isDelivery(obj.Type()) {
				roots[obj] = shared
			}
		}
	}
	w.function(body, roots)
}

func isDelivery(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Delivery" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == busPath
}

// call looks at the function that is given to Answer: its question is shared.
func (w *writes) call(call *ast.CallExpr) {
	if name, _ := busCall(w.pass, call); name != "Answer" || len(call.Args) != 3 {
		return
	}
	switch fn := ast.Unparen(call.Args[2]).(type) {
	case *ast.FuncLit:
		var names []*ast.Ident
		for _, field := range fn.Type.Params.List {
			names = append(names, field.Names...)
		}
		if len(names) == 2 && w.pass.TypesInfo.Defs[names[1]] != nil {
			w.function(fn.Body, map[types.Object]origin{w.pass.TypesInfo.Defs[names[1]]: shared})
		}
	case *ast.Ident:
		w.enqueue(w.pass.TypesInfo.Uses[fn], 1)
	case *ast.SelectorExpr:
		w.enqueue(w.pass.TypesInfo.Uses[fn.Sel], 1)
	}
}

func (w *writes) enqueue(obj types.Object, param int) {
	fn, ok := obj.(*types.Func)
	if !ok {
		return
	}
	t := task{fn.Origin(), param}
	if w.decls[t.fn] == nil || w.done[t] {
		return
	}
	w.done[t] = true
	w.todo = append(w.todo, t)
}

// follow looks at the functions that were passed an event.
func (w *writes) follow() {
	for len(w.todo) > 0 {
		t := w.todo[0]
		w.todo = w.todo[1:]
		sig := t.fn.Signature()
		param := sig.Recv()
		if t.param >= 0 {
			// A variadic parameter stands for all arguments from its place on.
			param = sig.Params().At(min(t.param, sig.Params().Len()-1))
		}
		if !isDelivery(param.Type()) { // those are looked at anyway
			w.function(w.decls[t.fn].Body, map[types.Object]origin{param: shared})
		}
	}
}

// function reports the writes of a function whose variables vars come from an
// event. It reads statements in their order and knows no branches: what was
// copied on one of them counts as copied.
func (w *writes) function(body *ast.BlockStmt, vars map[types.Object]origin) {
	if len(vars) == 0 || body == nil {
		return
	}
	s := &scope{writes: w, info: w.pass.TypesInfo, vars: vars, copied: map[string]bool{}}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			s.assign(n)
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) && len(n.Values) == len(n.Names) {
					s.bind(name, s.value(n.Values[i]))
				}
			}
		case *ast.IncDecStmt:
			s.write(n.X)
		case *ast.RangeStmt:
			s.ranged(n)
		case *ast.TypeSwitchStmt:
			s.typeSwitch(n)
		case *ast.CallExpr:
			s.call(n)
		}
		return true
	})
}

func (w *writes) report(pos token.Pos, what string, x ast.Expr) {
	if w.found[pos] {
		return // a function may be looked at for several reasons
	}
	w.found[pos] = true
	w.pass.Report(analysis.Diagnostic{Pos: pos, Message: what + " " + types.ExprString(x) + ": it belongs to an event that others see as well; make a copy"})
}
