package templating

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Snippets are the files that templates include by a name made when they are
// rendered. Scriggo compiles only files whose names stand in the template, so
// an entry that includes anything is compiled with all snippets of its kind:
// each is the body of a macro, which the entry hands to include at its start.

// snippetFolder holds the snippets. None of its files is an entry.
const snippetFolder = "snippets"

// Names of variables that every template has, unless the host has others of
// the same name.
const (
	dataName     = "data"             // what include was given
	sharedName   = "shared"           // see Shared
	snippetsName = "templateSnippets" // the names of all snippets, sorted
)

// maxSnippets is how many snippets may include each other.
const maxSnippets = 64

// snippet is a file in the folder of snippets.
type snippet struct {
	name string // "backend/auth" of "snippets/backend/auth.cfg"
	file string
	kind place.Kind
}

func isSnippet(file string) bool { return strings.HasPrefix(file, snippetFolder+"/") }

// snippets lists the files in the folder of snippets by name.
func (s *sources) snippets() ([]snippet, error) {
	var all []snippet
	var errs []error
	taken := map[string]string{}
	err := fs.WalkDir(s.fsys, snippetFolder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		ext := path.Ext(file)
		sn := snippet{name: strings.TrimSuffix(strings.TrimPrefix(file, snippetFolder+"/"), ext), file: file, kind: place.KindOf(file)}
		key := fmt.Sprint(sn.kind, sn.name)
		switch {
		case ext == "" || path.Base(sn.name) == "" || strings.HasSuffix(sn.name, "/"):
			errs = append(errs, &Error{File: file, Message: "a snippet needs a name and an extension, such as .cfg"})
		case taken[key] != "":
			errs = append(errs, &Error{File: file, Message: "a snippet of the same name as " + taken[key]})
		}
		taken[key] = file
		all = append(all, sn)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.SortFunc(all, func(a, b snippet) int { return strings.Compare(a.name, b.name) })
	return all, errors.Join(append(errs, err)...)
}

// findSnippets lists the snippets, and declares the variables that go with
// them.
func (e *Engine) findSnippets() (err error) {
	if e.snippets, err = e.src.snippets(); err != nil {
		return err
	}
	var names []string
	for _, sn := range e.snippets {
		names = append(names, sn.name)
	}
	e.decl.own(dataName, reflect.Zero(reflect.TypeFor[any]()))
	e.decl.own(sharedName, reflect.ValueOf((*Shared)(nil)))
	e.decl.own(snippetsName, reflect.ValueOf(slices.Compact(names)))
	return nil
}

// buildIncluding builds an entry, and again with the snippets of its kind when
// it turns out to include any.
func (e *Engine) buildIncluding(t *transformer, name string, opts *scriggo.BuildOptions) (*scriggo.Template, error) {
	tpl, err := scriggo.BuildTemplate(e.src, name, opts)
	if !errors.Is(err, errIncludes) {
		return tpl, err
	}
	t.restart(e.snippets)
	return scriggo.BuildTemplate(withSnippets{e.src, name, t.snippets}, name, opts)
}

// withSnippets is the file system of an entry that includes snippets: behind
// its text are macros that render them.
type withSnippets struct {
	*sources
	entry    string
	snippets []snippet
}

func (w withSnippets) Open(name string) (fs.File, error) {
	f, err := w.sources.Open(name)
	if err != nil || name != w.entry || len(w.snippets) == 0 {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Write(text)
	b.WriteString("\n") // so that the last line stays alone; see placeSnippets
	for i, sn := range w.snippets {
		fmt.Fprintf(&b, "{%% macro %s%d %%}{{ render %q }}{%% end macro %%}", snippetMacro, i, "/"+sn.file)
	}
	return openText{Reader: strings.NewReader(b.String())}, nil
}

// Group is what group_by makes of the elements that have the same text at a path.
type Group = funcs.Group

// standard returns the functions that every template has; doc.go lists them.
func standard() native.Declarations {
	all := funcs.Standard()
	all["include"], all["include_all"], all["first_seen"], all["debug"] = include, includeAll, firstSeen, debugNothing
	return all
}

// include returns the text of a snippet. In it, data is what include was
// given; nil without it.
func include(env native.Env, name string, data ...any) native.JSON {
	state := stateOf(env)
	if _, ok := state.snippets[name]; !ok {
		funcs.Failf("include: no snippet %s for this kind of file, there is %s", place.Shorten(name), funcs.Some(state.names()))
	}
	return state.include(env, "include", name, data)
}

// includeAll returns the texts of all snippets whose names match a pattern of
// path.Match, by name, each on lines of its own; nothing if none does.
func includeAll(env native.Env, pattern string, data ...any) native.JSON {
	state := stateOf(env)
	names, err := funcs.Glob(state.names(), pattern)
	if err != nil {
		funcs.Failf("include_all: %w", err)
	}
	var all strings.Builder
	for _, name := range names {
		text := string(state.include(env, "include_all", name, data))
		all.WriteString(text)
		if text != "" && !strings.HasSuffix(text, "\n") && !state.plain {
			all.WriteString("\n")
		}
	}
	return native.JSON(all.String())
}

// bindSnippet is called at the start of an entry for each snippet.
func bindSnippet(env native.Env, name string, plain, begins int, render func() native.JSON) {
	state := stateOf(env)
	if state.snippets == nil {
		state.snippets = map[string]func() native.JSON{}
	}
	state.snippets[name] = render
	if begins != 0 {
		state.begin = append(state.begin, name)
	}
	state.plain = plain != 0
}

func (s *runState) names() []string { return slices.Sorted(maps.Keys(s.snippets)) }

func (s *runState) include(env native.Env, function, name string, data []any) native.JSON {
	switch {
	case len(data) > 1:
		funcs.Failf("%s: one value for data wanted, not %d", function, len(data))
	case slices.Contains(s.chain, name):
		funcs.Failf("%s: snippets that include each other: %s > %s", function, strings.Join(s.chain, " > "), name)
	case len(s.chain) >= maxSnippets:
		funcs.Failf("%s: more than %d snippets include each other: %s > %s", function, maxSnippets, strings.Join(s.chain, " > "), name)
	case len(data) == 1 && s.data == nil:
		funcs.Failf("%s: no data can be given, because the host has a variable %s of its own", function, dataName)
	}
	s.chain = append(s.chain, name)
	defer func() { s.chain = s.chain[:len(s.chain)-1] }()
	if s.data != nil {
		outer := *s.data
		*s.data = nil
		if len(data) == 1 {
			*s.data = data[0]
		}
		defer func() { *s.data = outer }()
	}
	text := s.snippets[name]()
	grow(env, 1+len(text))
	if slices.Contains(s.begin, name) {
		if why := place.BeginsLine(string(text)); why != "" {
			funcs.Failf("%s: snippet %s begins with %s", function, name, why)
		}
	}
	return text
}

// shareUses makes entries that share values use the same variables: what one of
// them gets may have been computed from what another one reads.
func (e *Engine) shareUses() {
	var shared []string
	for _, en := range e.entries {
		if en.shares {
			shared = append(shared, en.uses...)
		}
	}
	slices.Sort(shared)
	shared = slices.Compact(shared)
	for _, en := range e.entries {
		if en.shares {
			en.uses = slices.Clone(shared)
		}
	}
}
