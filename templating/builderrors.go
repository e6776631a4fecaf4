package templating

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/ast"
	"github.com/open2b/scriggo/native"
)

// Scriggo stops at the first error of types. The others of an entry are found
// by compiling it again without the statements that are wrong. What such a
// statement declares is then missing, so errors that mention it are not told.

const (
	maxBuilds      = 30 // of one entry that has errors
	maxBuildErrors = 10 // of types, of one entry
)

// allErrors returns the errors of an entry, of which first is what compiling it
// gave.
func (e *Engine) allErrors(name string, first error) []error {
	found := e.src.buildErrors(name, first)
	cut := &cutter{src: e.src, names: map[string]bool{}}
	next := found
	for range maxBuilds {
		if !cut.add(next) {
			return found
		}
		t := newTransformer(e.src, name, e.decl)
		t.cut = cut
		_, err := e.build(t, name, func(any, int) native.JSON { return "" }, nil)
		var typeError *scriggo.BuildError
		if cut.lost || !errors.As(err, &typeError) {
			return found
		}
		next = e.src.buildErrors(name, err)
		if !cut.follows(next[0]) {
			found = append(found, next...)
		}
		if len(found) >= maxBuildErrors {
			return found
		}
	}
	return found
}

// cutter takes statements out of the trees of an entry.
type cutter struct {
	src   *sources
	at    []wrong
	names map[string]bool // what the statements declared
	lost  bool            // a statement was not found
}

// wrong is where an error is.
type wrong struct {
	file    string
	start   int // in bytes
	message string
}

// add notes what is to be taken out next, and reports whether there is
// anything.
func (c *cutter) add(errs []error) bool {
	before := len(c.at)
	for _, err := range errs {
		own, ok := err.(*Error)
		if !ok || own.Line == 0 {
			return false
		}
		at := wrong{file: own.File, start: c.src.offset(own.File, own.Line, own.Column), message: own.Message}
		if slices.ContainsFunc(c.at, func(w wrong) bool { return w.file == at.file && w.start == at.start }) {
			return false
		}
		c.at = append(c.at, at)
	}
	return len(c.at) > before
}

// follows reports whether an error may be there only because of what was taken
// out before: its line or its message has a name that was declared there.
func (c *cutter) follows(err error) bool {
	own, ok := err.(*Error)
	if !ok || strings.HasSuffix(own.Message, "not used") {
		return true
	}
	words := strings.FieldsFunc(own.Text+" "+own.Message, func(r rune) bool { return r < 0x80 && !isWord(byte(r)) })
	return slices.ContainsFunc(words, func(word string) bool { return c.names[word] })
}

// trees takes the statements out of a tree and all that it uses.
func (c *cutter) trees(tree *ast.Tree) {
	all := treesOf(tree)
	clear(c.names)
	for _, at := range c.at {
		if !slices.ContainsFunc(all, func(tree *ast.Tree) bool { return tree.Path == at.file && c.statement(&tree.Nodes, at.start) }) {
			c.lost = true
		}
	}
}

// statement takes out the innermost statement of a list that has a byte of the
// file.
func (c *cutter) statement(nodes *[]ast.Node, at int) bool {
	for i, n := range *nodes {
		if !covers(n, at) {
			continue
		}
		if c.within(n, at) {
			return true
		}
		c.declared(n)
		*nodes = slices.Delete(*nodes, i, i+1)
		return true
	}
	return false
}

// within takes out a statement of a statement.
func (c *cutter) within(n ast.Node, at int) bool {
	switch n := n.(type) {
	case *ast.Block:
		return n != nil && c.statement(&n.Nodes, at)
	case *ast.Statements:
		return c.statement(&n.Nodes, at)
	case *ast.Func:
		return c.within(n.Body, at)
	case *ast.Using:
		return c.within(n.Body, at)
	case *ast.For:
		return c.statement(&n.Body, at)
	case *ast.ForIn:
		return c.statement(&n.Body, at) || c.within(n.Else, at)
	case *ast.ForRange:
		return c.statement(&n.Body, at) || c.within(n.Else, at)
	case *ast.Switch:
		return c.cases(n.Cases, at)
	case *ast.TypeSwitch:
		return c.cases(n.Cases, at)
	case *ast.If:
		if c.within(n.Then, at) || !isNil(n.Else) && c.within(n.Else, at) {
			return true
		}
		if isNil(n.Init) && covers(n.Condition, at) {
			n.Condition = ast.NewIdentifier(n.Condition.Pos(), "true")
			return true
		}
	}
	return false
}

func (c *cutter) cases(cases []*ast.Case, at int) bool {
	return slices.ContainsFunc(cases, func(cs *ast.Case) bool { return c.statement(&cs.Body, at) })
}

// declared notes the names that a statement declares.
func (c *cutter) declared(n ast.Node) {
	note := func(idents ...*ast.Identifier) {
		for _, id := range idents {
			if id != nil {
				c.names[id.Name] = true
			}
		}
	}
	switch n := n.(type) {
	case *ast.Var:
		note(n.Lhs...)
	case *ast.Const:
		note(n.Lhs...)
	case *ast.TypeDeclaration:
		note(n.Ident)
	case *ast.Func:
		note(n.Ident)
	case *ast.Using:
		c.declared(n.Statement)
	case *ast.Assignment:
		for _, v := range n.Lhs {
			if id, ok := v.(*ast.Identifier); ok && n.Type == ast.AssignmentDeclaration {
				note(id)
			}
		}
	case *ast.Import, *ast.Extends: // what they declare is not known
		c.lost = true
	}
}

// covers reports whether a byte of the file belongs to a node.
func covers(n ast.Node, at int) bool {
	if isNil(n) {
		return false
	}
	from, to := 1<<62, -1
	span(reflect.ValueOf(n), &from, &to)
	return from <= at && at <= to
}

// span finds where a node and all in it begins and ends.
func span(v reflect.Value, from, to *int) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		switch n := v.Interface().(type) {
		case *ast.Tree:
			return
		case *ast.Position:
			*from, *to = min(*from, n.Start), max(*to, n.End)
			return
		}
		span(v.Elem(), from, to)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				span(v.Field(i), from, to)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			span(v.Index(i), from, to)
		}
	}
}

// treesOf returns a tree and those that it renders, imports and extends.
func treesOf(tree *ast.Tree) []*ast.Tree {
	var all []*ast.Tree
	seen := map[any]bool{}
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface:
			visit(v.Elem())
		case reflect.Pointer:
			if v.IsNil() || seen[v.Interface()] {
				return
			}
			seen[v.Interface()] = true
			if tree, ok := v.Interface().(*ast.Tree); ok {
				all = append(all, tree)
			}
			visit(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					visit(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i))
			}
		}
	}
	visit(reflect.ValueOf(tree))
	return all
}
