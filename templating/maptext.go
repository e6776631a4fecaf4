package templating

import (
	"fmt"
	"strings"

	"github.com/open2b/scriggo/ast"
)

// maxMapLine is the longest line of a map with its line feed, in bytes. HAProxy
// reads a map into a buffer of tune.bufsize, 16384 bytes with the NUL at its end
// unless set otherwise, and takes what does not fit for the next line: a long
// value would become an entry with a key of its own. So it does with a list.
const maxMapLine = 16383

// checkLines refuses a map or a list with a line that HAProxy would read as two,
// and a rule whose condition is missing.
func checkLines(entry, text string) (err error, number int) {
	k := kindOf(entry)
	if k == kindConfig {
		return checkConditions(entry, text)
	}
	if k != kindMap && k != kindList || len(text) <= maxMapLine {
		return nil, 0
	}
	n := 0
	for line := range strings.Lines(text) {
		if n++; len(line) > maxMapLine {
			return &Error{Entry: entry, File: entry, Message: fmt.Sprintf("line %d of the output, %s, has %d bytes: HAProxy takes what is beyond %d for another line",
				n, shorten(line), len(line), maxMapLine)}, n
		}
	}
	return nil, 0
}

// text reports whether an expression calls a macro, as far as its form tells:
// what is called is neither a function of the host nor a method.
func (t *transformer) text(expr ast.Expression) bool {
	call, ok := expr.(*ast.Call)
	if !ok {
		id, ok := expr.(*ast.Identifier)
		return ok && id.Name == iteaName
	}
	switch f := call.Func.(type) {
	case *ast.Identifier:
		_, global := t.globals[f.Name]
		return !global || givesText[f.Name]
	case *ast.Selector:
		base, ok := f.Expr.(*ast.Identifier)
		return ok && t.packages[base.Name]
	}
	return false
}

// assigned notes that what an expression names is changed.
func (t *transformer) assigned(expr ast.Expression) {
	switch e := expr.(type) {
	case *ast.Identifier:
		t.assigns = t.assigns || t.vars[e.Name]
	case *ast.Selector:
		t.assigned(e.Expr)
	case *ast.Index:
		t.assigned(e.Expr)
	}
}
