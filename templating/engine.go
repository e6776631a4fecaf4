package templating

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
	"github.com/hapticsdk/haptic/templating/internal/place"
	"github.com/hapticsdk/haptic/templating/internal/rewrite"
)

// DefaultMaxOutput is the size at which a render is stopped unless
// [Options.MaxOutput] says otherwise: 64 MiB.
const DefaultMaxOutput = 64 << 20

// Options says what is compiled and what templates may use. The zero value
// compiles every file with the standard functions alone.
type Options struct {
	// Entries are the templates that are rendered on their own. Zero means
	// every file of the file system but those whose base name starts with "_",
	// which is how files that others include are told apart.
	Entries []string

	// Globals is what templates see by name and what never changes: functions,
	// numbers, strings, booleans, a reflect.Type, and any other value, of which
	// each render has its own shallow copy. A function that returns (T, error)
	// is seen as one that returns T; its error ends the render with the position
	// of the call. A global replaces the standard function of its name.
	Globals map[string]any

	// Vars is what is given anew at each render. Only the types count: the type
	// of a variable is the type of its value here, which may be nil or zero
	// (`[]*networkingv1.Ingress(nil)`). A nil pointer to an interface type
	// declares a variable of that interface type.
	Vars map[string]any

	// MaxOutput bounds the output of one render, in bytes, and its lines to one for
	// each 64 bytes of that. Zero means [DefaultMaxOutput].
	MaxOutput int

	// MaxMemory bounds by how many bytes the heap of the process may grow during one
	// render, whatever a template does. Renders at the same time count for each
	// other. Zero means [DefaultMaxMemory].
	MaxMemory int

	// Debug is called with each value that a template gives to debug(...), while
	// it is rendered. Nil drops them. Renders run concurrently, and a render that
	// fails is run a second time.
	Debug func(at Origin, value any)
}

// Raw is text that is written as it is: what the function raw returns. A Go
// function may return it too, for text that it made safe itself.
type Raw = place.Raw

// Kind is what HAProxy reads a file for, as its name tells. Values are escaped for it.
type Kind = place.Kind

// The kinds of files.
const (
	Config  = place.Config  // *.cfg, *.conf
	Map     = place.Map     // *.map
	RegMap  = place.RegMap  // *_reg.map: the keys are regular expressions
	CRTList = place.CRTList // *.txt
	List    = place.List    // *.lst, *.acl: patterns of ACLs
	RegList = place.RegList // *_reg.lst, *_reg.acl: regular expressions
	Format  = place.Format  // *_lf.html and the like: a log-format string
	Plain   = place.Plain   // *.http, *.html, *.json, *.lua, *.pem and the like
	Unknown = place.Unknown // all others: values have letters, digits and -_.: only
)

// KindOf tells the kind of a file by its name.
func KindOf(name string) Kind { return place.KindOf(name) }

// Engine holds compiled templates. It is immutable and safe for concurrent
// use.
type Engine struct {
	src      *rewrite.Sources
	decl     *declared
	names    *rewrite.Names
	max      int
	memory   int
	debug    func(Origin, any)
	entries  map[string]*entry
	sorted   []string // their names
	snippets []rewrite.Snippet
}

// entry is one compiled template.
type entry struct {
	name     string
	template *scriggo.Template
	sites    []place.Site
	uses     []string                     // variables, sorted
	assigns  bool                         // to a variable of the host
	shares   bool                         // values with other entries
	loops    loops                        // for RenderEach
	size     atomic.Int64                 // of the last output, for the next buffer
	traced   func() (*tracedEntry, error) // compiled when an error has no position
}

