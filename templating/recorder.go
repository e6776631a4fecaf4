package templating

import (
	"context"
	"errors"
	"sort"
	"strings"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
	"github.com/hapticsdk/haptic/templating/internal/place"
)

// A traced template calls the recorder before each statement, at the start and
// the end of each macro, and for each shown value. So the recorder knows what
// is written, and by whom, without being in the text itself: comparisons, len
// and whatever else a template does with the text of a macro see what they see
// in a normal render.

// spot is a place in a template: a statement, or a shown value.
type spot struct {
	file         string
	line, column int
	level        int    // how many loops are around it in its macro or file
	text         string // what a text writes
	start        int    // of that text in its file, in bytes; -1 where it is not to be found
	turn         bool   // the start of a turn of a loop
}

// piece is a part of a text, up to the next one, and what wrote it.
type piece struct {
	at     int // where it begins
	from   *spot
	off    int // bytes of from.text that stand before it
	owners *held
}

// written is a text and what wrote it: that of the whole render, or of one call
// of a macro.
type written struct {
	text   []byte
	pieces []piece
	owners *held // of the call
	shown  bool
	lacks  bool  // a value that was refused
	starts []int // of its lines that are not blank; see texts
}

// pieceAt returns the piece that a byte belongs to.
func (w *written) pieceAt(at int) piece {
	i := sort.Search(len(w.pieces), func(i int) bool { return w.pieces[i].at > at })
	if i == 0 {
		return piece{at: at}
	}
	return w.pieces[i-1]
}

// frame is a call of a macro, a rendered file, or the entry itself.
type frame struct {
	outer *frame
	id    int      // of the statement that began it
	out   *written // what it writes to; a rendered file has that of the frame around it
	base  *held    // the owners at its start
	mark  int      // the statement that called it
	since int      // len(recorder.made) when its current statement began
}

// recorder follows one traced render, in the goroutine that runs it.
type recorder struct {
	src    *sources
	entry  string
	spots  []spot // by mark
	values []spot // by the number of a shown value
	mark   int    // the statement that began last; -1 before the first
	top    *frame
	owners *held
	texts
	refused  []*Error
	refusals int // in all, those seen before included
	seen     map[refusedAt]bool
	left     map[string]bool // owners of what is left out, because it failed
	cause    error           // of the last function that failed
}

// note remembers why a function failed. Of what fails in a function or macro of a
// template that Go calls, Scriggo keeps the text alone.
func (r *recorder) note(v any) {
	if f, ok := v.(funcs.Failure); ok && r != nil {
		r.cause = f
	}
}

// explain is [explain] with the cause that Scriggo lost.
func (r *recorder) explain(err error) (text string, cause error) {
	text, cause = explain(err)
	if lost := unwrapFailure(r.cause); lost != nil && !errors.Is(cause, lost) && strings.HasSuffix(strings.TrimRight(text, "\n"), lost.Error()) {
		cause = lost
	}
	return text, cause
}

// refusedAt tells a refused value from the same one in the next turn of a loop.
type refusedAt struct {
	id      int
	owners  *held
	message string
}

// maxRefused bounds what one render remembers of refused values.
const maxRefused = 1000

// maxRefusals is how many values one render may have refused in all, those that
// it has seen before included: where nothing is written, the bound of the output
// ends no loop.
const maxRefusals = 1 << 16

func newRecorder(src *sources, traced *tracedEntry) *recorder {
	return &recorder{src: src, entry: traced.name, spots: traced.spots, values: traced.values, mark: -1,
		top: &frame{id: -1, mark: -1, out: &written{}}, seen: map[refusedAt]bool{}, left: map[string]bool{}}
}

// recorderKey finds the recorder of a traced render in its context.
type recorderKey struct{}

func recorderOf(env native.Env) *recorder {
	r, _ := env.Context().Value(recorderKey{}).(*recorder)
	return r
}

