package rewrite

import (
	"github.com/open2b/scriggo/ast"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// show walks a show node.
func (t *Tree) show(n *ast.Show, p place.Points) place.Points {
	s := t.byNode[n]
	if s == nil {
		s = &shown{node: n, file: t.file, at: make([]place.Points, len(n.Expressions)), id: t.values + 1}
		t.values += len(n.Expressions)
		t.byNode[n] = s
		t.shows = append(t.shows, s)
	}
	for i, expr := range n.Expressions {
		if d, ok := expr.(*ast.Default); ok {
			expr = t.optional(d)
			n.Expressions[i] = expr
		}
		if r, ok := expr.(*ast.Render); ok {
			t.extension(r, r.Path)
			if t.buffered > 0 {
				delete(t.trees, visit{r.Tree, p})
			}
			p = t.tree(r.Tree, p)
			continue
		}
		t.expressions(expr)
		s.at[i] = t.points.Join(p, s.at[i])
		t.noteBeginner(expr, p)
		s.buffered = s.buffered || t.buffered > 0
		if t.text(expr) {
			p = t.points.AfterMacro(p, s.id+i, t.endingOf(expr))
		} else {
			p = t.points.AfterValue(p, s.id+i)
		}
	}
	return p
}

// optional resolves "render path default value", which shows a file that may be missing.
// Scriggo accepts it only without the escaper around it.
func (t *Tree) optional(d *ast.Default) ast.Expression {
	r, ok := d.Expr1.(*ast.Render)
	if !ok {
		t.fail(t.file, d.Pos(), "default is only available for rendered files; coalesce(a, b) is for values")
		return d
	}
	if r.Tree == nil {
		return d.Expr2
	}
	return r
}

// wrap puts the escaper around the expressions of a show node.
func (t *Tree) wrap(s *shown) {
	s.node.Context = ast.ContextJSON
	for i, expr := range s.node.Expressions {
		if _, ok := expr.(*ast.Render); ok {
			// Scriggo writes a rendered file straight to the output. The values of the file
			// are escaped already.
			continue
		}
		pos := expr.Pos()
		line, column := t.src.Position(s.file, pos.Start)
		site, problem := t.points.Site(place.Site{File: s.file, Line: line, Column: column, MacroText: t.text(expr), Number: isLength(expr), Regexp: isRegexp(expr),
			Chosen: t.beginners.has(callee(expr))}, s.at[i], s.id+i, s.buffered)
		if problem != "" {
			t.fail(s.file, s.node.Pos(), problem)
			return
		}
		name := Escape
		switch {
		case s.buffered:
			name = Buffered
		case site.First:
			name = First
		}
		s.node.Expressions[i] = ast.NewCall(pos, ast.NewIdentifier(pos, name), []ast.Expression{expr, number(pos, len(t.Sites))}, false)
		t.Sites = append(t.Sites, site)
	}
}

// isRegexp reports whether a template itself quotes a value for a regular expression: the
// escaper must not quote it again.
func isRegexp(expr ast.Expression) bool {
	call, ok := expr.(*ast.Call)
	return ok && isName(call.Func, "sanitize_regex")
}

// isLength reports whether an expression calls the len or cap of Go.
func isLength(expr ast.Expression) bool {
	call, ok := expr.(*ast.Call)
	return ok && (isName(call.Func, "len") || isName(call.Func, "cap"))
}

func isName(expr ast.Expression, name string) bool {
	id, ok := expr.(*ast.Identifier)
	return ok && id.Name == name
}

// givesText has the functions that may return the text of a macro.
var givesText = map[string]bool{"indent": true, "include": true, "include_all": true} // constant in effect

// text reports whether an expression has the form of a macro call: it calls neither a
// function of the host nor a method.
func (t *Tree) text(expr ast.Expression) bool {
	call, ok := expr.(*ast.Call)
	switch {
	case !ok:
		return isName(expr, iteaName)
	case isLength(call):
		return false
	}
	switch f := call.Func.(type) {
	case *ast.Identifier:
		_, global := t.names.Globals[f.Name]
		return !global || givesText[f.Name]
	case *ast.Selector:
		base, ok := f.Expr.(*ast.Identifier)
		return ok && t.packages[base.Name]
	}
	return false
}
