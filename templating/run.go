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

// run is the state of one run of a template, and how much of its bounds it has used.
type run struct {
	out      strings.Builder
	max      int
	depth    int   // of macros
	lines    int   // of out
	full     error // the exceeded bound of out
	buffered int   // bytes that macros wrote
	marks    []place.Mark
	marked   int // the position of the last mark
	inLine   int // marks in its line
	kind     place.Kind

	seen     map[string]bool // by first_seen
	snippets map[string]func() native.JSON
	begin    map[string]bool // snippets whose text begins with a value
	chain    []string        // snippets in progress, the outermost first
	data     *any            // the variable data; nil if the host has one of this name
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

// run runs a template and turns every panic into an error. r then has the output so far.
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

// lineCost is the least number of bytes that a line counts for. The notes about a line take
// as many, and a short line takes as long to write as a long one.
const lineCost = 64

func (r *run) fits(n, lines int) error {
	most := max(r.max/lineCost, 1000)
	r.lines += lines
	if r.out.Len()+n > r.max {
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

// check finds text that HAProxy would read differently from the template.
func (r *run) check(sites []place.Site) *place.Fault {
	return place.Check(r.kind, r.out.String(), r.marks, sites)
}

// escapers returns the functions that sites of a template call. escape returns the text of
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

// maxMarks bounds the marks of one line. The first marks belong to the first word, and the
// check of each reads its whole line.
const maxMarks = 8

func (r *run) mark(m place.Mark) {
	if strings.ContainsAny(r.out.String()[r.marked:m.At], "\n"+place.EndOfItem) {
		r.inLine = 0
	}
	r.marked = m.At
	r.inLine++
	if r.inLine <= maxMarks {
		r.marks = append(r.marks, m)
	}
}

// maxBuffered bounds the text of all macros of a render together, as a multiple of
// [Options.MaxOutput]. It is above one because text that another macro shows counts again.
const maxBuffered = 8

func (r *run) grow(env native.Env, size int) {
	r.buffered += size
	if r.buffered/maxBuffered > r.max {
		failBound(env, "macros wrote more than %d times %d bytes", maxBuffered, r.max)
	}
}

// maxDepth bounds how deep macros and functions of templates may call each other. Scriggo
// has no such bound, and a Go stack that overflows ends the whole process.
const maxDepth = 256

// enter counts a call. Every macro calls enter at its start and leave at its end.
func enter(env native.Env) {
	r := runOf(env)
	r.depth++
	if r.depth > maxDepth {
		failBound(env, "macros call each other more than %d deep", maxDepth)
	}
}

func leave(env native.Env) { runOf(env).depth-- }

// enterFunction measures the Go stack, because a function literal has no leave at its end.
// Every function literal calls it at its start.
func enterFunction(env native.Env) {
	const framesOfACall = 8 // at least
	var pc [1]uintptr
	if runtime.Callers(maxDepth*framesOfACall, pc[:]) > 0 {
		failBound(env, "functions call each other more than %d deep", maxDepth)
	}
}

// failBound stops the render with an error that wraps ErrTooLarge. The recorder, if any,
// keeps the error, because Scriggo may keep only its text.
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