// Compile reads and type-checks all entries and the files that they use. It
// fails with what is wrong in each entry, joined by errors.Join; see [Errors]. Of
// the errors of types in one entry it has the first. Where somebody wrote Jinja, such
// as {% endfor %} or s | upper, the message goes on with what to write.
// The file system is not read again afterwards.
func Compile(fsys fs.FS, opts *Options) (*Engine, error) {
	if opts == nil {
		opts = &Options{}
	}
	if fsys == nil {
		return nil, errors.New("templating: no file system")
	}
	decl, err := declare(opts)
	if err != nil {
		return nil, err
	}
	e := &Engine{src: rewrite.NewSources(fsys), decl: decl, max: opts.MaxOutput, debug: opts.Debug, entries: map[string]*entry{}}
	if e.max <= 0 {
		e.max = DefaultMaxOutput
	}
	if e.memory = opts.MaxMemory; e.memory <= 0 {
		e.memory = DefaultMaxMemory
	}
	if err := e.findSnippets(); err != nil {
		return nil, err
	}
	e.names = rewrite.NewNames(decl.globals, decl.names())
	e.sorted = slices.Sorted(slices.Values(opts.Entries))
	if len(e.sorted) == 0 {
		if e.sorted, err = e.src.Entries(); err != nil {
			return nil, fmt.Errorf("templating: listing the templates: %w", err)
		}
	}
	e.sorted = slices.Compact(e.sorted)
	var errs []error
	seen := map[string]bool{} // an error in a shared file is reported once
	for _, name := range e.sorted {
		compiled, err := e.compile(name)
		for _, err := range Errors(err) {
			if !seen[err.Error()] {
				seen[err.Error()] = true
				errs = append(errs, err)
			}
		}
		e.entries[name] = compiled
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	e.shareUses()
	return e, nil
}

// compile builds one entry.
func (e *Engine) compile(name string) (*entry, error) {
	en := &entry{name: name, traced: sync.OnceValues(func() (*tracedEntry, error) { return e.compileTraced(name) })}
	t, err := e.build(en, name, place.KindOf(name), e.names)
	if err != nil {
		return nil, err
	}
	en.assigns, en.shares = t.Assigns, t.Used[sharedName]
	for name := range e.decl.vars {
		if t.Used[name] || slices.Contains(en.template.UsedVars(), name) {
			en.uses = append(en.uses, name)
		}
	}
	slices.Sort(en.uses)
	return en, nil
}

// build compiles a template with escapers into an entry.
func (e *Engine) build(en *entry, name string, kind place.Kind, names *rewrite.Names) (*rewrite.Tree, error) {
	t := rewrite.New(e.src, name, kind, names, e.snippets, false)
	functions := e.functions(escapers(func(_ native.Env, v any, id int) native.JSON { return en.sites[id].Escape(v) }))
	functions[rewrite.Escape] = func(v any, id int) native.JSON { return en.sites[id].Escape(v) } // a call with one argument less
	tpl, problems := t.Build(functions)
	en.template, en.sites = tpl, t.Sites
	return t, e.problems(name, problems)
}

// functions adds those that every template calls.
func (e *Engine) functions(more native.Declarations) native.Declarations {
	more[rewrite.Grow] = func(env native.Env, size int) { runOf(env).grow(env, size) }
	more[rewrite.Enter], more[rewrite.Leave], more[rewrite.Function] = enter, leave, enterFunction
	more[rewrite.Bind], more[rewrite.Debug] = bindSnippet, e.debugAt
	more[rewrite.Length], more[rewrite.Grown] = funcs.Length, funcs.Grown
	return more
}

// debugAt reports the values of debug(...) to the host.
func (e *Engine) debugAt(file string, line, column int, values ...any) string {
	for _, v := range values {
		if e.debug != nil {
			e.debug(Origin{File: file, Line: line, Column: column, Text: e.src.Line(file, line)}, v)
		}
	}
	return ""
}

// Entries returns the names of the compiled entries, sorted.
func (e *Engine) Entries() []string { return slices.Clone(e.sorted) }

// Uses returns the variables of [Options.Vars] that an entry may read, by
// itself or through the files that it renders, imports or extends, sorted. What
// a render makes depends on these alone, if that is true of the functions that
// it calls.
func (e *Engine) Uses(name string) []string {
	if en := e.entries[name]; en != nil {
		return slices.Clone(en.uses)
	}
	return nil
}

// Render renders one entry. vars has a value for each variable of
// [Options.Vars] and for nothing else.
//
// Render stops soon after ctx is done, also in a template that loops for ever;
// the error then wraps ctx's. After a time-out the template runs again for at most
// half a second, so that the error names the line where it is. Whatever goes wrong in a
// template, a panic in one of its functions included, is an *Error with the position;
// to find it, the template may be run a second time. Output beyond
// [Options.MaxOutput], and memory beyond [Options.MaxMemory], is an *Error that wraps
// [ErrTooLarge].
func (e *Engine) Render(ctx context.Context, name string, vars map[string]any) (string, error) {
	return e.render(ctx, name, vars, "")
}

// render renders an entry; item is the variable of [Engine.RenderEach].
func (e *Engine) render(ctx context.Context, name string, vars map[string]any, item string) (string, error) {
	text, err, others := e.attempt(ctx, name, vars, item)
	if others {
		text, err, _ = e.attempt(ctx, name, vars, item)
	}
	return text, err
}

// attempt is render; others reports that the process took memory for something else:
// a run beyond [Options.MaxMemory] was not so again.
func (e *Engine) attempt(ctx context.Context, name string, vars map[string]any, item string) (text string, err error, others bool) {
	en, values, err := e.prepare(ctx, name, vars)
	if err != nil {
		return "", err, false
	}
	r, err := e.run(ctx, place.KindOf(name), en.template, values, int(en.size.Load()))
	if err == nil {
		if f := r.check(en.sites); f != nil {
			err = errors.New(f.Message)
		}
	}
	switch {
	case err == nil:
		en.size.Store(int64(r.out.Len()))
		return r.out.String(), nil, false
	case ctx.Err() != nil:
		return "", e.hanging(ctx, en, vars), false
	}
	all := e.failures(ctx, en, vars, item, r.full)
	switch {
	case len(all) > 0:
	case ctx.Err() != nil:
		return "", e.hanging(ctx, en, vars), false
	default: // it did not fail again
		return "", e.unlocated(en, err), errors.Is(err, ErrTooLarge)
	}
	return "", all.err(), false
}

// prepare finds an entry and checks the variables of a render.
func (e *Engine) prepare(ctx context.Context, name string, vars map[string]any) (*entry, map[string]any, error) {
	en := e.entries[name]
	if en == nil {
		return nil, nil, &Error{Entry: name, File: name, Err: fs.ErrNotExist,
			Message: "no such entry, there is " + strings.Join(e.sorted, ", ")}
	}
	values, err := e.decl.values(vars)
	if err != nil {
		return nil, nil, &Error{Entry: name, File: name, Message: err.Error(), Err: err}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, stopped(name, err)
	}
	return en, values, nil
}

func stopped(name string, err error) *Error {
	return &Error{Entry: name, File: name, Message: "stopped: " + err.Error(), Err: err}
}
