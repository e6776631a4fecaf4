package rewrite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/open2b/scriggo/ast"

	"github.com/hapticsdk/haptic/templating/internal/origin"
	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Snippets are the files that templates include by a name that the render computes. Scriggo
// compiles only files that a template names. An entry that includes anything is therefore
// compiled with all snippets of its kind. Each is the body of a macro, which the start of
// the entry registers with Bind.

const (
	snippetFolder = "snippets"      // none of its files is an entry
	snippetMacro  = "HapticSnippet" // exported, so that an extended file sees it
)

// errIncludes says that an entry includes snippets, and that Scriggo must parse it again
// with them.
var errIncludes = errors.New("templating: snippets are included")

// Snippet is a file in the folder of snippets.
type Snippet struct {
	Name string // "backend/auth" of "snippets/backend/auth.cfg"
	file string
	kind place.Kind
}

// Snippets lists the files in the folder of snippets, sorted by name. It reports two of one
// name and kind as a problem.
func (s *Sources) Snippets() (all []Snippet, problems []*origin.Problem, err error) {
	taken := map[string]string{}
	err = fs.WalkDir(s.fsys, snippetFolder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		ext := path.Ext(file)
		kind := place.KindOf(file)
		if kind == place.Unknown { // the including entry decides its use
			kind = place.Config
		}
		sn := Snippet{strings.TrimSuffix(strings.TrimPrefix(file, snippetFolder+"/"), ext), file, kind}
		key := fmt.Sprint(sn.kind, sn.Name)
		switch {
		case ext == "" || path.Base(sn.Name) == "" || strings.HasSuffix(sn.Name, "/"):
			problems = append(problems, &origin.Problem{File: file, Message: "a snippet needs a name and an extension, such as .cfg"})
		case taken[key] != "":
			problems = append(problems, &origin.Problem{File: file, Message: "a snippet of the same name as " + taken[key]})
		}
		taken[key] = file
		all = append(all, sn)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.SortFunc(all, func(a, b Snippet) int { return strings.Compare(a.Name, b.Name) })
	return all, problems, err
}

// withSnippets is the file system of an entry that includes snippets. It adds macros that
// render them behind the text of the entry.
type withSnippets struct {
	*Sources
	entry    string
	snippets []Snippet
}

func (w withSnippets) Open(name string) (fs.File, error) {
	f, err := w.Sources.Open(name)
	if err != nil || name != w.entry || len(w.snippets) == 0 {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Write(text)
	b.WriteString("\n") // keeps the last line apart; see placeSnippets
	for i, sn := range w.snippets {
		fmt.Fprintf(&b, "{%% macro %s%d %%}{{ render %q }}{%% end macro %%}", snippetMacro, i, "/"+sn.file)
	}
	return openText{Reader: strings.NewReader(b.String())}, nil
}

// placeSnippets moves the macros of the snippets from the end of an entry, and binds them
// at the start.
func (t *Tree) placeSnippets(entry *ast.Tree) {
	if len(t.included) == 0 {
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
		name := fn.(*ast.Func).Ident.Name
		begins := number(pos, 0)
		t.begins = append(t.begins, func() { begins.Value = digit(t.beginners.has(name)) })
		binds = append(binds, ast.NewCall(pos, ast.NewIdentifier(pos, Bind), []ast.Expression{
			ast.NewBasicLiteral(pos, ast.StringLiteral, strconv.Quote(t.included[i].Name)), begins, ast.NewIdentifier(pos, name)}, false))
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

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// cutLineFeed removes the line feed that Open added to the text of an entry. Scriggo may
// have removed it already, with the rest of a line of statements.
func cutLineFeed(n ast.Node) {
	text, ok := n.(*ast.Text)
	if ok && len(text.Text) > text.Cut.Left+text.Cut.Right && text.Text[len(text.Text)-text.Cut.Right-1] == '\n' {
		text.Cut.Right++
	}
}

// extended returns the file that a file extends, if any. Such a file only declares.
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
