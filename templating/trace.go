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
	t := newTransformer(e.src, name, e.decl)
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
	tpl, err := e.build(t, name, escaper, nil)
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
	in := &instrumenter{t: t, seen: map[any]bool{}}
	in.visit(reflect.ValueOf(tree), false)
}

type instrumenter struct {
	t    *transformer
	seen map[any]bool
	file string // the file that is visited
}

// visit goes over all fields of a node. Statements cannot stand at the top of
// a file that only declares.
func (in *instrumenter) visit(v reflect.Value, declares bool) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			in.visit(v.Elem(), false)
		}
	case reflect.Pointer:
		if v.IsNil() || in.seen[v.Interface()] {
			return
		}
		in.seen[v.Interface()] = true
		switch n := v.Interface().(type) {
		case *ast.Tree:
			in.visitFile(n, onlyDeclares(n))
		case *ast.Import:
			if n.Tree != nil && !in.seen[n.Tree] {
				in.seen[n.Tree] = true
				in.visitFile(n.Tree, true)
			}
		default:
			in.visit(v.Elem(), false)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				in.visit(v.Field(i), declares)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			in.visit(v.Index(i), false)
		}
		if nodes, ok := v.Interface().([]ast.Node); ok && !declares && v.CanSet() {
			v.Set(reflect.ValueOf(in.mark(nodes)))
		}
	}
}

func (in *instrumenter) visitFile(tree *ast.Tree, declares bool) {
	outer := in.file
	in.file = tree.Path
	in.visit(reflect.ValueOf(tree).Elem(), declares)
	in.file = outer
}

// mark puts a call of trace before each statement of a list.
func (in *instrumenter) mark(nodes []ast.Node) []ast.Node {
	marked := make([]ast.Node, 0, 2*len(nodes))
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.Show:
			marked = append(marked, in.t.mark(in.file, n.Expressions[0].Pos()))
		case *ast.Text, *ast.If, *ast.For, *ast.ForIn, *ast.ForRange, *ast.Switch, *ast.TypeSwitch,
			*ast.Assignment, *ast.Var, *ast.Call:
			marked = append(marked, in.t.mark(in.file, n.Pos()))
		}
		marked = append(marked, n)
	}
	return marked
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
