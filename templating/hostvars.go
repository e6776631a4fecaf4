package templating

import (
	"maps"
	"reflect"
	"slices"

	"github.com/open2b/scriggo/ast"
)

// touchVars makes every file that is written where it stands read the host's
// variables first thing. Scriggo 0.60 gives a macro the zero value of a
// variable that nothing outside of macros has read before.
func (t *transformer) touchVars(entry *ast.Tree) {
	trees := map[*ast.Tree]bool{entry: true}
	for v := range t.trees {
		trees[v.tree] = true
	}
	for tree := range trees {
		if t.imported[tree] || onlyDeclares(tree) {
			continue
		}
		tree.Nodes = append(t.touches(), tree.Nodes...)
	}
	for fn := range t.macros { // the same for what is nested in macros
		if fn.Body != nil && hasClosure(reflect.ValueOf(fn.Body)) {
			fn.Body.Nodes = append(t.touches(), fn.Body.Nodes...)
		}
	}
}

// touches returns "_ = name" for all variables of the host that occur.
func (t *transformer) touches() (nodes []ast.Node) {
	pos := &ast.Position{Line: 1, Column: 1}
	for _, name := range slices.Sorted(maps.Keys(t.used)) {
		if t.used[name] {
			nodes = append(nodes, ast.NewAssignment(pos, []ast.Expression{ast.NewIdentifier(pos, "_")},
				ast.AssignmentSimple, []ast.Expression{ast.NewIdentifier(pos, name)}))
		}
	}
	return nodes
}

// hasClosure reports whether there is a function or a using block in a body.
func hasClosure(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return !v.IsNil() && hasClosure(v.Elem())
	case reflect.Pointer:
		if v.IsNil() {
			return false
		}
		switch v.Interface().(type) {
		case *ast.Func, *ast.Using:
			return true
		case *ast.Tree, *ast.Position:
			return false
		}
		return hasClosure(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && hasClosure(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if hasClosure(v.Index(i)) {
				return true
			}
		}
	}
	return false
}
