package templating

import (
	"path"
	"reflect"

	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Names that no template can spell, for the functions that the transformer
// puts into it.
const (
	escapeName   = "escape "
	enterName    = "enter "
	functionName = "enter function "
	leaveName    = "leave "
	growName     = "grow "
	bufferName   = "escape in macro "
	firstName    = "escape first word "
)

// transformer finds the place of every shown expression of one entry and wraps
// the expression in a call of the escaper.
type transformer struct {
	src    *sources
	entry  string
	points *place.Table
	// macro is the one whose body is walked, beginners are those whose text
	// begins with a value.
	macro     string
	beginners beginners
	begins    []func() // write what is known of them into the tree
	// traced asks for a template that says before each statement where it is.
	traced bool

	shows    []*shown
	byNode   map[*ast.Show]*shown
	imported map[*ast.Tree]bool     // files that only declare
	trees    map[visit]place.Points // the end of a file, by where it began
	loops    []*loop
	file     string
	macros   map[*ast.Func]bool
	// buffered is above zero inside text that goes to a buffer before it goes to
	// the output, where nothing else bounds it.
	buffered int
	bounded  map[ast.Node]bool

	// vars are the names of the host's variables, used those that occur.
	vars map[string]bool
	used map[string]bool
	// globals are the names of the host's functions and of the standard ones,
	// packages those of imported files.
	globals  native.Declarations
	packages map[string]bool
	// assigns reports that the template changes a variable of the host.
	assigns bool

	values int // expressions that are shown
	sites  []place.Site
	spots  []spot // of a traced template
	errors []error

	decl     *declared
	includes bool      // a snippet
	snippets []snippet // nil where none was found to be included
}

// shown is a show node and all places in which it may stand.
type shown struct {
	node     *ast.Show
	file     string
	at       []place.Points // by expression
	id       int            // of the first expression, from 1
	buffered bool
}

type visit struct {
	tree *ast.Tree
	from place.Points
}

// loop collects the places at which a loop is left or continued early.
type loop struct{ left, again place.Points }

func newTransformer(src *sources, entry string, decl *declared) *transformer {
	return &transformer{decl: decl, src: src, entry: entry, vars: decl.names(), beginners: beginners{}, globals: decl.globals, packages: map[string]bool{}, used: map[string]bool{}, points: place.NewTable(place.KindOf(entry)), byNode: map[*ast.Show]*shown{},
		trees: map[visit]place.Points{}, macros: map[*ast.Func]bool{}, bounded: map[ast.Node]bool{}, imported: map[*ast.Tree]bool{}}
}

// transform is the TreeTransformer of one compilation.
func (t *transformer) transform(tree *ast.Tree) error {
	t.placeSnippets(tree)
	t.points.Finish(t.tree(tree, t.points.Start()))
	if t.needsSnippets() {
		return errIncludes
	}
	for _, s := range t.shows {
		t.wrap(s)
	}
	for _, flag := range t.begins {
		flag()
	}
	t.touchVars(tree)
	if t.traced {
		t.instrument(tree)
	}
	if len(t.errors) > 0 {
		return joined(t.errors)
	}
	return nil
}

type joined []error

func (j joined) Error() string   { return j[0].Error() }
func (j joined) Unwrap() []error { return j }

func (t *transformer) fail(file string, pos *ast.Position, message string) {
	line, column := t.src.position(file, pos.Start)
	t.errors = append(t.errors, t.src.at(t.entry, file, line, column, message, nil))
}

// tree walks a file that begins at p and returns where it ends.
func (t *transformer) tree(tree *ast.Tree, p place.Points) place.Points {
	if tree == nil {
		return p
	}
	key := visit{tree, p}
	if end, ok := t.trees[key]; ok {
		return end
	}
	t.trees[key] = p
	file, loops := t.file, t.loops
	t.file, t.loops = tree.Path, nil
	end := t.nodes(tree.Nodes, p)
	t.file, t.loops = file, loops
	t.trees[key] = end
	return end
}

func (t *transformer) nodes(nodes []ast.Node, p place.Points) place.Points {
	for _, n := range nodes {
		p = t.node(n, p)
	}
	return p
}

// node walks one statement that begins at p and returns where it ends.
func (t *transformer) node(n ast.Node, p place.Points) place.Points {
	if isNil(n) {
		return p
	}
	switch n := n.(type) {
	case *ast.Text:
		return t.points.After(p, string(n.Text[n.Cut.Left:len(n.Text)-n.Cut.Right]))
	case *ast.Raw:
		return t.node(n.Text, p)
	case *ast.Show:
		return t.show(n, p)
	case *ast.Block:
		return t.nodes(n.Nodes, p)
	case *ast.Statements:
		return t.nodes(n.Nodes, p)
	case *ast.URL:
		return t.nodes(n.Value, p)
	case *ast.Label:
		return t.node(n.Statement, p)
	case *ast.If, *ast.For, *ast.ForIn, *ast.ForRange, *ast.Switch, *ast.TypeSwitch:
		return t.branches(n, p)
	case *ast.Break:
		if len(t.loops) > 0 {
			for _, l := range t.left(n.Label != nil) {
				l.left = t.points.Join(l.left, p)
			}
		}
		return p
	case *ast.Continue:
		if len(t.loops) > 0 {
			for _, l := range t.left(n.Label != nil) {
				l.again = t.points.Join(l.again, p)
			}
		}
		return p
	case *ast.Using:
		t.resultType(n.Type)
		t.apart(iteaName, n.Body)
		return t.node(n.Statement, p)
	case *ast.Select:
		t.fail(t.file, n.Pos(), "select is not available: it may wait for ever")
		return p
	case *ast.Extends:
		return t.tree(n.Tree, t.points.Start())
	case *ast.Import:
		t.extension(n, n.Path)
		t.imported[n.Tree] = true
		if n.Ident != nil {
			t.packages[n.Ident.Name] = true
		}
		t.tree(n.Tree, t.points.StartApart())
		return p
	}
	t.expressions(n)
	return p
}

// branches walks a statement with bodies of its own.
func (t *transformer) branches(n ast.Node, p place.Points) place.Points {
	switch n := n.(type) {
	case *ast.If:
		t.node(n.Init, p)
		t.expressions(n.Condition)
		then := t.node(n.Then, p)
		return t.points.Join(then, t.node(n.Else, p))
	case *ast.For:
		t.node(n.Init, p)
		t.expressions(n.Condition)
		t.node(n.Post, p)
		end := t.loop(n.Body, nil, p)
		n.Body = t.bound(n, n.Body)
		return end
	case *ast.ForIn:
		t.expressions(n.Expr)
		end := t.loop(n.Body, n.Else, p)
		n.Body = t.bound(n, n.Body)
		return end
	case *ast.ForRange:
		t.expressions(n.Assignment)
		end := t.loop(n.Body, n.Else, p)
		n.Body = t.bound(n, n.Body)
		return end
	case *ast.Switch:
		t.node(n.Init, p)
		t.expressions(n.Expr)
		return t.cases(n.LeadingText, n.Cases, p)
	case *ast.TypeSwitch:
		t.node(n.Init, p)
		t.expressions(n.Assignment)
		return t.cases(n.LeadingText, n.Cases, p)
	}
	return p
}

// extension refuses what Scriggo 0.60 accepts and then fails on: a rendered or
// imported file without one.
func (t *transformer) extension(n ast.Node, name string) {
	if path.Ext(name) == "" {
		t.fail(t.file, n.Pos(), "the name of a rendered or imported file needs an extension, such as .cfg")
	}
}

// left returns the loops that a break or continue may concern.
func (t *transformer) left(labelled bool) []*loop {
	if labelled {
		return t.loops
	}
	return t.loops[len(t.loops)-1:]
}

func (t *transformer) show(n *ast.Show, p place.Points) place.Points {
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
			p = t.points.AfterText(p, s.id+i)
		} else {
			p = t.points.AfterValue(p, s.id+i)
		}
	}
	return p
}

