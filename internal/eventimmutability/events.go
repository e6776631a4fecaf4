package eventimmutability

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// events finds the types that are published, subscribed to or asked, and what
// can be written to in them.
type events struct {
	pass *analysis.Pass
	seen map[string]bool // types that were looked at
}

// place of the type of an event, or question, among the type arguments.
var eventArgument = map[string]int{"Publish": 0, "Subscribe": 0, "Latest": 0, "Answer": 0, "Ask": 1}

func (e *events) call(call *ast.CallExpr) {
	name, args := busCall(e.pass, call)
	i, ok := eventArgument[name]
	if !ok || args.Len() <= i {
		return
	}
	typ := args.At(i)
	if types.IsInterface(typ) && name == "Publish" && len(call.Args) == 2 { // the topic is the dynamic type
		typ = e.pass.TypesInfo.TypeOf(call.Args[1])
	}
	key := types.TypeString(typ, nil)
	if typ == nil || e.seen[key] || strings.HasSuffix(e.pass.Fset.File(call.Pos()).Name(), "_test.go") {
		return // what only tests publish does no harm
	}
	e.seen[key] = true
	w := walk{pass: e.pass, visited: map[types.Type]bool{}}
	w.typ(typ, "", call.Pos(), func(pos token.Pos, path string, field types.Type) {
		qualifier := types.RelativeTo(e.pass.Pkg)
		event := types.TypeString(typ, qualifier)
		if path == "" {
			e.pass.Reportf(pos, "event %s can be written to by everyone who gets it: publish a struct, or mark the type %s REASON", event, mark)
			return
		}
		e.pass.Reportf(pos, "event %s: everyone who gets it can write to %s (%s): give a copy through a method, or mark the field %s REASON",
			event, path, types.TypeString(field, qualifier), mark)
	})
}

// walk visits what can be reached through exported fields, up to the first
// indirection.
type walk struct {
	pass    *analysis.Pass
	visited map[types.Type]bool
}

func (w *walk) typ(t types.Type, path string, pos token.Pos, report func(token.Pos, string, types.Type)) {
	t = types.Unalias(t)
	if w.visited[t] {
		return
	}
	w.visited[t] = true
	defer delete(w.visited, t)
	if named, ok := t.(*types.Named); ok && w.marked(named.Origin().Obj()) {
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Slice, *types.Map:
		report(pos, path, t)
	case *types.Pointer:
		if w.writable(u.Elem()) {
			report(pos, path, t)
		}
	case *types.Array:
		w.typ(u.Elem(), path, pos, report)
	case *types.Struct:
		for field := range u.Fields() {
			if !field.Exported() || w.marked(field.Origin()) {
				continue
			}
			at := pos
			if field.Pkg() == w.pass.Pkg && field.Pos().IsValid() {
				at = field.Pos()
			}
			name := field.Name()
			if path != "" {
				name = path + "." + name
			}
			w.typ(field.Type(), name, at, report)
		}
	}
}

// writable says whether a variable of type t behind a pointer can be written to
// from another package without a method: an opaque struct cannot, but for being
// overwritten as a whole, which nobody does by mistake.
func (w *walk) writable(t types.Type) bool {
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok && w.marked(named.Origin().Obj()) {
		return false
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return true
	}
	for field := range s.Fields() {
		if field.Exported() && !w.marked(field.Origin()) {
			return true
		}
	}
	return false
}

func (w *walk) marked(obj types.Object) bool {
	return obj != nil && obj.Pkg() != nil && w.pass.ImportObjectFact(obj, new(immutable))
}
