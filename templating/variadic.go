package templating

import (
	"fmt"
	"reflect"

	"github.com/open2b/scriggo/ast"
)

// Scriggo 0.60 counts the receiver of a method as one of the arguments that "..."
// collects, so that x.Get("a") calls Get("a", ""); of an interface it calls Get().
// Given as a slice they are right unless x is an interface: x.Get([]string{"a"}...).
// The transformer writes calls in this way. What it cannot is refused; a method that
// was assigned to a variable is always called rightly.

var anyType = reflect.TypeFor[any]()

// variadicMethod is what is known of the methods of one name.
type variadicMethod struct {
	fixed int          // arguments before those that are collected
	elem  reflect.Type // of each that is
	clear bool         // all types that a template can reach have it in this way
	iface bool         // an interface has it
}

// variadicMethods finds the methods with "..." of all types that values of these
// types lead to, by name. Which type stands before the dot is not known when a
// template is transformed.
func variadicMethods(roots []reflect.Type) map[string]variadicMethod {
	found := map[string]variadicMethod{}
	others := map[string]bool{}
	seen := map[reflect.Type]bool{}
	var reach func(reflect.Type)
	reach = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Map:
			reach(t.Key())
			reach(t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			reach(t.Elem())
		case reflect.Func:
			for i := range t.NumOut() {
				reach(t.Out(i))
			}
		case reflect.Struct:
			for i := range t.NumField() {
				if f := t.Field(i); f.IsExported() || f.Anonymous {
					reach(f.Type)
				}
			}
		}
		methods, receiver := t, 0
		if t.Kind() != reflect.Interface {
			receiver = 1
			if t.Name() != "" {
				methods = reflect.PointerTo(t) // has those of t, too
			}
		}
		for i := range methods.NumMethod() {
			m := methods.Method(i)
			if !m.IsExported() {
				continue
			}
			reach(m.Type)
			if !m.Type.IsVariadic() {
				others[m.Name] = true
				continue
			}
			last := m.Type.NumIn() - 1
			this := variadicMethod{last - receiver, m.Type.In(last).Elem(), true, receiver == 0}
			if before, ok := found[m.Name]; ok {
				this.clear = before == this
				this.iface = before.iface || this.iface
			}
			found[m.Name] = this
		}
	}
	for _, t := range roots {
		reach(t)
	}
	for name := range others {
		if m, ok := found[name]; ok {
			m.clear = false
			found[name] = m
		}
	}
	return found
}

// types lists the types of all that a template can name.
func (d *declared) types() []reflect.Type {
	var types []reflect.Type
	for _, t := range d.vars {
		types = append(types, t)
	}
	for _, v := range d.fixed {
		types = append(types, v.Type())
	}
	for _, global := range d.globals {
		if t, ok := global.(reflect.Type); ok {
			types = append(types, t)
		} else if global != nil {
			types = append(types, reflect.TypeOf(global))
		}
	}
	return types
}

// spread hands the last arguments of a call of a method with "..." over as a
// slice.
func (t *transformer) spread(call *ast.Call) {
	selector, ok := call.Func.(*ast.Selector)
	if !ok {
		return
	}
	if id, ok := selector.Expr.(*ast.Identifier); ok && t.packages[id.Name] {
		return
	}
	m, ok := t.decl.variadic()[selector.Ident]
	if !ok || call.IsVariadic && !m.iface {
		return
	}
	if !m.clear || m.iface || m.elem.PkgPath() != "" || m.elem.Name() == "" && m.elem != anyType {
		t.fail(t.file, call.Pos(), fmt.Sprintf("%[1]s cannot be called here in this way, since it takes any number of arguments: "+
			"write {%% var f = x.%[1]s %%}, and call f(...)", selector.Ident))
		return
	}
	if len(call.Args) < m.fixed {
		return // the compiler says so
	}
	name := m.elem.Name()
	if m.elem == anyType {
		name = "any"
	}
	pos := call.Pos()
	values := make([]ast.KeyValue, 0, len(call.Args)-m.fixed)
	for _, arg := range call.Args[m.fixed:] {
		values = append(values, ast.KeyValue{Value: arg})
	}
	list := ast.NewCompositeLiteral(pos, ast.NewSliceType(pos, ast.NewIdentifier(pos, name)), values)
	call.Args = append(call.Args[:m.fixed:m.fixed], list)
	call.IsVariadic = true
}
