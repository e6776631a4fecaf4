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

// DefaultMaxOutput bounds the output of a render, unless [Options.MaxOutput] is set: 64
// MiB.
const DefaultMaxOutput = 64 << 20

// Options says which templates Compile reads and what they may use. The zero value compiles
// every file with the standard functions alone.
type Options struct {
	// Entries are the templates that Render accepts. Empty means every file of the file
	// system, except those whose base name starts with "_" and snippets.
	Entries []string

	// Globals are the names that templates see and that never change: functions, numbers,
	// strings, booleans, a reflect.Type. Each render gets its own shallow copy of any other
	// value. A function that returns (T, error) returns T to templates; its error ends the
	// render with the position of the call. A global replaces the standard function of its
	// name.
	Globals map[string]any

	// Vars are the variables that each render sets anew. Only the types count: a variable
	// has the type of its value here. The value may be a typed nil or zero
	// (`[]*networkingv1.Ingress(nil)`). A nil pointer to an interface type declares a
	// variable of that interface type.
	Vars map[string]any

	// MaxOutput bounds the output of one render, in bytes, and its lines: one for each 64
	// of these bytes, but at least 1000. Zero means [DefaultMaxOutput].
	MaxOutput int

	// MaxMemory bounds how many bytes the heap of the process may grow during one render,
	// whatever a template does. Concurrent renders count against each other. Zero means
	// [DefaultMaxMemory].
	MaxMemory int

	// Debug receives each value that a template passes to debug(...), during the render. If
	// nil, debug does nothing. Renders run concurrently, and a failed render runs a second
	// time.
	Debug func(at Origin, value any)
}

// Raw is text that a template writes as it is. The function raw returns it. A Go function
// may return it too, for text that it made safe itself.
type Raw = place.Raw

// Regex is a regular expression that a template writes as it is where HAProxy reads one. The
// function regex returns it for an expression that [regex.Check] takes. A Go function may
// return it too, for an expression of its own.
//
// [regex.Check]: https://pkg.go.dev/github.com/hapticsdk/haptic/templating/regex#Check
type Regex = place.Regex

// Kind is how HAProxy reads a file. The name of the file tells it. Values are escaped for
// it.
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

// Compile reads and type-checks all entries and the files that they use. It joins the
// errors of all entries with errors.Join; see [Errors]. For each entry it reports only the
// first type error. If a template has Jinja, such as {% endfor %} or s | upper, the message
// says where to read what to write. The engine does not read the file system afterwards.
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
	e.memory = opts.MaxMemory
	if e.memory <= 0 {
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
	seen := map[string]bool{} // reports an error in a shared file once
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

// functions adds the functions that every rewritten template calls.
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

// Uses returns the variables of [Options.Vars] that an entry may read, sorted. It counts
// the files that the entry renders, imports, extends or includes. The output of a render
// depends on these variables alone, if its functions depend on nothing else.
func (e *Engine) Uses(name string) []string {
	if en := e.entries[name]; en != nil {
		return slices.Clone(en.uses)
	}
	return nil
}

// Render renders one entry. vars must have a value for each variable of [Options.Vars], and
// no others.
//
// Render stops soon after ctx is done, also in an endless loop; the error then wraps the
// error of ctx. After a time-out Render runs the template again for at most half a second,
// to name the line of the loop. Every failure, a panic in a function included, is an *Error
// with the position. Render may run the template a second time to find the position. Output
// beyond [Options.MaxOutput], and memory beyond [Options.MaxMemory], is an *Error that
// wraps [ErrTooLarge].
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

// attempt is one try of render. others reports that a run exceeded a bound and its
// repetition did not: the process took the memory for something else.
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
