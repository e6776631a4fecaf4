package templating

import (
	"bytes"
	"context"
	"strings"
)

// Owned is what says itself to whom it belongs: a value that the host made of
// one or more Kubernetes objects, and that a template loops over.
type Owned interface {
	// Owners returns those objects, the most important last.
	Owners() []any
}

// Origin says what wrote a line of an output.
type Origin struct {
	File   string // template, as its author wrote it
	Line   int    // from 1
	Column int    // in characters, from 1
	Text   string // that line of the template
	// Owners are the objects that were being rendered, the innermost last:
	// arguments of owner(...), loop variables and items that are Kubernetes
	// objects (they have GetNamespace and GetName, or are a map with apiVersion,
	// kind and metadata) or that are [Owned].
	Owners []any
}

// Traced is a render that knows what wrote each line.
type Traced struct {
	// Text is what the render made, up to where it failed.
	Text string
	// Refused has every value that the escaper refused, and every function that
	// failed in a loop over objects, with position and owners; nothing was written
	// in their place.
	Refused []*Error
	lines   []Origin // by line of Text
}

// Origin says what wrote a line of Text, counted from 1. The zero Origin is for
// lines that are not there.
func (t *Traced) Origin(line int) Origin {
	if line < 1 || line > len(t.lines) {
		return Origin{}
	}
	return t.lines[line-1]
}

// RenderTraced renders an entry as [Engine.Render] does, and notes what wrote
// each line. It goes on after a value that the escaper refuses and, for an
// object of a loop, after a function that fails, so that one call finds all of
// them, up to 1000: these are in Refused, not in the error, which is for what
// ends a render. The result is never nil; with an error it
// has what was found before. It is several times slower than Render, and meant
// for when something is wrong.
//
// For one item of [Engine.RenderEach], set its variable in vars: variables that
// are Kubernetes objects, or [Owned], are the outermost owners.
//
// The line of a macro is that in the macro. Where a template puts texts of
// macros together, or indents them, a line of which the same was written more
// than once may have the owners of another one.
func (e *Engine) RenderTraced(ctx context.Context, name string, vars map[string]any) (*Traced, error) {
	en, values, err := e.prepare(ctx, name, vars)
	if err != nil {
		return &Traced{}, err
	}
	_, t, err := e.tracedRun(ctx, en, values, "", nil)
	return t, err
}

// tracedRun runs an entry traced, without the elements of loops that belong to whom
// left names; see [held.innermost]. Its error is an *Error with position and owners.
func (e *Engine) tracedRun(ctx context.Context, en *entry, values map[string]any, item string, left map[string]bool) (*recorder, *Traced, error) {
	r, out, err := e.rerun(ctx, en, values, item, left)
	if r == nil {
		return nil, &Traced{}, e.unlocated(en, err)
	}
	t := &Traced{Text: out.buf.String(), Refused: r.refused, lines: r.lines(out.buf.String())}
	switch {
	case ctx.Err() != nil:
		return r, t, stopped(en.name, ctx.Err())
	case err != nil:
		message, cause := r.explain(err)
		at := r.spot()
		if at.file == "" {
			return r, t, e.unlocated(en, err)
		}
		located := e.src.at(en.name, at.file, at.line, at.column, message, cause)
		located.Owners = r.owners.list()
		return r, t, located
	}
	return r, t, t.check(en, out)
}

// check finds what is wrong with the output, and who wrote it.
func (t *Traced) check(en *entry, out *output) error {
	f := out.check(en.name, en.sites)
	if f == nil {
		return nil
	}
	o := t.Origin(f.Line)
	return &Error{Entry: en.name, File: o.File, Line: o.Line, Column: o.Column, Text: o.Text, Message: f.Message, Owners: o.Owners}
}

// lines makes the source map of the output. It knows nothing when the output is
// not what the recorder saw: no origin is better than a wrong one.
func (r *recorder) lines(text string) []Origin {
	w := r.root().out
	if !bytes.HasPrefix(w.text, []byte(text)) {
		return nil
	}
	m := origins{src: r.src, places: map[spotAt]Origin{}, owners: map[*held][]any{}}
	lines := make([]Origin, 0, strings.Count(text, "\n")+1)
	at, i := 0, 0
	for line := range strings.Lines(text) {
		first := at
		if key := strings.TrimLeft(line, " \t\r\n"); key != "" {
			first += len(line) - len(key)
		}
		for i+1 < len(w.pieces) && w.pieces[i+1].at <= first {
			i++
		}
		if len(w.pieces) > 0 {
			lines = append(lines, m.origin(w.pieces[i], first))
		}
		at += len(line)
	}
	return lines
}

func (r *recorder) root() *frame {
	f := r.top
	for f.outer != nil {
		f = f.outer
	}
	return f
}

// origins makes each origin once.
type origins struct {
	src    *sources
	places map[spotAt]Origin
	owners map[*held][]any
}

type spotAt struct {
	from *spot
	off  int
}

// origin is that of a byte of a text, in the piece that it belongs to.
func (m *origins) origin(p piece, at int) Origin {
	if p.from == nil {
		return Origin{}
	}
	key := spotAt{from: p.from}
	if p.from.start >= 0 {
		key.off = min(p.off+at-p.at, len(p.from.text))
	}
	o, ok := m.places[key]
	if !ok {
		o = Origin{File: p.from.file, Line: p.from.line, Column: p.from.column}
		if p.from.start >= 0 {
			o.Line, o.Column = m.src.position(o.File, p.from.start+key.off)
		}
		o.Text = m.src.line(o.File, o.Line)
		m.places[key] = o
	}
	if _, ok := m.owners[p.owners]; !ok {
		m.owners[p.owners] = p.owners.list()
	}
	o.Owners = m.owners[p.owners]
	return o
}
