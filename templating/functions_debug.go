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
func (e *Engine) debugAt(env native.Env, file string, line, column int, values ...any) string {
	if e.debug == nil {
		return ""
	}
	at := Origin{File: file, Line: line, Column: column, Text: e.src.line(file, line)}
	for _, v := range values {
		e.debug(at, v)
	}
	return ""
}
