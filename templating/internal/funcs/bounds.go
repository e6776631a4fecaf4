package funcs

import (
	"context"
	"reflect"
)

// Bounds of the arguments and results of functions. With them a call ends soon after the
// context of its render, and its memory stays bounded.
const (
	maxText    = 64 << 20 // bytes of a text that a function reads or makes
	maxList    = 1 << 20  // elements of a list
	maxFormat  = 64 << 10 // bytes of a format, and of a regular expression
	maxPattern = 4 << 10  // bytes of a path, and of a pattern of glob_match
	maxMade    = 64 << 10 // the length argument of make(...)
	maxMessage = 4 << 10  // bytes of a message of fail

	maxDocument = 4 << 20   // bytes of a document that from_json and from_yaml read
	maxNodes    = 512 << 10 // values of a document in YAML
	maxKeys     = 8 << 10   // keys of one mapping of it
	maxNesting  = 100       // nesting of its lists and objects
	maxDepth    = 1000      // nesting of a value that a function writes
)

// checkText refuses a too large text before the function makes it.
func checkText(what string, size int) {
	if size > maxText || size < 0 {
		Failf("%w: %s would have %d bytes, at most %d are allowed", ErrTooLarge, what, size, maxText)
	}
}

func checkList(what string, n int) {
	if n > maxList {
		Failf("%w: %s: a list of %d elements, at most %d are allowed", ErrTooLarge, what, n, maxList)
	}
}

func checkLength(what, unit string, n, most int) {
	if n > most {
		Failf("%w: %s: a %s of %d bytes, at most %d are allowed", ErrTooLarge, what, unit, n, most)
	}
}

// going stops a function whose render has ended.
func going(ctx context.Context) {
	if err := ctx.Err(); err != nil {
		panic(Failure{err})
	}
}

// Length checks and returns a length argument of make(...).
func Length(n any) int {
	x := read("make", n)
	if x.f > maxMade || x.f < 0 {
		Failf("%w: make: a length of %.0f, 0 to %d is allowed: use append for a longer list", ErrTooLarge, x.f, maxMade)
	}
	length, err := x.int()
	if err != nil {
		Failf("make: %w", err)
	}
	return length
}

// Grown refuses a too large text or list of a template.
func Grown(value any) {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.String:
		checkText("a text", v.Len())
	case reflect.Slice:
		checkText("a list", v.Cap()*int(v.Type().Elem().Size()))
	}
}

// measure refuses a value whose text would have more than most bytes, before a function
// writes it. A list that occurs several times counts each time.
func measure(ctx context.Context, what string, v any, most int) {
	left, values := most, 0
	var count func(v reflect.Value, depth int)
	count = func(v reflect.Value, depth int) {
		if depth > maxDepth {
			Failf("%s: values are nested more than %d deep", what, maxDepth)
		}
		size := 8 // an estimate, without text
		switch v.Kind() {
		case reflect.Interface, reflect.Pointer:
			if !v.IsNil() {
				count(v.Elem(), depth+1)
			}
		case reflect.String:
			size += v.Len()
		case reflect.Slice, reflect.Array:
			if v.Type().Elem().Kind() == reflect.Uint8 { // in base64
				size += 2 * v.Len()
				break
			}
			for i := range v.Len() {
				count(v.Index(i), depth+1)
			}
		case reflect.Map:
			for entries := v.MapRange(); entries.Next(); {
				count(entries.Key(), depth+1)
				count(entries.Value(), depth+1)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() && !v.Field(i).IsZero() {
					count(v.Field(i), depth+1)
				}
			}
		}
		left -= size
		if left < 0 {
			Failf("%w: %s: a value of more than %d bytes", ErrTooLarge, what, most)
		}
		values++
		if values%1024 == 0 {
			going(ctx)
		}
	}
	count(reflect.ValueOf(v), 0)
}
