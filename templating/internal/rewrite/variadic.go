package rewrite

import (
	"fmt"
	"reflect"

	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"
)

// Scriggo 0.60 counts the receiver of a method as one of the arguments that "..." collects:
// x.Get("a") calls Get("a", ""), or Get() if x is an interface. Arguments in a slice are
// right unless x is an interface: x.Get([]string{"a"}...). spread rewrites calls in this
// way, and refuses the others. A method that a template has assigned to a variable always
// works.

// variadicMethod describes the methods of one name.
type variadicMethod struct {
	fixed int          // arguments before the collected ones
	elem  reflect.Type // of the collected arguments; nil if no method of the name collects any
	iface bool         // an interface has it
	mixed bool         // the types that a template can reach have different methods of the name
}

// variadicMethods finds the methods of all types that templates can reach from globals, by
// name. The rewriter does not know the type before the dot.
func variadicMethods(globals native.Declarations) map[string]variadicMethod {
	found := map[string]variadicMethod{}
	seen := map[reflect.Type]bool{}
	var reach func(reflect.Type)
	reach = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		for _, part := range parts(t) {
			reach(part)
		}
		iface := t.Kind() == reflect.Interface
		if !iface && t.Name() != "" {
			t = reflect.PointerTo(t) // has the methods of t too
		}
		for i := range t.NumMethod() {
			m := t.Method(i)
			if !m.IsExported() {
				continue
			}
			reach(m.Type)
			var this variadicMethod
			if last := m.Type.NumIn() - 1; m.Type.IsVariadic() {
				this = variadicMethod{fixed: last - 1, elem: m.Type.In(last).Elem(), iface: iface}
				if iface {
					this.fixed = last
				}
			}
			if before, ok := found[m.Name]; ok && before != this {
				if this.elem == nil {
					this.fixed, this.elem = before.fixed, before.elem
				}
				this.mixed, this.iface = true, this.iface || before.iface
			}
			found[m.Name] = this
		}
	}
	for _, global := range globals {
		if t, ok := global.(reflect.Type); ok {
			reach(t)
		} else if global != nil {
			reach(reflect.TypeOf(global))
		}
	}
	return found
}

// parts returns the types that a template can reach from a value of a type.
func parts(t reflect.Type) (all []reflect.Type) {
	switch t.Kind() {
	case reflect.Map:
		return []reflect.Type{t.Key(), t.Elem()}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
		return []reflect.Type{t.Elem()}
	case reflect.Func:
		for i := range t.NumOut() {
			all = append(all, t.Out(i))
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() || f.Anonymous {
				all = append(all, f.Type)
			}
		}
	}
	return all
}

// spread passes the collected arguments of a variadic method as a slice.
func (t *Tree) spread(call *ast.Call) {
	selector, ok := call.Func.(*ast.Selector)
	if !ok {
		return
	}
	if id, ok := selector.Expr.(*ast.Identifier); ok && t.packages[id.Name] {
		return
	}
	m := t.names.methods()[selector.Ident]
	if m.elem == nil || call.IsVariadic && !m.iface {
		return
	}
	elem := m.elem.Name()
	if m.elem == reflect.TypeFor[any]() {
		elem = "any"
	}
	if m.mixed || m.iface || m.elem.PkgPath() != "" || elem == "" {
		t.fail(t.file, call.Pos(), fmt.Sprintf("%[1]s cannot be called here in this way, since it takes any number of arguments: "+
			"write {%% var f = x.%[1]s %%}, and call f(...)", selector.Ident))
		return
	}
	if len(call.Args) < m.fixed {
		return // the compiler reports this
	}
	pos := call.Pos()
	var values []ast.KeyValue
	for _, arg := range call.Args[m.fixed:] {
		values = append(values, ast.KeyValue{Value: arg})
	}
	list := ast.NewCompositeLiteral(pos, ast.NewSliceType(pos, ast.NewIdentifier(pos, elem)), values)
	call.Args = append(call.Args[:m.fixed:m.fixed], list)
	call.IsVariadic = true
}
