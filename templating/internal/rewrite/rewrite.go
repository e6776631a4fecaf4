package rewrite

import (
	"path"
	"sync"

	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/origin"
	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Names, which no template can spell, of the functions that Tree calls.
const (
	Escape   = "escape "            // (value, number of its site): its text
	Buffered = "escape in a macro " // the same for text that does not go to the output at once
	First    = "escape first word " // the same for a site with First
	Grow     = "grow "              // (bytes): at each turn of a loop in a macro, with the size of its text
	Enter    = "enter "             // (): at the start of each macro
	Leave    = "leave "             // (): at its end and before each of its returns
	Function = "enter function "    // (): at the start of each function
	Bind     = "bind snippet "      // (name, 1 if its text begins with a value, macro)
	Debug    = "debug "             // (file, line, column, values...)
	Grown    = "grown "             // (value): behind a statement that joins texts or lists
	Length   = "length "            // (length): an argument of make
)

// Names has the names that templates see. Many trees can share it.
type Names struct {
	Globals native.Declarations
	Vars    map[string]bool // the names of Globals that are variables of the host
	methods func() map[string]variadicMethod
}

// NewNames returns the names of globals. Do not change globals afterwards.
func NewNames(globals native.Declarations, vars map[string]bool) *Names {
	return &Names{globals, vars, sync.OnceValue(func() map[string]variadicMethod { return variadicMethods(globals) })}
}

// Tree rewrites the tree of one entry and of all files that it uses. It finds the
// place of every shown expression and wraps the expression in a call of the escaper.
type Tree struct {
	// Sites are the shown values, Spots the statements of a traced template.
	Sites []place.Site
	Spots []origin.Spot
	// Used has the names in the template, true for variables of the host. Assigns reports
	// that the template changes such a variable, or keeps other state from one item to the
	// next.
	Used    map[string]bool
	Assigns bool

	// NoUses leaves the variables of statements out of a traced template.
	NoUses bool

	src      *Sources
	entry    string
	names    *Names
	traced   bool
	snippets []Snippet // all that there are
	included []Snippet // snippets of the entry's kind, nil if it includes none
	includes bool
	problems problems

	points *place.Table
	// macro is the macro whose body the walk is in. The text of beginners begins with a
	// value.
	macro     string
	beginners beginners
	endings   map[string]place.Ending
	assumed   map[string]bool // macros whose ending the walk used
	begins    []func()        // write the known beginners into the tree

	shows    []*shown
	byNode   map[*ast.Show]*shown
	imported map[*ast.Tree]bool     // files that only declare
	trees    map[visit]place.Points // the end of a file, by its start
	loops    []*loop
	file     string
	macros   map[*ast.Func]bool
	bounded  map[ast.Node]bool
	packages map[string]bool // imported files
	// buffered is above zero inside text that goes to a buffer before the output. Nothing
	// else bounds such text.
	buffered int
	values   int // shown expressions

	depth     int // of the current node; see limits.go
	visits    int // of nodes
	tooDeep   bool
	constants map[string]int // sizes by name
	texts     map[textAt]place.Points
}

// New returns a Tree that rewrites an entry; kind is the kind of its output. A traced
// template calls the recorder before each statement.
func New(src *Sources, entry string, kind place.Kind, names *Names, snippets []Snippet, traced bool) *Tree {
	return &Tree{src: src, entry: entry, names: names, snippets: snippets, traced: traced, Used: map[string]bool{},
		points: place.NewTable(
			kind,
		), beginners: beginners{}, endings: map[string]place.Ending{}, assumed: map[string]bool{}, packages: map[string]bool{}, byNode: map[*ast.Show]*shown{},
		trees: map[visit]place.Points{}, macros: map[*ast.Func]bool{}, bounded: map[ast.Node]bool{}, imported: map[*ast.Tree]bool{}, constants: map[string]int{}, texts: map[textAt]place.Points{}}
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

// loop collects the places at which a template leaves a loop, or continues it early.
type loop struct{ left, again place.Points }

// transform is the TreeTransformer of one compilation.
func (t *Tree) transform(tree *ast.Tree) error {
	t.placeSnippets(tree)
	t.points.Finish(t.tree(tree, t.points.Start()))
	if t.tooDeep {
		return t.problems
	}
	if t.includes && t.included == nil {
		return errIncludes
	}
	for _, s := range t.shows {
		t.wrap(s)
	}
	for _, flag := range t.begins {
		flag()
	}
	t.complete(tree)
	if t.traced {
		t.trace(tree)
	}
	if len(t.problems) > 0 {
		return t.problems
	}
	return nil
}

// problems are the errors of a tree.
type problems []*origin.Problem

func (p problems) Error() string { return p[0].Message }

func (t *Tree) fail(file string, pos *ast.Position, message string) {
	line, column := t.src.Position(file, pos.Start)
	t.problems = append(t.problems, &origin.Problem{File: file, Line: line, Column: column, Message: message})
}

// tree walks a file that begins at p and returns its end.
func (t *Tree) tree(tree *ast.Tree, p place.Points) place.Points {
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

func (t *Tree) nodes(nodes []ast.Node, p place.Points) place.Points {
	for _, n := range nodes {
		p = t.node(n, p)
	}
	return p
}

// node walks one statement that begins at p and returns its end.
func (t *Tree) node(n ast.Node, p place.Points) place.Points {
	defer func(depth int) { t.depth = depth }(t.depth)
	if isNil(n) || !t.deeper(n) {
		return p
	}
	switch n := n.(type) {
	case *ast.Text:
		return t.after(p, n)
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
		for _, l := range t.left(n.Label != nil) {
			l.left = t.points.Join(l.left, p)
		}
		return p
	case *ast.Continue:
		for _, l := range t.left(n.Label != nil) {
			l.again = t.points.Join(l.again, p)
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
func (t *Tree) branches(n ast.Node, p place.Points) place.Points {
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

// extension refuses a rendered or imported file without an extension: Scriggo 0.60 accepts
// it and fails later.
func (t *Tree) extension(n ast.Node, name string) {
	if path.Ext(name) == "" {
		t.fail(t.file, n.Pos(), "the name of a rendered or imported file needs an extension, such as .cfg")
	}
}

// left returns the loops that a break may end, or a continue may repeat.
func (t *Tree) left(labelled bool) []*loop {
	if labelled {
		return t.loops
	}
	return t.loops[max(0, len(t.loops)-1):]
}

// loop walks a body until the places at its start no longer grow: the second
// turn starts where the first one ended.
func (t *Tree) loop(body []ast.Node, otherwise *ast.Block, p place.Points) place.Points {
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

func (t *Tree) cases(leading *ast.Text, cases []*ast.Case, p place.Points) place.Points {
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
		through = t.nodes(c.Body, t.points.Join(p, through)) // a fallthrough continues at the end of the previous case
		end = t.points.Join(end, through)
	}
	t.loops = t.loops[:len(t.loops)-1]
	if len(t.loops) > 0 { // a continue concerns the loop around the switch
		outer := t.loops[len(t.loops)-1]
		outer.again = t.points.Join(outer.again, l.again)
	}
	return t.points.Join(end, l.left)
}

// apart walks the body of a macro: its text goes elsewhere.
func (t *Tree) apart(macro string, body *ast.Block) {
	if body == nil {
		return
	}
	loops, outer := t.loops, t.macro
	t.loops, t.macro = nil, macro
	t.buffered++
	end := t.nodes(body.Nodes, t.points.StartApart())
	t.points.Finish(end)
	t.noteEnding(macro, body, t.points.Ending(end))
	t.buffered--
	t.loops, t.macro = loops, outer
}
