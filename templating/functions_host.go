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

// function declares a function of the host. What is compiled calls it by its name
// in the engine that renders, and so may be used by another engine. It takes the
// context of the render where its first parameter is one, and ends the render
// where it returns (T, error) and there is an error: Scriggo on its own would show
// nothing at all then.
func (d *declared) function(name string, f reflect.Value) {
	typ := f.Type()
	d.host[name] = f
	in, out := []reflect.Type{envType}, []reflect.Type(nil)
	takesContext, takesEnv := false, false
	if typ.NumIn() > 0 {
		takesContext, takesEnv = typ.In(0) == contextType, typ.In(0) == envType
	}
	for i := range typ.NumIn() {
		if i > 0 || !takesContext && !takesEnv {
			in = append(in, typ.In(i))
		}
	}
	for i := range typ.NumOut() {
		out = append(out, typ.Out(i))
	}
	fails := len(out) == 2 && out[1] == reflect.TypeFor[error]()
	if fails {
		out = out[:1]
	}
	d.globals[name] = reflect.MakeFunc(reflect.FuncOf(in, out, typ.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		env, _ := args[0].Interface().(native.Env)
		switch {
		case takesContext:
			args[0] = reflect.ValueOf(env.Context()).Convert(contextType)
		case !takesEnv:
			args = args[1:]
		}
		results := callHost(env, name, args)
		if fails {
			return withoutFailure(results)
		}
		return results
	}).Interface()
}

// itself declares functions of the host as they are, for templates that hand them
// to functions of Go: by a name they have a native.Env more. A function with a
// parameter that templates leave out cannot be handed on.
func (d *declared) itself(names map[string]bool) native.Declarations {
	all := native.Declarations{}
	for name := range names {
		f := d.host[name]
		typ := f.Type()
		if n := typ.NumIn(); n > 0 && (typ.In(0) == contextType || typ.In(0) == envType) {
			continue
		}
		all[name] = withoutError(f).Interface()
	}
	return all
}

// withoutError turns a function that returns (T, error) into one that returns T
// and panics with the error.
func withoutError(f reflect.Value) reflect.Value {
	typ := f.Type()
	if typ.NumOut() != 2 || typ.Out(1) != reflect.TypeFor[error]() {
		return f
	}
	in := make([]reflect.Type, typ.NumIn())
	for i := range in {
		in[i] = typ.In(i)
	}
	call := f.Call
	if typ.IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{typ.Out(0)}, typ.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		return withoutFailure(call(args))
	})
}

// withoutFailure panics with the error of what a function returned.
func withoutFailure(results []reflect.Value) []reflect.Value {
	if err, ok := results[1].Interface().(error); ok && err != nil {
		panic(failure{err})
	}
	return results[:1]
}

// hostKey finds the functions of the host in the context of a render.
type hostKey struct{}

func (d *declared) withHost(ctx context.Context) context.Context {
	return context.WithValue(ctx, hostKey{}, d.host)
}

func callHost(env native.Env, name string, args []reflect.Value) []reflect.Value {
	host, _ := env.Context().Value(hostKey{}).(map[string]reflect.Value)
	f, ok := host[name]
	switch {
	case !ok:
		failf("%s: not inside a render", name)
	case f.Type().IsVariadic():
		return f.CallSlice(args)
	}
	return f.Call(args)
}
