package templating

import (
	"context"
	"reflect"

	"github.com/open2b/scriggo/native"
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

// withEnv turns a function whose first parameter is a context.Context into one
// that takes the context of the render.
func withEnv(f reflect.Value) reflect.Value {
	typ := f.Type()
	if typ.NumIn() == 0 || typ.In(0) != contextType || typ.IsVariadic() && typ.NumIn() == 1 {
		return f
	}
	in := []reflect.Type{envType}
	for i := 1; i < typ.NumIn(); i++ {
		in = append(in, typ.In(i))
	}
	out := make([]reflect.Type, typ.NumOut())
	for i := range out {
		out[i] = typ.Out(i)
	}
	call := f.Call
	if typ.IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, typ.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		ctx := args[0].Interface().(native.Env).Context()
		args[0] = reflect.ValueOf(ctx).Convert(contextType)
		return call(args)
	})
}
