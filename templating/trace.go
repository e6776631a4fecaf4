package templating

import (
	"context"
	"reflect"
	"strconv"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"
)

// Some errors come without a position: a Go panic in a function of the host,
// and an output that grew too large. Their position is found by a second run
// of the same template with a call before each statement, so that the normal
// render pays nothing for it.

type tracedEntry struct {
	template *scriggo.Template
	marks    []site
}

// traceKey finds the progress of a traced run in its context.
type traceKey struct{}

// progress is where a traced run is.
type progress struct {
	mark    int // the statement that began last; -1 before the first
	refused *refusal
}

// trace is called before each statement of a traced template.
func trace(env native.Env, mark int) {
	if p, ok := env.Context().Value(traceKey{}).(*progress); ok {
		p.mark = mark
	}
}

func (e *Engine) compileTraced(name string) (*tracedEntry, error) {
	t := newTransformer(e.src, name, e.decl.names())
	t.traced = true
	traced := &tracedEntry{}
	escaper := func(env native.Env, v any, id int) native.JSON {
		defer func() {
			if panicked := recover(); panicked != nil {
				r, refused := panicked.(*refusal)
				if p, ok := env.Context().Value(traceKey{}).(*progress); ok && refused {
					p.refused = r
				}
				panic(panicked)
			}
		}()
		text := escape(v, &traced.marks[id])
		grow(env, len(text))
		return text
	}
	tpl, err := e.build(t, name, escaper)
	if err != nil {
		return nil, err
	}
	traced.template, traced.marks = tpl, t.sites
	return traced, nil
}

// locate runs the entry again and returns the statement at which it fails; the
// file alone when it does not fail again.
func (e *Engine) locate(ctx context.Context, en *entry, values map[string]any) (site, *refusal) {
	unknown := site{file: en.name}
	traced, err := en.traced()
	if err != nil {
		return unknown, nil
	}
	p := &progress{mark: -1}
	ctx = context.WithValue(ctx, traceKey{}, p)
	if run(ctx, traced.template, &output{max: e.max}, values) == nil || p.mark < 0 {
		return unknown, nil
	}
	return traced.marks[p.mark], p.refused
}

// instrument puts a call of trace before each statement of a tree, of its
// macros and of the files that it renders, extends and imports.
func (t *transformer) instrument(tree *ast.Tree) {
	seen := map[any]bool{}
	var file string
	var visit func(v reflect.Value, top bool)
	list := func(v reflect.Value) {
		nodes := v.Interface().([]ast.Node)
		out := make([]ast.Node, 0, 2*len(nodes))
		for _, n := range nodes {
			switch n := n.(type) {
			case *ast.Show:
				out = append(out, t.mark(file, n.Expressions[0].Pos()))
			case *ast.Text, *ast.If, *ast.For, *ast.ForIn, *ast.ForRange, *ast.Switch, *ast.TypeSwitch,
				*ast.Assignment, *ast.Var, *ast.Call:
				out = append(out, t.mark(file, n.Pos()))
			}
			out = append(out, n)
		}
		v.Set(reflect.ValueOf(out))
	}
	visit = func(v reflect.Value, top bool) {
		switch v.Kind() {
		case reflect.Interface:
			if !v.IsNil() {
				visit(v.Elem(), false)
			}
		case reflect.Pointer:
			if v.IsNil() || seen[v.Interface()] {
				return
			}
			seen[v.Interface()] = true
			if tree, ok := v.Interface().(*ast.Tree); ok {
				outer := file
				file = tree.Path
				defer func() { file = outer }()
				visit(v.Elem(), onlyDeclares(tree))
				return
			}
			if imp, ok := v.Interface().(*ast.Import); ok && imp.Tree != nil {
				outer := file
				file = imp.Tree.Path
				defer func() { file = outer }()
				seen[imp.Tree] = true
				visit(reflect.ValueOf(imp.Tree).Elem(), true)
				return
			}
			visit(v.Elem(), false)
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					visit(v.Field(i), top)
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i), false)
			}
			if !top && v.CanSet() && v.Type() == reflect.TypeFor[[]ast.Node]() {
				list(v)
			}
		}
	}
	visit(reflect.ValueOf(tree), false)
}

// onlyDeclares reports whether a file extends another, so that statements
// cannot stand at its top level.
func onlyDeclares(tree *ast.Tree) bool {
	for _, n := range tree.Nodes {
		switch n := n.(type) {
		case *ast.Extends:
			return true
		case *ast.Statements:
			if len(n.Nodes) > 0 {
				if _, ok := n.Nodes[0].(*ast.Extends); ok {
					return true
				}
			}
		}
	}
	return false
}

func (t *transformer) mark(file string, pos *ast.Position) ast.Node {
	line, column := t.src.position(file, pos.Start)
	t.sites = append(t.sites, site{file: file, line: line, column: column})
	id := ast.NewBasicLiteral(pos, ast.IntLiteral, strconv.Itoa(len(t.sites)-1))
	return ast.NewCall(pos, ast.NewIdentifier(pos, traceName), []ast.Expression{id}, false)
}
