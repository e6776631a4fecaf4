package templating

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strconv"

	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
)

// maxDepth is how deep macros and functions of templates may call each other.
// Scriggo has no bound of its own, and a Go stack that overflows ends the
// whole process.
const maxDepth = 256

// maxBuffered is how many times [Options.MaxOutput] all macros of a render may
// write together. It is more than one since a macro's text that another macro
// shows counts again.
const maxBuffered = 8

// limitsKey finds the limits of a render in its context.
type limitsKey struct{}

// limits is what a render has used of its bounds outside of the output, which
// bounds itself: the depth of macros, and what they wrote.
type limits struct {
	depth, bytes, max int
	out               *output
}

func withLimits(ctx context.Context, out *output) context.Context {
	return context.WithValue(ctx, limitsKey{}, &limits{max: out.max, out: out})
}

// enter and leave are called at the start and at the end of every macro and
// function of a template; size is the text of the macro outside of loops.
func enter(env native.Env, size int) {
	if l, ok := env.Context().Value(limitsKey{}).(*limits); ok {
		if l.depth++; l.depth > maxDepth {
			failBound(env, "macros call each other more than %d deep", maxDepth)
		}
		l.grow(env, size)
	}
}

func leave(env native.Env) {
	if l, ok := env.Context().Value(limitsKey{}).(*limits); ok {
		l.depth--
	}
}

// enterFunction is called at the start of every function literal. There is no
// leave at its end, because Scriggo 0.60 fails on such a deferred call and
// arguments of a return are evaluated after it; so the Go stack is asked.
func enterFunction(env native.Env) {
	const framesOfACall = 8 // at least
	var pc [1]uintptr
	if runtime.Callers(maxDepth*framesOfACall, pc[:]) > 0 {
		failBound(env, "functions call each other more than %d deep", maxDepth)
	}
}

// grow is called at each turn of a loop in a macro, with the text of the turn,
// and for each value that a macro shows.
func grow(env native.Env, size int) {
	if l, ok := env.Context().Value(limitsKey{}).(*limits); ok {
		l.grow(env, size)
	}
}

func (l *limits) grow(env native.Env, size int) {
	if l.bytes += size; l.bytes/maxBuffered > l.max {
		failBound(env, "macros wrote more than %d times %d bytes", maxBuffered, l.max)
	}
}

// failBound stops the render with an error that wraps ErrTooLarge. The recorder
// keeps it, if there is one: Scriggo may keep its text alone.
func failBound(env native.Env, format string, args ...any) {
	err := funcs.Failure{Err: fmt.Errorf("%w: "+format, append([]any{ErrTooLarge}, args...)...)}
	recorderOf(env).note(err)
	panic(err)
}

// bound puts grow into the body of a loop whose text goes to a buffer.
func (t *transformer) bound(loop ast.Node, body []ast.Node) []ast.Node {
	if t.buffered == 0 || t.bounded[loop] {
		return body
	}
	t.bounded[loop] = true
	return append([]ast.Node{limitCall(growName, loop.Pos(), 1+literal(reflect.ValueOf(body)))}, body...)
}

func limitCall(name string, pos *ast.Position, size int) *ast.Call {
	n := ast.NewBasicLiteral(pos, ast.IntLiteral, strconv.Itoa(size))
	return ast.NewCall(pos, ast.NewIdentifier(pos, name), []ast.Expression{n}, false)
}

// literal returns the length of the text of statements, without that of loops
// and macros in them, which count themselves.
func literal(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Interface:
		return literal(v.Elem())
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		switch node := v.Interface().(type) {
		case *ast.Text:
			return len(node.Text)
		case *ast.Func, *ast.For, *ast.ForIn, *ast.ForRange, *ast.Tree, *ast.Position:
			return 0
		}
		return literal(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += literal(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += literal(v.Index(i))
		}
	}
	return n
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
		fn.Body.Nodes = append([]ast.Node{call(functionName)}, fn.Body.Nodes...)
		return
	}
	enterCall := limitCall(enterName, pos, literal(reflect.ValueOf(fn.Body)))
	beforeReturns(reflect.ValueOf(fn.Body), func() ast.Node { return call(leaveName) })
	fn.Body.Nodes = append([]ast.Node{enterCall}, fn.Body.Nodes...)
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
