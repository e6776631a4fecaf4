package templating

import (
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"
)

// The escapers of strings and of whole numbers. Scriggo calls functions by
// reflection, which is three quarters of what escaping costs, but for a few
// signatures: func(string, int) string is one of them, and so both have it.
const (
	stringName  = "escape string "  // (value, number of the site)
	integerName = "escape integer " // (number of the site, value)
	intName     = "int "            // the type, which a template cannot hide
)

// quickTypes are the types whose values need no more than their text, by the
// escaper.
var quickTypes = map[string]string{"string": stringName,
	"int": integerName, "int8": integerName, "int16": integerName, "int32": integerName, "int64": integerName}

// buildEscaped compiles an entry, twice: of which type a shown expression is does
// not stand in its tree, but in what Scriggo makes of it. The first template is
// right too, and is kept where the second one does not compile.
func (e *Engine) buildEscaped(name string, c *compiled) (*transformer, *scriggo.Template, error) {
	escapeAny := func(v any, id int) native.JSON { return escape(v, &c.sites[id]) }
	t := newTransformer(e.src, name, e.decl)
	tpl, err := e.build(t, name, escapeAny, nil)
	more := e.decl.itself(t.handed)
	if len(more) > 0 {
		t = newTransformer(e.src, name, e.decl)
		tpl, err = e.build(t, name, escapeAny, more)
	}
	if err != nil {
		return nil, nil, err
	}
	if quick := quickSites(tpl); len(quick) > 0 {
		again := newTransformer(e.src, name, e.decl)
		again.quick = quick
		maps.Copy(more, native.Declarations{
			stringName: func(s string, id int) string { return string(escapeString(s, &c.sites[id])) },
			integerName: func(id string, n int) string {
				site, _ := strconv.Atoi(id)
				return string(escapeInt(int64(n), &c.sites[site]))
			},
			intName: reflect.TypeFor[int](),
		})
		tpl, err := e.build(again, name, escapeAny, more)
		if err == nil && len(again.sites) == len(t.sites) {
			return again, tpl, nil
		}
	}
	return t, tpl, nil
}

// quickSites returns the escapers of the sites that have one, by what the
// instructions of a compiled template look like:
//
//	Typify string s1 g3
//	Load 2 i2
//	Call main.escape  i2 _ s3 g3
//
// It need not be right: where a value has another type, the second template does
// not compile.
func quickSites(tpl *scriggo.Template) (sites map[int]string) {
	defer func() {
		if recover() != nil { // Scriggo does not know how to write all instructions
			sites = nil
		}
	}()
	sites = map[int]string{}
	for _, found := range typeShown.FindAllStringSubmatch(string(tpl.Disassemble(0)), -1) {
		id, err := strconv.Atoi(found[2])
		if escaper := quickTypes[found[1]]; escaper != "" && err == nil {
			sites[id] = escaper
		}
	}
	return sites
}

// Constant in effect: Go has no constants of this type.
var typeShown = regexp.MustCompile(`(?m)^\t*Typify (\w+) .*\n\t*Load (\d+) i\d+\n\t*Call main\.` + strings.TrimSpace(escapeName) + `  `)

// isQuick reports whether what a show node shows has an escaper of its type. In
// a macro it has not: what macros write is bounded by an escaper that is told of
// the render.
func (t *transformer) isQuick(s *shown) bool {
	if s.buffered || len(s.node.Expressions) > 1 || t.quick[len(t.sites)] == "" {
		return false
	}
	_, rendered := s.node.Expressions[0].(*ast.Render)
	return !rendered
}

// quickCall escapes an expression of a known type.
func (t *transformer) quickCall(expr ast.Expression, id int) ast.Expression {
	pos, number := expr.Pos(), strconv.Itoa(id)
	name := t.quick[id]
	args := []ast.Expression{expr, ast.NewBasicLiteral(pos, ast.IntLiteral, number)}
	if name == integerName {
		args = []ast.Expression{ast.NewBasicLiteral(pos, ast.StringLiteral, strconv.Quote(number)),
			ast.NewCall(pos, ast.NewIdentifier(pos, intName), []ast.Expression{expr}, false)}
	}
	return ast.NewCall(pos, ast.NewIdentifier(pos, name), args, false)
}