// optional resolves "render path default value", which shows a file that need
// not exist. Scriggo takes it only where it is shown itself, without the
// escaper around it.
func (t *transformer) optional(d *ast.Default) ast.Expression {
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

// resultType finds macros and using blocks that declare a type of their own
// for their text: the escaper would take it for a value.
func (t *transformer) resultType(typ ast.Expression) {
	if id, ok := typ.(*ast.Identifier); ok && id != nil && (id.Name == "string" || formatTypes[id.Name] && id.Name != "json") {
		t.fail(t.file, id.Pos(), leaveOutType(id.Name))
	}
}

// loop walks a body until the places at its start no longer grow: the second
// turn starts where the first one ended.
func (t *transformer) loop(body []ast.Node, otherwise *ast.Block, p place.Points) place.Points {
	end := p
	for {
		l := &loop{}
		t.loops = append(t.loops, l)
		again := t.points.Join(t.nodes(body, p), l.again)
		t.loops = t.loops[:len(t.loops)-1]
		end = t.points.Join(t.points.Join(end, again), l.left)
		turn := t.points.Join(p, again)
		if turn == p {
			break
		}
		p = turn
	}
	if otherwise != nil {
		end = t.points.Join(end, t.node(otherwise, p))
	}
	return end
}

func (t *transformer) cases(leading *ast.Text, cases []*ast.Case, p place.Points) place.Points {
	if leading != nil {
		p = t.node(leading, p)
	}
	l := &loop{}
	t.loops = append(t.loops, l)
	end, through := p, place.Points("")
	for _, c := range cases {
		for _, e := range c.Expressions {
			t.expressions(e)
		}
		through = t.nodes(c.Body, t.points.Join(p, through)) // a fallthrough goes on at the end of the case before
		end = t.points.Join(end, through)
	}
	t.loops = t.loops[:len(t.loops)-1]
	if len(t.loops) > 0 { // a continue concerns the loop around the switch
		outer := t.loops[len(t.loops)-1]
		outer.again = t.points.Join(outer.again, l.again)
	}
	return t.points.Join(end, l.left)
}

// apart walks a body whose text is not written where it stands: a macro.
func (t *transformer) apart(macro string, body *ast.Block) {
	if body == nil {
		return
	}
	loops, outer := t.loops, t.macro
	t.loops, t.macro = nil, macro
	t.buffered++
	t.points.Finish(t.nodes(body.Nodes, t.points.StartApart()))
	t.buffered--
	t.loops, t.macro = loops, outer
}

// expressions finds what has a text of its own inside expressions: macros,
// function literals and rendered files. It goes over the fields by reflection,
// so that no kind of node is forgotten.
func (t *transformer) expressions(n ast.Node) {
	if isNil(n) {
		return
	}
	switch n := n.(type) {
	case *ast.Func:
		if !t.macros[n] {
			t.macros[n] = true
			if n.Type != nil && n.Type.Macro {
				for _, result := range n.Type.Result {
					t.resultType(result.Type)
				}
			}
			name := t.macro // of a function literal: it may write the text of the macro
			if n.Ident != nil {
				name = n.Ident.Name
			}
			t.apart(name, n.Body)
			t.guard(n)
		}
		return
	case *ast.Render:
		t.extension(n, n.Path)
		t.buffered++
		start := t.points.StartApart()
		delete(t.trees, visit{n.Tree, start}) // it may have been walked unbuffered
		t.points.Finish(t.tree(n.Tree, start))
		t.buffered--
		return
	case *ast.Tree, *ast.Block:
		return
	case *ast.Identifier:
		t.used[n.Name] = t.vars[n.Name]
		t.note(n.Name)
		return
	case *ast.Var:
		for i, id := range n.Lhs {
			t.noteAlias([]ast.Expression{id}, n.Rhs[min(i, len(n.Rhs)):])
		}
	case *ast.Assignment:
		t.noteAlias(n.Lhs, n.Rhs)
		for _, v := range n.Lhs {
			t.assigned(v)
		}
	case *ast.UnaryOperator:
		if n.Op == ast.OperatorAddress {
			t.assigned(n.Expr)
		}
	case *ast.Call:
		t.locateDebug(n)
		t.spread(n)
		if id, ok := n.Func.(*ast.Identifier); ok && formatTypes[id.Name] && len(n.Args) == 1 {
			t.fail(t.file, n.Pos(), "the conversion "+id.Name+"(...) is not available; raw(...) writes text as it is")
		}
	}
	v := reflect.ValueOf(n)
	if v.Kind() == reflect.Pointer {
		t.fields(v.Elem())
	}
}

// formatTypes are Scriggo's names for text that needs no escaping.
var formatTypes = map[string]bool{"html": true, "css": true, "js": true, "json": true, "markdown": true}

func (t *transformer) fields(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				t.fields(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			t.fields(v.Index(i))
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || !v.CanInterface() {
			return
		}
		if n, ok := v.Interface().(ast.Node); ok {
			if _, ok := n.(*ast.Position); !ok {
				t.expressions(n)
			}
		} else if v.Kind() == reflect.Pointer {
			t.fields(v.Elem())
		}
	}
}

func isNil(n ast.Node) bool {
	if n == nil {
		return true
	}
	v := reflect.ValueOf(n)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
