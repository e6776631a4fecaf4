package templating

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Names of variables that every template has, unless the host uses the name.
const (
	dataName     = "data"             // the argument of include
	sharedName   = "shared"           // see Shared
	snippetsName = "templateSnippets" // the names of all snippets, sorted
)

// findSnippets lists the snippets and declares their variables.
func (e *Engine) findSnippets() error {
	all, problems, err := e.src.Snippets()
	if err != nil {
		return fmt.Errorf("templating: listing the snippets: %w", err)
	}
	var names []string
	for _, sn := range all {
		names = append(names, sn.Name)
	}
	e.snippets = all
	e.decl.own(dataName, reflect.Zero(reflect.TypeFor[any]()))
	e.decl.own(sharedName, reflect.ValueOf((*Shared)(nil)))
	e.decl.own(snippetsName, reflect.ValueOf(slices.Compact(names)))
	return e.problems("", problems)
}

// Group is a result of group_by: the elements with the same text at a path. Key is that
// text, "" if they have no value there. Items are in the order of the list, and At has
// their indexes in it.
type Group = funcs.Group

// standard returns the functions that every template has; docs/functions.md lists them.
func standard() native.Declarations {
	all := funcs.Standard()
	all["include"], all["include_all"], all["first_seen"] = include, includeAll, firstSeen
	all["debug"] = func(values ...any) string { return "" } // see Engine.debugAt
	return all
}

// include returns the text of a snippet. In the snippet, data is the argument, or nil if
// there is none.
func include(env native.Env, name string, data ...any) native.JSON {
	r := runOf(env)
	if r.snippets[name] == nil {
		funcs.Failf("include: no snippet %s for this kind of file, there is %s", place.Shorten(name), funcs.Some(slices.Sorted(maps.Keys(r.snippets))))
	}
	return r.include(env, "include", name, data)
}

// includeAll returns the texts of all snippets whose names match a pattern of path.Match,
// sorted by name, each on its own lines. It returns "" if none matches.
func includeAll(env native.Env, pattern string, data ...any) native.JSON {
	r := runOf(env)
	names, err := funcs.Glob(slices.Sorted(maps.Keys(r.snippets)), pattern, nil)
	if err != nil {
		funcs.Failf("include_all: %w", err)
	}
	var all strings.Builder
	for _, name := range names {
		text := string(r.include(env, "include_all", name, data))
		all.WriteString(text)
		if text != "" && !strings.HasSuffix(text, "\n") && r.kind != place.Plain {
			all.WriteString("\n")
		}
	}
	return native.JSON(all.String())
}

// bindSnippet notes one snippet. The start of an entry calls it for each.
func bindSnippet(env native.Env, name string, begins int, render func() native.JSON) {
	r := runOf(env)
	if r.snippets == nil {
		r.snippets, r.begin = map[string]func() native.JSON{}, map[string]bool{}
	}
	r.snippets[name], r.begin[name] = render, begins != 0
}

const maxSnippets = 64 // that include each other

func (r *run) include(env native.Env, function, name string, data []any) native.JSON {
	switch {
	case len(data) > 1:
		funcs.Failf("%s: one value for data wanted, not %d", function, len(data))
	case slices.Contains(r.chain, name):
		funcs.Failf("%s: snippets that include each other: %s > %s", function, strings.Join(r.chain, " > "), name)
	case len(r.chain) >= maxSnippets:
		funcs.Failf("%s: more than %d snippets include each other: %s > %s", function, maxSnippets, strings.Join(r.chain, " > "), name)
	case len(data) == 1 && r.data == nil:
		funcs.Failf("%s: no data can be given, because the host has a variable %s of its own", function, dataName)
	}
	r.chain = append(r.chain, name)
	defer func() { r.chain = r.chain[:len(r.chain)-1] }()
	if r.data != nil {
		outer := *r.data
		*r.data = nil
		if len(data) == 1 {
			*r.data = data[0]
		}
		defer func() { *r.data = outer }()
	}
	text := r.snippets[name]()
	r.grow(env, len(text))
	if r.begin[name] {
		if why := place.BeginsLine(string(text)); why != "" {
			funcs.Failf("%s: snippet %s begins with %s", function, name, why)
		}
	}
	return text
}

// shareUses makes all entries that share values use the same variables: another entry may
// have computed a shared value from its own variables.
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
