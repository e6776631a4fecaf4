// Package origin finds the origin of each line of an output: the line of a template, and
// its objects.
//
// A traced template calls the recorder before each statement, at the start and the end of
// each macro, and for each shown value. The recorder adds no marks to the text.
// Comparisons, len and all other uses of a macro's text work as in a normal render.
package origin

import (
	"context"
	"strings"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
)

// Spot is a place in a template: a statement, or a shown value.
type Spot struct {
	File         string
	Line, Column int
	Level        int    // how many loops are around it in its macro or file
	Text         string // the text of a text statement
	Start        int    // of that text in its file, in bytes; -1 if unknown
	Turn         bool   // the start of a turn of a loop
}

// Files has the texts of templates.
type Files interface {
	Position(file string, start int) (line, column int)
	Line(file string, line int) string
}

// Problem is an error at a spot.
type Problem struct {
	File         string
	Line, Column int
	Message      string
	Err          error
	Owners       []any
}

func (p *Problem) Error() string { return p.Message }

// piece is a part of a text, up to the next piece, and its origin.
type piece struct {
	at     int // where it begins
	from   *Spot
	off    int // bytes of from.Text before it
	owners *held
}

// written is a text and its origins: the text of the whole render, or of one call of a
// macro.
type written struct {
	text   []byte
	pieces []piece
	owners *held // of the call
	shown  bool
	lacks  bool   // the text of a refused value
	begun  bool   // its last line is not blank
	starts []int  // of its lines that are not blank; see texts
	uses   []used // in the order of their starts
	reach  []int  // for each use, the farthest end of the uses up to it
	line   int    // the start of the last line
	sought int    // the end of the search for line feeds so far
}

// add writes a text, and reports whether a line begins in it: only then the recorder keeps
// its origin. The origins of all other short texts would take most of the memory.
func (w *written) add(text string) (begins bool) {
	feed := strings.LastIndexByte(text, '\n')
	begins = !w.begun || feed >= 0
	w.begun = w.begun && feed < 0 || strings.TrimSpace(text[feed+1:]) != ""
	w.text = append(w.text, text...)
	return begins
}

// frame is a call of a macro, a rendered file, or the entry itself.
type frame struct {
	outer *frame
	id    int      // the number of the statement that began it
	out   *written // its output; a rendered file shares that of the frame around it
	base  *held    // the owners at its start
	mark  int      // the statement that called it
	since int      // len(recorder.made) when its current statement began
	uses  []any    // of the statement that called it
}

// Recorder follows one traced render, in the goroutine that runs it.
type Recorder struct {
	files    Files
	spots    []Spot // by mark
	values   []Spot // by the number of a shown value
	mark     int    // the statement that began last; -1 before the first
	top      *frame
	owners   *held
	uses     []any            // the objects behind the statement
	madeOf   map[string][]any // by variable
	texts    texts
	refused  []Problem
	refusals int // in all, with repetitions
	seen     map[refusedAt]bool
	left     map[string]bool // owners that failed; the render skips them
	turns    map[string]bool // innermost owners of the turns of loops
	cause    error           // of the last function that failed
}

// refusedAt distinguishes a refused value from the same value in the next turn of a loop.
type refusedAt struct {
	id      int
	owners  *held
	message string
}

const (
	// MaxRefused bounds how many refused values one render remembers.
	MaxRefused = 1000
	// maxRefusals bounds the refusals of one render, with repetitions. A loop of refused
	// values writes nothing, and the bound of the output does not end it.
	maxRefusals = 1 << 16
)

// NewRecorder returns a recorder for one render. The render skips elements of loops whose
// owner is named in left. The objects of owners are the outermost owners.
func NewRecorder(files Files, spots, values []Spot, left map[string]bool, owners []any) *Recorder {
	r := &Recorder{files: files, spots: spots, values: values, mark: -1, seen: map[refusedAt]bool{}, left: map[string]bool{}, turns: map[string]bool{}}
	for who := range left {
		r.left[who] = true
	}
	for _, v := range owners {
		r.hold(0, true, ObjectsOf(v))
	}
	r.top = &frame{id: -1, mark: -1, out: &written{}, base: r.owners}
	return r
}

type recorderKey struct{}

// With returns the context of a render that the recorder follows.
func (r *Recorder) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// Of returns the recorder of a render, or nil.
func Of(env native.Env) *Recorder {
	r, _ := env.Context().Value(recorderKey{}).(*Recorder)
	return r
}

// Names that no template can spell, of the functions that a traced template calls.
const (
	Trace     = "trace "
	Element   = "element "
	Begin     = "begin "
	BeginFile = "begin file "
	End       = "end "
	BeginText = "begin text "
	EndText   = "end text "
	Uses      = "uses "  // (names, values of variables): the variables behind the statement
	Gives     = "gives " // (name): the variable holds the result
)

