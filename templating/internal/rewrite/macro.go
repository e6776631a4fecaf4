package rewrite

import (
	"reflect"

	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// iteaName is Scriggo's name for the text of a using statement.
const iteaName = "itea"

// beginners are the macros whose text begins with a value, by name. The place of that value
// is known only where a template shows the macro. Each macro has the macros that may begin
// its text.
type beginners map[string]map[string]bool

// itself is the element for a macro that begins with a value of its own.
const itself = ""

// noteBeginner notes that the text of the current macro may begin with an expression.
func (t *Tree) noteBeginner(expr ast.Expression, p place.Points) {
	if t.macro == "" || !t.points.BeginsText(p) || t.makesSafe(expr) {
		return
	}
	if t.beginners[t.macro] == nil {
		t.beginners[t.macro] = map[string]bool{}
	}
	from := itself
	if t.text(expr) {
		from = callee(expr)
	}
	t.beginners[t.macro][from] = true
}

// has reports whether the text of a macro begins with a value.
func (b beginners) has(macro string) bool {
	seen := map[string]bool{}
	var find func(name string) bool
	find = func(name string) bool {
		if seen[name] {
			return false
		}
		seen[name] = true
		for from := range b[name] {
			if from == itself || find(from) {
				return true
			}
		}
		return false
	}
	return macro != "" && find(macro)
}

// noteEnding notes how the text of a macro ends. If two macros of one name end differently,
// the ending is unknown.
func (t *Tree) noteEnding(name string, body *ast.Block, end place.Ending) {
	if was, ok := t.endings[name]; ok && was != end {
		if t.assumed[name] {
			t.fail(t.file, body.Pos(), "another macro is called "+name+" and its text ends in another way: give this one another name")
		}
		end = place.EndsAnyhow
	}
	t.endings[name] = end
}

// endingOf returns the ending of the macro that an expression calls.
func (t *Tree) endingOf(expr ast.Expression) place.Ending {
	call, ok := expr.(*ast.Call)
	if !ok || isName(call.Func, "indent") {
		return place.EndsAnyhow
	}
	name := callee(call)
	end := t.endings[name]
	t.assumed[name] = t.assumed[name] || end != place.EndsAnyhow
	return end
}

// callee returns the name of the macro or variable that an expression shows, "" if the
// expression does not name one.
func callee(expr ast.Expression) string {
	switch e := expr.(type) {
	case *ast.Identifier:
		return e.Name
	case *ast.Selector:
		return e.Ident
	case *ast.Call:
		if name := callee(e.Func); name != "indent" || len(e.Args) == 0 {
			return name
		}
		return callee(e.Args[0])
	}
	return ""
}

// noteAlias notes that a variable may have the text of a macro.
func (t *Tree) noteAlias(lhs []ast.Expression, rhs []ast.Expression) {
	for i, v := range lhs {
		id, ok := v.(*ast.Identifier)
		if !ok || i >= len(rhs) {
			continue
		}
		if from := callee(rhs[i]); from != "" && from != id.Name {
			if t.beginners[id.Name] == nil {
				t.beginners[id.Name] = map[string]bool{}
			}
			t.beginners[id.Name][from] = true
		}
	}
}

// makesSafe reports whether an expression calls a function of the host with safe text, such
// as raw.
func (t *Tree) makesSafe(expr ast.Expression) bool {
	call, ok := expr.(*ast.Call)
	if !ok {
		return false
	}
	id, ok := call.Func.(*ast.Identifier)
	if !ok || t.names.Globals[id.Name] == nil {
		return false
	}
	typ := reflect.TypeOf(t.names.Globals[id.Name])
	return typ.Kind() == reflect.Func && typ.NumOut() > 0 && (typ.Out(0) == reflect.TypeFor[place.Raw]() || typ.Out(0) == reflect.TypeFor[native.JSON]())
}
