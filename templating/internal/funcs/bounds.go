package funcs

import (
	"context"
	"reflect"
	"unicode/utf8"
)

// Bounds of what functions take and make: a call ends soon after the context of its
// render, and leaves memory to others.
const (
	maxText    = 64 << 20 // bytes of a text that a function reads or makes
	maxList    = 1 << 20  // elements of a list
	maxFormat  = 64 << 10 // bytes of a format, and of a regular expression
	maxPattern = 4 << 10  // bytes of a path, and of a pattern of glob_match
	maxMade    = 64 << 20 // bytes that make(...) asks for
	maxMessage = 4 << 10  // bytes of what fail says

	maxDocument = 4 << 20   // bytes of a document that from_json and from_yaml read
	maxNodes    = 512 << 10 // values of a document in YAML
	maxNesting  = 100       // how deep its lists and objects lie in each other
	maxDepth    = 1000      // the same of a value that a function writes
)

// checkText refuses a text that would be too large, before it is made.
func checkText(what string, size int) {
	if size > maxText || size < 0 {
		Failf("%w: %s would have %d bytes, only %d can be", ErrTooLarge, what, size, maxText)
	}
}

func checkList(what string, n int) {
	if n > maxList {
		Failf("%w: %s: a list of %d elements, only %d can be", ErrTooLarge, what, n, maxList)
	}
}

func checkLength(what, unit string, n, most int) {
	if n > most {
		Failf("%w: %s: a %s of %d bytes, only %d can be", ErrTooLarge, what, unit, n, most)
	}
}

// going stops a function whose render has ended.
func going(ctx context.Context) {
	if err := ctx.Err(); err != nil {
		panic(Failure{err})
	}
}

// Length returns the length that make(...) is given, as a template gave it. like is
// a value of the type that is made.
func Length(n, like any) int {
	x := read("make", n)
	size, typ := 1, reflect.TypeOf(like)
	switch {
	case typ == nil:
	case typ.Kind() == reflect.Map:
		size = int(typ.Key().Size()+typ.Elem().Size()) * 2 // its groups are not full
	case typ.Kind() == reflect.Slice || typ.Kind() == reflect.Chan:
		size = int(typ.Elem().Size())
	}
	if most := maxMade / max(size, 16); x.f > float64(most) || x.f < 0 {
		Failf("%w: make: a length of %.0f, only 0 to %d can be of a %s", ErrTooLarge, x.f, most, typ)
	}
	length, err := x.int()
	if err != nil {
		Failf("make: %w", err)
	}
	return length
}

// Grown refuses a text or a list of a template that has become too large.
func Grown(value any) {
	size, what := 0, "text"
	switch v := value.(type) {
	case int:
		return
	case string:
		size = len(v)
	default:
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.String {
			size = rv.Len()
		} else if rv.Kind() == reflect.Slice {
			size, what = max(rv.Cap()*int(rv.Type().Elem().Size()), rv.Len()), "list"
		}
	}
	if size > maxText {
		Failf("%w: a %s of %d bytes, only %d can be", ErrTooLarge, what, size, maxText)
	}
}

// extent counts what a value is as a text, before it is written: lists that stand in
// it more than once count each time.
type extent struct {
	ctx    context.Context
	what   string
	most   int // bytes
	bytes  int
	values int
}

func (x *extent) add(bytes int) {
	x.values++
	if x.bytes += bytes; x.bytes > x.most {
		Failf("%w: %s: a value of more than %d bytes", ErrTooLarge, x.what, x.most)
	}
	if x.values%1024 == 0 {
		going(x.ctx)
	}
}

func (x *extent) of(v reflect.Value, depth int) {
	if depth > maxDepth {
		Failf("%s: values lie more than %d deep in each other", x.what, maxDepth)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			x.of(v.Elem(), depth+1)
			return
		}
	case reflect.String:
		x.add(quotedSize(v.String()))
		return
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			x.add(2 * v.Len())
			return
		}
		for i := range v.Len() {
			x.of(v.Index(i), depth+1)
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			x.of(entries.Key(), depth+1)
			x.of(entries.Value(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				x.add(len(f.Name) + len(f.Tag.Get("json")))
				x.of(v.Field(i), depth+1)
			}
		}
	}
	x.add(8)
}

// quotedSize is at least the length of a text in JSON.
func quotedSize(s string) int {
	size := len(s) + 8
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			size++
		case c < ' ':
			size += 5
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
				size += 5
			}
			i += n
			continue
		}
		i++
	}
	return size
}

// sizeOf counts a value that a function writes.
func sizeOf(ctx context.Context, what string, v any, most int) (bytes, values int) {
	switch v := v.(type) {
	case nil, bool, int:
		return 8, 1
	case string:
		if len(v) <= most/8 {
			return len(v), 1
		}
	}
	x := extent{ctx: ctx, what: what, most: most}
	x.of(reflect.ValueOf(v), 0)
	return x.bytes, x.values
}
