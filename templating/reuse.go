package templating

import (
	"io/fs"
	"maps"
	"reflect"
	"slices"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"
)

// compiled is what the compiler makes of an entry. It knows no engine, so that
// one engine can take it over from another without keeping that.
type compiled struct {
	template *scriggo.Template
	sites    []site
	own      []string        // the variables that it may read by itself, sorted
	assigns  bool            // to a variable of the host
	shares   bool            // values with other entries
	includes bool            // snippets
	handed   map[string]bool // functions of the host that it has as values
	files    []string        // that the compiler asked for, found or not
	loops    loops           // for RenderEach
}

// asked is the file system of one compilation; it notes the files that the
// compiler asks for.
type asked struct {
	*sources
	files map[string]bool
}

func (a asked) Open(name string) (fs.File, error) {
	a.files[name] = true
	return a.sources.Open(name)
}

// reuse returns what an engine before made of an entry, if compiling it would
// make the same again: all files and snippets that it was compiled from are what
// they were, and whatever a template sees by name has the types and values that
// it had. Of functions of the host only the types are compared: what is compiled calls
// them by their names, unless it hands them to others.
func (e *Engine) reuse(before *Engine, name string) *compiled {
	if before == nil || before.entries[name] == nil {
		return nil
	}
	c := before.entries[name].compiled
	if len(c.handed) > 0 || c.includes && !slices.Equal(before.snippets, e.snippets) {
		return nil
	}
	for _, file := range c.files {
		text, err := e.src.read(file)
		old, found := before.src.known(file)
		if found != (err == nil) || text != old {
			return nil
		}
	}
	return c
}

// compatible returns the engine if what it compiled may be what another one
// with these declarations would compile, else nil.
func (e *Engine) compatible(to *Engine) *Engine {
	if e == nil || e.debug != nil || to.debug != nil || !maps.Equal(e.decl.vars, to.decl.vars) ||
		!maps.EqualFunc(e.decl.globals, to.decl.globals, sameDeclaration) || !maps.EqualFunc(e.decl.host, to.decl.host, sameType) || e.decl.owner != to.decl.owner ||
		!maps.EqualFunc(e.decl.fixed, to.decl.fixed, sameType) {
		return nil
	}
	return e
}

func sameType(a, b reflect.Value) bool { return a.Type() == b.Type() }

// sameDeclaration compares two declarations of one name.
func sameDeclaration(a, b native.Declaration) bool {
	typ := reflect.TypeOf(a)
	if typ != reflect.TypeOf(b) {
		return false
	}
	return typ.Kind() == reflect.Func || typ.Comparable() && a == b
}

// known returns a file that was read.
func (s *sources) known(name string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok = s.files[name]
	return text, ok
}
