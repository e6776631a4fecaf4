package templating

import (
	"reflect"

	"github.com/open2b/scriggo/native"
)

// debugNothing is what templates call debug; the transformer writes it as a
// call of debugAt with the position.
func debugNothing(values ...any) string { return "" }

var debugType = reflect.TypeOf(debugNothing)

// debugAt returns what reports the values of debug(...) to the host.
func debugAt(src *sources, report func(Origin, any)) func(env native.Env, file string, line, column int, values ...any) string {
	return func(_ native.Env, file string, line, column int, values ...any) string {
		if report == nil {
			return ""
		}
		at := Origin{File: file, Line: line, Column: column, Text: src.line(file, line)}
		for _, v := range values {
			report(at, v)
		}
		return ""
	}
}
