package templating

import (
	"strconv"

	"github.com/open2b/scriggo/ast"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// wrap puts the escaper around the expressions of a show node.
func (t *transformer) wrap(s *shown) {
	s.node.Context = ast.ContextJSON
	for i, expr := range s.node.Expressions {
		pos := expr.Pos()
		if _, ok := expr.(*ast.Render); ok {
			// Scriggo writes a rendered file straight to the output; the file's
			// own values are escaped for where it stands.
			continue
		}
		line, column := t.src.position(s.file, pos.Start)
		at, problem := t.points.Site(place.Site{File: s.file, Line: line, Column: column, MacroText: t.text(expr), Regexp: isRegexp(expr),
			Chosen: t.beginners.has(t.callee(expr))}, s.at[i], s.id+i, s.buffered)
		if problem != "" {
			t.fail(s.file, s.node.Pos(), problem)
			return
		}
		t.sites = append(t.sites, at)
		id := ast.NewBasicLiteral(pos, ast.IntLiteral, strconv.Itoa(len(t.sites)-1))
		name := escapeName
		switch {
		case s.buffered:
			name = bufferName
		case at.First:
			name = firstName
		}
		s.node.Expressions[i] = ast.NewCall(pos, ast.NewIdentifier(pos, name), []ast.Expression{expr, id}, false)
	}
}

// isRegexp reports whether a template quotes a value for a regular expression
// itself, so that it is not quoted twice.
func isRegexp(expr ast.Expression) bool {
	call, ok := expr.(*ast.Call)
	if !ok {
		return false
	}
	id, ok := call.Func.(*ast.Identifier)
	return ok && id.Name == "sanitize_regex"
}
