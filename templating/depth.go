package templating

import (
	"context"
	"reflect"

	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"
)

// maxDepth is how deep macros and functions of templates may call each other.
// Scriggo has no bound of its own, and a Go stack that overflows ends the
// whole process.
const maxDepth = 256

// depthKey finds the depth of a render in its context.
type depthKey struct{}

func withDepth(ctx context.Context) context.Context {
	return context.WithValue(ctx, depthKey{}, new(int))
}

// enter and leave are called at the start and at the end of every macro and
// function of a template.
func enter(env native.Env) {
	depth, ok := env.Context().Value(depthKey{}).(*int)
	if !ok {
		return
	}
	if *depth++; *depth > maxDepth {
		failf("macros call each other more than %d deep", maxDepth)
	}
}

func leave(env native.Env) {
	if depth, ok := env.Context().Value(depthKey{}).(*int); ok {
		*depth--
	}
}

// guard puts enter and leave into a macro or function. The text of a macro is
// lost to a deferred call, so that a macro calls leave before each return.
func (t *transformer) guard(fn *ast.Func) {
	if fn.Body == nil {
		return
	}
	pos := fn.Pos()
	call := func(name string) *ast.Call {
		return ast.NewCall(pos, ast.NewIdentifier(pos, name), nil, false)
	}
	if fn.Type == nil || !fn.Type.Macro {
		fn.Body.Nodes = append([]ast.Node{call(enterName), ast.NewDefer(pos, call(leaveName))}, fn.Body.Nodes...)
		return
	}
	beforeReturns(reflect.ValueOf(fn.Body), func() ast.Node { return call(leaveName) })
	fn.Body.Nodes = append([]ast.Node{call(enterName)}, fn.Body.Nodes...)
	fn.Body.Nodes = append(fn.Body.Nodes, call(leaveName))
}

// beforeReturns puts a statement before each return of a body, but not of the
// functions in it.
func beforeReturns(v reflect.Value, statement func() ast.Node) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			beforeReturns(v.Elem(), statement)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		switch v.Interface().(type) {
		case *ast.Func, *ast.Tree, *ast.Position, *ast.Render:
			return
		}
		beforeReturns(v.Elem(), statement)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				beforeReturns(v.Field(i), statement)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			beforeReturns(v.Index(i), statement)
		}
		if nodes, ok := v.Interface().([]ast.Node); ok && v.CanSet() {
			var out []ast.Node
			for _, n := range nodes {
				if _, ok := n.(*ast.Return); ok {
					out = append(out, statement())
				}
				out = append(out, n)
			}
			v.Set(reflect.ValueOf(out))
		}
	}
}
