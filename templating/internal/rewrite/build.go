package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/origin"
)

// compiler allows one compilation at a time. Scriggo 0.60 keeps facts about predeclared
// constants, such as true, in global variables: two engines that compile at once would
// race.
var compiler sync.Mutex

// Build compiles the entry. functions have the names that no template can spell; they
// replace functions of [Names.Globals].
func (t *Tree) Build(functions native.Declarations) (tpl *scriggo.Template, found []*origin.Problem) {
	globals := maps.Clone(t.names.Globals)
	maps.Copy(globals, functions)
	defer func() {
		if v := recover(); v != nil { // Scriggo's compiler panics on some templates
			tpl, found = nil, []*origin.Problem{{File: t.entry, Message: fmt.Sprint(v)}}
		}
	}()
	compiler.Lock()
	defer compiler.Unlock()
	opts := &scriggo.BuildOptions{Globals: globals, TreeTransformer: t.transform}
	tpl, err := scriggo.BuildTemplate(t.src, t.entry, opts)
	if errors.Is(err, errIncludes) { // once more, with the snippets of its kind
		again := New(t.src, t.entry, t.points.Kind, t.names, t.snippets, t.traced)
		again.NoUses, again.included = t.NoUses, []Snippet{}
		for _, sn := range t.snippets {
			if sn.kind == t.points.Kind {
				again.included = append(again.included, sn)
			}
		}
		*t = *again
		opts.TreeTransformer = t.transform
		tpl, err = scriggo.BuildTemplate(withSnippets{t.src, t.entry, t.included}, t.entry, opts)
	}
	if err != nil {
		return nil, t.found(err)
	}
	return tpl, nil
}

// found gives the errors of a compilation their positions.
func (t *Tree) found(err error) []*origin.Problem {
	var build *scriggo.BuildError
	var all problems
	var one *origin.Problem
	switch {
	case errors.As(err, &build):
		pos := build.Position()
		return []*origin.Problem{{File: build.Path(), Line: pos.Line, Column: pos.Column, Message: build.Message()}}
	case errors.As(err, &all):
		return all
	case errors.As(err, &one):
		return []*origin.Problem{one}
	}
	return []*origin.Problem{{File: t.entry, Message: err.Error(), Err: err}}
}