// Functions returns these functions. Begin starts a text of its own, such as a macro's, and
// BeginFile a rendered file; a number pairs each with its End. BeginText and EndText
// surround a rendered file that is a value: EndText(BeginText(1), render "x").
func Functions() native.Declarations {
	begin := func(env native.Env, id int) int {
		r := Of(env)
		r.push(id, &written{owners: r.owners})
		return id
	}
	return native.Declarations{
		Uses:      func(env native.Env, names string, values ...any) { Of(env).use(names, values) },
		Gives:     func(env native.Env, name string) { Of(env).give(name) },
		Trace:     func(env native.Env, mark int) { Of(env).trace(mark) },
		Element:   func(env native.Env, v any) bool { return Of(env).element(v) },
		Begin:     func(env native.Env, id int) { begin(env, id) },
		BeginFile: func(env native.Env, id int) { r := Of(env); r.push(id, r.top.out) },
		End:       func(env native.Env, id int) { Of(env).pop(id) },
		BeginText: begin,
		EndText: func(env native.Env, id int, text native.JSON) native.JSON {
			Of(env).pop(id)
			return text
		},
	}
}

// spot returns the statement that began last.
func (r *Recorder) spot() *Spot {
	if r.mark < 0 { // imported files run before the first statement
		return &Spot{Start: -1}
	}
	return &r.spots[r.mark]
}

// trace notes the start of a statement.
func (r *Recorder) trace(mark int) {
	r.mark, r.uses = mark, nil
	s := &r.spots[mark]
	r.top.since = len(r.texts.made)
	if s.Turn {
		r.drop(s.Level)
		return
	}
	r.drop(s.Level + 1)
	r.write(s.Text, s)
}

func (r *Recorder) write(text string, from *Spot) {
	if text != "" {
		w := r.top.out
		if at := len(w.text); w.add(text) {
			w.pieces = append(w.pieces, piece{at: at, from: from, owners: r.owners})
		}
	}
}

func (r *Recorder) push(id int, out *written) {
	r.top = &frame{outer: r.top, id: id, out: out, base: r.owners, mark: r.mark, since: len(r.texts.made), uses: r.uses}
}

// pop ends the frame of a push, and frames above it without a pop: the template recovered
// from a panic.
func (r *Recorder) pop(id int) {
	for r.top.outer != nil {
		f := r.top
		r.top, r.owners, r.mark, r.uses = f.outer, f.base, f.mark, f.uses
		if f.out != r.top.out {
			r.texts.keep(f.out)
		}
		if f.id == id {
			return
		}
	}
}

// Show notes the text of a shown value.
func (r *Recorder) Show(v any, text native.JSON, raw bool, id int) {
	from, at := &r.values[id], len(r.top.out.text)
	if macro, ok := v.(native.JSON); ok && macro == text {
		r.embed(r.texts.find(string(text), r.shownAt()), from)
		return
	}
	if raw {
		if w, all := r.texts.align(string(text), r.shownAt()); all {
			r.embed(w, from)
			return
		}
	}
	r.write(string(text), from)
	r.top.out.made(at, r.innermost(), r.owners.last())
}

func (r *Recorder) shownAt() shownAt { return shownAt{r.top.since, r.owners} }

// embed writes a text with its origins and uses.
func (r *Recorder) embed(w *written, from *Spot) {
	out := r.top.out
	out.lacks = out.lacks || w.lacks
	at := len(out.text)
	begins := out.add(string(w.text))
	if uses := r.near(); len(uses) > 0 {
		out.uses = append(out.uses, used{at, len(out.text), uses, true})
	}
	out.uses = append(out.uses, w.usesOf(0, len(w.text), at)...)
	if !begins {
		return
	}
	for _, p := range w.pieces {
		p.at += at
		if p.from == nil {
			p.from, p.off = from, 0
		}
		if p.owners == nil {
			p.owners = r.owners
		}
		out.pieces = append(out.pieces, p)
	}
}

// Refuse notes a refused value.
func (r *Recorder) Refuse(v any, message string, id int) {
	if macro, ok := v.(native.JSON); ok && r.texts.find(string(macro), r.shownAt()).lacks {
		return // its only fault is the refused value that it lacks
	}
	r.top.out.lacks = true
	r.refusals++
	if r.refusals > maxRefusals {
		funcs.Failf("more than %d values are refused", maxRefusals)
	}
	at := refusedAt{id, r.owners, message}
	if len(r.refused) >= MaxRefused || r.seen[at] || len(r.left) > 0 && r.left[r.owners.innermost()] {
		return
	}
	r.seen[at] = true
	r.refused = append(r.refused, r.problem(&r.values[id], message, nil))
}

func (r *Recorder) problem(at *Spot, message string, cause error) Problem {
	return Problem{File: at.File, Line: at.Line, Column: at.Column, Message: message, Err: cause, Owners: last(r.owners.list(), r.innermost())}
}
