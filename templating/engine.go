package templating

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
	"github.com/hapticsdk/haptic/templating/internal/place"
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

	// MaxOutput bounds the output of one render, in bytes. Zero means
	// [DefaultMaxOutput].
	MaxOutput int

	// Debug is called with each value that a template gives to debug(...), while
	// it is rendered. Nil drops them. Renders run concurrently, and a render that
	// fails is run a second time.
	Debug func(at Origin, value any)
}

// Engine holds compiled templates. It is immutable and safe for concurrent
// use.
type Engine struct {
	src      *sources
	decl     *declared
	max      int
	debug    func(Origin, any)
	names    []string
	entries  map[string]*entry
	snippets []snippet // sorted by name
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
// the errors of types in one entry it has the first.
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
	e := &Engine{src: newSources(fsys), decl: decl, max: opts.MaxOutput, debug: opts.Debug, entries: map[string]*entry{}}
	if e.max <= 0 {
		e.max = DefaultMaxOutput
	}
	if err := e.findSnippets(); err != nil {
		return nil, err
	}
	e.names = slices.Sorted(slices.Values(opts.Entries))
	if len(e.names) == 0 {
		if e.names, err = e.src.entries(); err != nil {
			return nil, fmt.Errorf("templating: listing the templates: %w", err)
		}
	}
	e.names = slices.Compact(e.names)
	var errs []error
	seen := map[string]bool{} // an error in a shared file is reported once
	for _, name := range e.names {
		compiled, err := e.compile(name)
		if err != nil {
			for _, err := range e.src.buildErrors(name, err) {
				if !seen[err.Error()] {
					seen[err.Error()] = true
					errs = append(errs, err)
				}
			}
			continue
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
	t := newTransformer(e.src, name, e.decl)
	tpl, err := e.build(t, name, func(v any, id int) native.JSON { return t.sites[id].Escape(v) }, nil)
	if err != nil {
		return nil, err
	}
	en := &entry{name: name, template: tpl, sites: t.sites, assigns: t.assigns, shares: t.used[sharedName],
		traced: sync.OnceValues(func() (*tracedEntry, error) { return e.compileTraced(name) })}
	for name := range e.decl.vars {
		if t.used[name] || slices.Contains(tpl.UsedVars(), name) {
			en.uses = append(en.uses, name)
		}
	}
	slices.Sort(en.uses)
	return en, nil
}

// compiler is held while Scriggo compiles: version 0.60 keeps what it finds out
// about the predeclared constants, such as true, in variables of its own, so two
// engines that compile at once would race.
var compiler sync.Mutex

// build runs Scriggo's compiler with an escaper for the sites that t makes.
func (e *Engine) build(t *transformer, name string, escape func(v any, id int) native.JSON, more native.Declarations) (tpl *scriggo.Template, err error) {
	globals := maps.Clone(e.decl.globals)
	globals[escapeName] = escape
	globals[firstName] = firstEscaper(func(_ native.Env, v any, id int) native.JSON { return escape(v, id) })
	globals[bufferName] = func(env native.Env, v any, id int) native.JSON {
		text := escape(v, id)
		grow(env, len(text))
		return text
	}
	globals[enterName], globals[leaveName], globals[growName] = enter, leave, grow
	globals[functionName], globals[bindName], globals[debugName] = enterFunction, bindSnippet, debugAt(e.src, e.debug)
	maps.Copy(globals, more)
	defer func() {
		if v := recover(); v != nil { // the compiler panics on what it did not foresee
			tpl, err = nil, &Error{Entry: name, File: name, Message: fmt.Sprint(v)}
		}
	}()
	compiler.Lock()
	defer compiler.Unlock()
	return e.buildIncluding(t, name, &scriggo.BuildOptions{Globals: globals, TreeTransformer: t.transform})
}

// Entries returns the names of the compiled entries, sorted.
func (e *Engine) Entries() []string { return slices.Clone(e.names) }

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
// a second, so that the error names the line where it is. Whatever goes wrong in a template, a panic in
// one of its functions included, is an *Error with the position; to find it,
// the template may be run a second time. Output beyond [Options.MaxOutput] is
// an *Error that wraps [ErrTooLarge].
func (e *Engine) Render(ctx context.Context, name string, vars map[string]any) (string, error) {
	return e.render(ctx, name, vars, "")
}

// render renders an entry; item is the variable of [Engine.RenderEach].
func (e *Engine) render(ctx context.Context, name string, vars map[string]any, item string) (string, error) {
	en, values, err := e.prepare(ctx, name, vars)
	if err != nil {
		return "", err
	}
	out := &output{max: e.max}
	out.buf.Grow(int(en.size.Load()))
	err = e.decl.run(ctx, en.template, out, values)
	if err == nil {
		if f := out.check(name, en.sites); f != nil {
			err = errors.New(f.Message)
		}
	}
	if err != nil {
		return "", e.renderError(ctx, en, err, vars, item)
	}
	en.size.Store(int64(out.buf.Len()))
	return out.buf.String(), nil
}

// prepare finds an entry and checks the variables of a render.
func (e *Engine) prepare(ctx context.Context, name string, vars map[string]any) (*entry, map[string]any, error) {
	en := e.entries[name]
	if en == nil {
		return nil, nil, &Error{Entry: name, File: name, Err: fs.ErrNotExist,
			Message: "no such entry, there is " + strings.Join(e.names, ", ")}
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

// goPanic is a Go panic outside the template language: a nil pointer in a
// function of the host, for example. Scriggo does not say where.
type goPanic struct{ value any }

func (p *goPanic) Error() string {
	if err, ok := p.value.(error); ok {
		if _, ok := err.(runtime.Error); !ok {
			return message(err.Error())
		}
	}
	return fmt.Sprintf("panic: %v", p.value)
}

func (p *goPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// message takes away what Scriggo puts around a message once for each macro
// that it passes through.
func message(s string) string {
	const prefix = "fatal error: "
	for strings.HasPrefix(s, prefix) {
		s = strings.TrimPrefix(s, prefix)
	}
	return strings.TrimRight(s, "\n")
}

// run runs a template and turns every panic into an error.
func (d *declared) run(ctx context.Context, tpl *scriggo.Template, out *output, values map[string]any) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &goPanic{v}
		}
	}()
	return tpl.Run(out, values, &scriggo.RunOptions{Context: withState(withLimits(ctx, out), values), Print: func(any) {}})
}

// renderError gives the error of a render its position and its owners, and adds
// what is wrong where the render did not come to: it runs the template again,
// traced.
func (e *Engine) renderError(ctx context.Context, en *entry, err error, vars map[string]any, item string) error {
	if ctx.Err() != nil {
		return e.hanging(ctx, en, vars)
	}
	all := e.failures(ctx, en, vars, item)
	if len(all) == 0 { // it did not fail again
		all = refusals{e.unlocated(en, err)}
	}
	return all.err()
}

// unlocated is the error of a render of which nothing is known but what Scriggo
// says.
func (e *Engine) unlocated(en *entry, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var panicked *scriggo.PanicError
	if errors.As(err, &panicked) {
		if r, ok := panicked.Message().(*place.Refusal); ok {
			return e.src.at(en.name, r.Site.File, r.Site.Line, r.Site.Column, r.Message, nil)
		}
	}
	text, cause := explain(err)
	return &Error{Entry: en.name, File: en.name, Message: text, Err: cause}
}

// explain returns the message of a failed run and its cause. The position of a
// PanicError is that of the instruction behind, and of no use.
func explain(err error) (text string, cause error) {
	var panicked *scriggo.PanicError
	if !errors.As(err, &panicked) {
		return err.Error(), err
	}
	cause, _ = panicked.Message().(error)
	return message(panicked.String()), unwrapFailure(cause)
}

func unwrapFailure(err error) error {
	var f funcs.Failure
	if errors.As(err, &f) {
		return f.Err
	}
	return err
}

// Raw is text that is written as it is: what the function raw returns. A Go
// function may return it too, for text that it made safe itself.
type Raw = place.Raw

// firstEscaper is the escaper of what is a part of a first word: it notes where the
// value stands in the output.
func firstEscaper(escape func(env native.Env, v any, id int) native.JSON) any {
	return func(env native.Env, v any, id int) native.JSON {
		text := escape(env, v, id)
		_, raw := v.(Raw)
		_, macro := v.(native.JSON)
		if l, ok := env.Context().Value(limitsKey{}).(*limits); ok && !raw && text != "" {
			at := l.out.buf.Len()
			l.out.marks = append(l.out.marks, place.Mark{At: at, End: at + len(text), Site: id, Macro: macro})
		}
		return text
	}
}

func (o *output) check(entry string, sites []place.Site) *place.Fault {
	return place.Check(place.KindOf(entry), o.buf.String(), o.marks, sites)
}

// output is the bounded buffer of a render.
type output struct {
	buf   strings.Builder
	max   int
	marks []place.Mark
}

func (o *output) fits(n int) error {
	if o.buf.Len()+n > o.max {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, o.max)
	}
	return nil
}

func (o *output) Write(b []byte) (int, error) {
	if err := o.fits(len(b)); err != nil {
		return 0, err
	}
	return o.buf.Write(b)
}

func (o *output) WriteString(s string) (int, error) {
	if err := o.fits(len(s)); err != nil {
		return 0, err
	}
	return o.buf.WriteString(s)
}

// declared is what templates see by name.
type declared struct {
	globals native.Declarations
	vars    map[string]reflect.Type
	fixed   map[string]reflect.Value // globals that are variables to Scriggo
	owner   bool                     // the function owner is the standard one

	variadic func() map[string]variadicMethod
}
