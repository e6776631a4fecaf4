package templating

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
	"github.com/hapticsdk/haptic/templating/internal/origin"
	"github.com/hapticsdk/haptic/templating/internal/place"
	"github.com/hapticsdk/haptic/templating/internal/rewrite"
)

// run is what one run of a template remembers, and what it has used of its bounds.
type run struct {
	out      strings.Builder
	max      int
	depth    int   // of macros
	lines    int   // of out
	full     error // why out takes no more
	buffered int   // bytes that macros wrote
	marks    []place.Mark
	marked   int // where the last mark is
	inLine   int // marks in its line
	kind     place.Kind

	seen     map[string]bool // by first_seen
	snippets map[string]func() native.JSON
	begin    map[string]bool // snippets whose text begins with a value
	chain    []string        // snippets that are being rendered
	data     *any            // the variable data; nil when the host has one of this name
	computes []string        // keys of shared values, the outermost first
}

type runKey struct{}

func runOf(env native.Env) *run {
	r, ok := env.Context().Value(runKey{}).(*run)
	if !ok {
		funcs.Failf("not inside a render")
	}
	return r
}

// run runs a template and turns every panic into an error. The run has the output up
// to there.
func (e *Engine) run(ctx context.Context, kind place.Kind, tpl *scriggo.Template, values map[string]any, size int) (r *run, err error) {
	r = &run{max: e.max, kind: kind}
	r.out.Grow(size)
	r.data, _ = values[dataName].(*any)
	if shared, ok := values[sharedName].(**Shared); ok {
		*shared = sharedOf(ctx)
	}
	ctx, end := watch(ctx, e.memory)
	defer func() {
		if v := recover(); v != nil {
			err = funcs.Recovered(v)
		}
		if why := context.Cause(ctx); errors.Is(why, ErrTooLarge) {
			err = funcs.Failure{Err: why}
			runtime.GC() // the run that finds the line begins without the garbage of this one
		}
		end()
	}()
	return r, tpl.Run(r, values, &scriggo.RunOptions{Context: context.WithValue(ctx, runKey{}, r), Print: func(any) {}})
}

var _ io.StringWriter = (*run)(nil)

// lineCost is how many bytes of output a line counts at least: what is remembered of
// a line takes as many, and the time to write it does not go by its length.
const lineCost = 64

func (r *run) fits(n, lines int) error {
	most := max(r.max/lineCost, 1000)
	if r.lines += lines; r.out.Len()+n > r.max {
		r.full = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.max)
	} else if r.lines > most {
		r.full = fmt.Errorf("%w: more than %d lines", ErrTooLarge, most)
	}
	return r.full
}

func (r *run) Write(b []byte) (int, error) {
	if err := r.fits(len(b), bytes.Count(b, []byte{'\n'})); err != nil {
		return 0, err
	}
	return r.out.Write(b)
}

func (r *run) WriteString(s string) (int, error) {
	if err := r.fits(len(s), strings.Count(s, "\n")); err != nil {
		return 0, err
	}
	return r.out.WriteString(s)
}

// check finds what HAProxy would read otherwise than the template says.
func (r *run) check(sites []place.Site) *place.Fault {
	return place.Check(r.kind, r.out.String(), r.marks, sites)
}

// escapers are the functions of the sites of a template: escape returns the text of
// a shown value.
func escapers(escape func(env native.Env, v any, id int) native.JSON) native.Declarations {
	return native.Declarations{
		rewrite.Escape: escape,
		rewrite.First: func(env native.Env, v any, id int) native.JSON {
			text := escape(env, v, id)
			_, raw := v.(Raw)
			_, macro := v.(native.JSON)
			if r := runOf(env); !raw && text != "" {
				r.mark(place.Mark{At: r.out.Len(), End: r.out.Len() + len(text), Site: id, Macro: macro})
			}
			return text
		},
		rewrite.Buffered: func(env native.Env, v any, id int) native.JSON {
			text := escape(env, v, id)
			runOf(env).grow(env, len(text))
			return text
		},
	}
}

// maxMarks is how many marks of one line are kept: the first word has the first of
// them, and each is checked with all of its line.
const maxMarks = 8

func (r *run) mark(m place.Mark) {
	if strings.ContainsAny(r.out.String()[r.marked:m.At], "\n"+place.EndOfItem) {
		r.inLine = 0
	}
	r.marked = m.At
	if r.inLine++; r.inLine <= maxMarks {
		r.marks = append(r.marks, m)
	}
}

// maxBuffered is how many times [Options.MaxOutput] all macros of a render may write
// together. It is more than one since a macro's text that another
// macro shows counts again.
const maxBuffered = 8

func (r *run) grow(env native.Env, size int) {
	if r.buffered += size; r.buffered/maxBuffered > r.max {
		failBound(env, "macros wrote more than %d times %d bytes", maxBuffered, r.max)
	}
}

// maxDepth is how deep macros and functions of templates may call each other.
// Scriggo has no bound of its own, and a Go stack that overflows ends the
// whole process.
const maxDepth = 256

// enter and leave are called at the start and at the end of every macro.
func enter(env native.Env) {
	r := runOf(env)
	if r.depth++; r.depth > maxDepth {
		failBound(env, "macros call each other more than %d deep", maxDepth)
	}
}

func leave(env native.Env) { runOf(env).depth-- }

// enterFunction is called at the start of every function literal, which has no leave
// at its end: it asks the Go stack.
func enterFunction(env native.Env) {
	const framesOfACall = 8 // at least
	var pc [1]uintptr
	if runtime.Callers(maxDepth*framesOfACall, pc[:]) > 0 {
		failBound(env, "functions call each other more than %d deep", maxDepth)
	}
}

// failBound stops the render with an error that wraps ErrTooLarge. The recorder
// keeps it, if there is one: Scriggo may keep its text alone.
func failBound(env native.Env, format string, args ...any) {
	err := funcs.Failure{Err: fmt.Errorf("%w: "+format, append([]any{ErrTooLarge}, args...)...)}
	origin.Of(env).Note(err)
	panic(err)
}

// firstSeen reports whether this is the first call with these values in this
// render of an entry.
func firstSeen(env native.Env, parts ...any) bool {
	r := runOf(env)
	var key strings.Builder
	for i, part := range parts {
		text, err := place.Text(part)
		if err != nil {
			funcs.Failf("first_seen: argument %d: %w", i+1, err)
		}
		fmt.Fprintf(&key, "%d:%s", len(text), text) // "a","bc" is not "ab","c"
	}
	if r.seen[key.String()] {
		return false
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[key.String()] = true
	return true
}
