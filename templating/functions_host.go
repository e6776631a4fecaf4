package templating

import (
	"context"
	"reflect"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
)

// own declares a variable that every template has, with a value of its own in
// each render, unless the host has one of this name.
func (d *declared) own(name string, value reflect.Value) {
	if _, taken := d.globals[name]; !taken {
		d.fixed[name] = value
		d.globals[name] = reflect.Zero(reflect.PointerTo(value.Type())).Interface()
	}
}

var (
	contextType = reflect.TypeFor[context.Context]()
	envType     = reflect.TypeFor[native.Env]()
)

// function is a function of the host as templates call it. A first parameter that
// is a context is filled in with that of the render. Where it returns (T, error),
// an error ends the render: Scriggo on its own would show nothing at all then.
func function(f reflect.Value) any {
	typ := f.Type()
	takesContext := typ.NumIn() > 0 && typ.In(0) == contextType
	fails := typ.NumOut() == 2 && typ.Out(1) == reflect.TypeFor[error]()
	if !takesContext && !fails {
		return f.Interface()
	}
	var in, out []reflect.Type
	for i := range typ.NumIn() {
		in = append(in, typ.In(i))
	}
	for i := range typ.NumOut() {
		out = append(out, typ.Out(i))
	}
	if takesContext {
		in[0] = envType
	}
	if fails {
		out = out[:1]
	}
	call := f.Call
	if typ.IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, typ.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		if takesContext {
			args[0] = reflect.ValueOf(args[0].Interface().(native.Env).Context()).Convert(contextType)
		}
		results := call(args)
		if fails {
			if err, _ := results[1].Interface().(error); err != nil {
				panic(funcs.Failure{Err: err})
			}
			results = results[:1]
		}
		return results
	}).Interface()
}
