package templating

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
)

// ownerName is the function with which templates name the owner of the text behind it. In
// the normal render it does nothing.
const ownerName = "owner"

// declared has all names that templates see.
type declared struct {
	globals native.Declarations
	vars    map[string]reflect.Type
	fixed   map[string]reflect.Value // globals that are variables to Scriggo
	owner   bool                     // the function owner is the standard one
}

// declare makes Scriggo's declarations from the options.
func declare(opts *Options) (*declared, error) {
	d := &declared{globals: standard(), vars: map[string]reflect.Type{}, fixed: map[string]reflect.Value{}}
	_, global := opts.Globals[ownerName]
	_, variable := opts.Vars[ownerName]
	d.owner = !global && !variable
	if d.owner {
		d.globals[ownerName] = func(any) {}
	}
	var errs []error
	wrong := func(what, name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("templating: %s %q: %s", what, name, fmt.Sprintf(format, args...)))
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Globals)) {
		if !token.IsIdentifier(name) {
			wrong("global", name, "not a name that a template can use")
		} else if err := d.global(name, opts.Globals[name]); err != nil {
			wrong("global", name, "%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Vars)) {
		typ := varType(opts.Vars[name])
		_, twice := opts.Globals[name]
		switch {
		case !token.IsIdentifier(name):
			wrong("variable", name, "not a name that a template can use")
		case twice:
			wrong("variable", name, "also a global")
		case typ == nil:
			wrong("variable", name, "nil has no type: give a typed nil, or (*any)(nil) for any")
		default:
			d.vars[name] = typ
			d.globals[name] = reflect.Zero(reflect.PointerTo(typ)).Interface()
		}
	}
	return d, errors.Join(errs...)
}

// names returns the names that are variables to Scriggo.
func (d *declared) names() map[string]bool {
	names := map[string]bool{}
	for name := range d.vars {
		names[name] = true
	}
	for name := range d.fixed {
		names[name] = true
	}
	return names
}

// varType is the type that a value of Options.Vars declares.
func varType(v any) reflect.Type {
	typ := reflect.TypeOf(v)
	if typ != nil && typ.Kind() == reflect.Pointer && typ.Elem().Kind() == reflect.Interface {
		return typ.Elem()
	}
	return typ
}

// global declares one fixed value.
func (d *declared) global(name string, v any) error {
	if v == nil {
		return errors.New("nil has no type")
	}
	if typ, ok := v.(reflect.Type); ok {
		d.globals[name] = typ
		return nil
	}
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.Func:
		if rv.IsNil() {
			return errors.New("a nil function")
		}
		d.globals[name] = function(rv)
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.globals[name] = v
	default:
		// A variable to Scriggo, set at each render: a template that assigns to it changes
		// its own copy.
		d.globals[name] = reflect.Zero(reflect.PointerTo(rv.Type())).Interface()
		d.fixed[name] = rv
	}
	return nil
}

// values checks the variables of one render and returns a pointer to a fresh variable for
// each, to initialise Scriggo.
func (d *declared) values(vars map[string]any) (map[string]any, error) {
	var errs []error
	values := make(map[string]any, len(d.vars)+len(d.fixed))
	for name, typ := range d.vars {
		v, ok := vars[name]
		if !ok {
			errs = append(errs, fmt.Errorf("variable %s is missing: %s wanted", name, typ))
			continue
		}
		ptr := reflect.New(typ)
		rv := reflect.ValueOf(v)
		switch {
		case rv.IsValid() && rv.Type().AssignableTo(typ):
			ptr.Elem().Set(rv)
		case !rv.IsValid() && nilable(typ): // nil: the zero value
		default:
			errs = append(errs, fmt.Errorf("variable %s is a %T: %s wanted", name, v, typ))
			continue
		}
		values[name] = ptr.Interface()
	}
	for name := range vars {
		if _, ok := d.vars[name]; !ok {
			known := strings.Join(slices.Sorted(maps.Keys(d.vars)), ", ")
			errs = append(errs, fmt.Errorf("variable %s is not declared, only: %s", name, known))
		}
	}
	for name, rv := range d.fixed {
		ptr := reflect.New(rv.Type())
		ptr.Elem().Set(rv)
		values[name] = ptr.Interface()
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return values, errors.Join(errs...)
}

func nilable(typ reflect.Type) bool {
	switch typ.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
		return true
	}
	return false
}

// own declares a variable that every template has, unless the host uses its name. Each
// render has its own copy.
func (d *declared) own(name string, value reflect.Value) {
	if _, taken := d.globals[name]; !taken {
		d.fixed[name] = value
		d.globals[name] = reflect.Zero(reflect.PointerTo(value.Type())).Interface()
	}
}

// function wraps a function of the host for templates. It passes the context of the render
// as a first parameter of that type. If the function returns (T, error), the error ends the
// render: Scriggo by itself would show nothing.
func function(f reflect.Value) any {
	typ := f.Type()
	takesContext := typ.NumIn() > 0 && typ.In(0) == reflect.TypeFor[context.Context]()
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
		in[0] = reflect.TypeFor[native.Env]()
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
			args[0] = reflect.ValueOf(args[0].Interface().(native.Env).Context()).Convert(reflect.TypeFor[context.Context]())
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
