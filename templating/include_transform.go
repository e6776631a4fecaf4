package templating

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/open2b/scriggo/ast"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

const (
	snippetMacro = "HapticSnippet" // exported, so that an extended file sees it
	bindName     = "bind snippet "
	debugName    = "debug "
)

// errIncludes says that an entry includes snippets and has to be parsed again
// with them.
var errIncludes = errors.New("templating: snippets are included")

// note is called for each name in an entry and in the files that it uses.
func (t *transformer) note(name string) {
	switch name {
	case "include", "include_all":
		t.includes = true
	case "first_seen":
		t.assigns = true // one run for all items would remember the ones before
	}
}

// needsSnippets reports whether an entry has to be parsed again.
func (t *transformer) needsSnippets() bool { return t.includes && t.snippets == nil }

// restart forgets what was found in an entry, to find it again with the
// snippets of its kind.
func (t *transformer) restart(all []snippet) {
	fresh := newTransformer(t.src, t.entry, t.decl)
	fresh.traced = t.traced
	fresh.snippets = []snippet{}
	for _, sn := range all {
		if sn.kind == place.KindOf(t.entry) {
			fresh.snippets = append(fresh.snippets, sn)
		}
	}
	*t = *fresh
}

// placeSnippets moves the macros of the snippets from the end of an entry to
// where they can be handed to include first thing.
func (t *transformer) placeSnippets(entry *ast.Tree) {
	if len(t.snippets) == 0 {
		return
	}
	var own, macros, binds []ast.Node
	for _, n := range entry.Nodes {
		fn, ok := n.(*ast.Func)
		if !ok || fn.Ident == nil || !strings.HasPrefix(fn.Ident.Name, snippetMacro) {
			own = append(own, n)
			continue
		}
		if len(macros) == 0 && len(own) > 0 {
			cutLineFeed(own[len(own)-1])
		}
		macros = append(macros, fn)
	}
	pos := &ast.Position{Line: 1, Column: 1}
	for i, fn := range macros {
		binds = append(binds, ast.NewCall(pos, ast.NewIdentifier(pos, bindName), []ast.Expression{
			ast.NewBasicLiteral(pos, ast.StringLiteral, strconv.Quote(t.snippets[i].name)),
			ast.NewBasicLiteral(pos, ast.IntLiteral, digit(place.KindOf(t.entry) == place.Plain)),
			t.beginsFlag(fn.(*ast.Func).Ident.Name),
			ast.NewIdentifier(pos, fn.(*ast.Func).Ident.Name),
		}, false))
	}
	base := entry
	for next := extended(base); next != nil; next = extended(base) {
		base = next
	}
	if base == entry {
		entry.Nodes = append(append(macros, binds...), own...)
		return
	}
	entry.Nodes = append(own, macros...)
	base.Nodes = append(binds, base.Nodes...)
}

// beginsFlag is a number in the tree that says whether the text of a snippet
// begins with a value, once that is known.
func (t *transformer) beginsFlag(macro string) ast.Expression {
	flag := ast.NewBasicLiteral(&ast.Position{Line: 1, Column: 1}, ast.IntLiteral, "0")
	t.begins = append(t.begins, func() { flag.Value = digit(t.beginners.has(macro)) })
	return flag
}

// cutLineFeed takes away the line feed that was put behind the text of an
// entry, unless Scriggo did with the rest of a line of statements.
func cutLineFeed(n ast.Node) {
	text, ok := n.(*ast.Text)
	if ok && len(text.Text) > text.Cut.Left+text.Cut.Right && text.Text[len(text.Text)-text.Cut.Right-1] == '\n' {
		text.Cut.Right++
	}
}

// extended returns the file that a file extends, if any.
func extended(tree *ast.Tree) *ast.Tree {
	for _, n := range tree.Nodes {
		switch n := n.(type) {
		case *ast.Extends:
			return n.Tree
		case *ast.Statements:
			for _, n := range n.Nodes {
				if e, ok := n.(*ast.Extends); ok {
					return e.Tree
				}
			}
		}
	}
	return nil
}

// locateDebug gives a call of debug its position.
func (t *transformer) locateDebug(call *ast.Call) {
	id, ok := call.Func.(*ast.Identifier)
	if !ok || id.Name != "debug" || t.globals["debug"] == nil || reflect.TypeOf(t.globals["debug"]) != debugType {
		return
	}
	pos := call.Pos()
	line, column := t.src.position(t.file, pos.Start)
	number := func(n int) ast.Expression { return ast.NewBasicLiteral(pos, ast.IntLiteral, strconv.Itoa(n)) }
	call.Func = ast.NewIdentifier(id.Pos(), debugName)
	call.Args = append([]ast.Expression{
		ast.NewBasicLiteral(pos, ast.StringLiteral, strconv.Quote(t.file)), number(line), number(column),
	}, call.Args...)
}

// givesText has the functions that may return the text of a macro.
var givesText = map[string]bool{"indent": true, "include": true, "include_all": true}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