func withRecorder(ctx context.Context, r *recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// spot returns the statement that began last.
func (r *recorder) spot() *spot {
	if r.mark < 0 { // a render begins with what is imported
		return &spot{start: -1}
	}
	return &r.spots[r.mark]
}

// trace is called before each statement of a traced template.
func trace(env native.Env, mark int) {
	r := recorderOf(env)
	if r == nil {
		return
	}
	r.mark = mark
	s := &r.spots[mark]
	r.top.since = len(r.made)
	if s.turn {
		r.drop(s.level)
		return
	}
	r.drop(s.level + 1)
	if s.text != "" {
		r.write(s.text, s)
	}
}

// drop takes away the owners of blocks that have ended: of this level and of
// those within.
func (r *recorder) drop(level int) {
	for r.owners != r.top.base && r.owners.level >= level {
		r.owners = r.owners.outer
	}
}

func (r *recorder) hold(level int, element bool, objects []any) {
	if len(objects) > 0 {
		r.owners = &held{outer: r.owners, level: level, element: element, objects: objects}
	}
}

func (r *recorder) write(text string, from *spot) {
	if text == "" {
		return
	}
	w := r.top.out
	w.pieces = append(w.pieces, piece{at: len(w.text), from: from, owners: r.owners})
	w.text = append(w.text, text...)
}

// begin is called at the start of what writes to a text of its own, begin file
// at that of a rendered file. The number tells it from what is around it.
func begin(env native.Env, id int) {
	if r := recorderOf(env); r != nil {
		r.push(id, &written{owners: r.owners})
	}
}

func beginFile(env native.Env, id int) {
	if r := recorderOf(env); r != nil {
		r.push(id, r.top.out)
	}
}

func (r *recorder) push(id int, out *written) {
	r.top = &frame{outer: r.top, id: id, out: out, base: r.owners, mark: r.mark, since: len(r.made)}
}

// end ends what begin began, and whatever was left without it: where a template
// recovers from a panic.
func end(env native.Env, id int) {
	if r := recorderOf(env); r != nil {
		r.pop(id)
	}
}

func (r *recorder) pop(id int) {
	for r.top.outer != nil {
		f := r.top
		r.top, r.owners, r.mark = f.outer, f.base, f.mark
		if f.out != r.top.out {
			r.keep(f.out)
		}
		if f.id == id {
			return
		}
	}
}

// beginText and endText stand around a rendered file whose text is not written
// where it stands: endText(beginText(1), render "x").
func beginText(env native.Env, id int) int {
	begin(env, id)
	return id
}

func endText(env native.Env, id int, text native.JSON) native.JSON {
	end(env, id)
	return text
}

// show notes the text of a shown value, and passes it on.
func (r *recorder) show(v any, text native.JSON, id int) {
	from, at := &r.values[id], r.shownAt()
	switch v := v.(type) {
	case native.JSON:
		if v == text {
			r.embed(r.find(string(v), at), from)
			return
		}
	case Raw:
		if w, all := r.align(string(v), at); all {
			r.embed(w, from)
			return
		}
	}
	r.write(string(text), from)
}

func (r *recorder) shownAt() shownAt { return shownAt{r.top.since, r.owners} }

// embed writes a text with all that is known of it.
func (r *recorder) embed(w *written, from *spot) {
	out := r.top.out
	out.lacks = out.lacks || w.lacks
	at := len(out.text)
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
	out.text = append(out.text, w.text...)
}

// refuse notes a refused value; nothing is written for it.
func (r *recorder) refuse(refused *place.Refusal, id int) {
	r.top.out.lacks = true
	if r.refusals++; r.refusals > maxRefusals {
		funcs.Failf("more than %d values are refused", maxRefusals)
	}
	at := refusedAt{id, r.owners, refused.Message}
	if len(r.refused) >= maxRefused || r.seen[at] || len(r.left) > 0 && r.left[r.owners.innermost()] {
		return
	}
	r.seen[at] = true
	e := r.src.at(r.entry, refused.Site.File, refused.Site.Line, refused.Site.Column, refused.Message, nil)
	e.Owners = r.owners.list()
	r.refused = append(r.refused, e)
}
