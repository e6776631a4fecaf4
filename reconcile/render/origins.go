package render

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// Error is a failed render. The loop finds the template lines and the resources in it.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error of the engine, or several joined.
func (e *Error) Unwrap() error { return e.Err }

// Origins yields the origin and the message of each failure of a template.
func (e *Error) Origins() iter.Seq2[reconcile.Origin, string] {
	return func(yield func(reconcile.Origin, string) bool) {
		for _, t := range templating.Errors(e.Err) {
			if !yield(originOf(t.File, t.Line, t.Column, t.Text, t.Owners), t.Message) {
				return
			}
		}
	}
}

// located adds the template lines to an error about the text that they wrote. It returns any
// other error unchanged, such as that of a template.
func located(ctx context.Context, made *reconcile.Rendered, err error) error {
	var refused interface {
		Positions() iter.Seq2[dataplane.Position, string]
	}
	if made == nil || !errors.As(err, &refused) {
		return err
	}
	var all []error
	for at, message := range refused.Positions() {
		o, _ := made.Origins.Origin(ctx, at) // the message counts without an origin, too
		file := cmp.Or(o.File, MainEntry)
		all = append(all, &templating.Error{Entry: file, File: file, Line: o.Line, Column: o.Column, Text: o.Text, Message: message, Err: err, Owners: o.Owners})
	}
	return joined(all)
}

// origins are the [reconcile.Origins] of a render. They keep only what the render made
// anyway. To find what wrote a line, they render it again.
type origins struct {
	run   *run
	main  []piece                      // in their order
	moved map[dataplane.Position][]int // see squeeze; by file, the zero position for haproxy.cfg
	files map[dataplane.Position]piece // made by templates, by kind and name

	mu     sync.Mutex
	traced map[textOf]*templating.Traced
	spans  map[dataplane.Position][]span // by file, the zero position for haproxy.cfg
}

// span is the text of one item in a file.
type span struct {
	before int // lines of the file that come before it
	piece  *piece
	item   any
	text   *text
}

// Origin finds the entry and the item whose text has the line, and renders only that text
// once more.
func (o *origins) Origin(ctx context.Context, at dataplane.Position) (reconcile.Origin, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	file, pieces := dataplane.Position{Kind: at.Kind, Name: at.Name}, o.main
	if at.Name != "" {
		p, ok := o.files[file]
		if !ok {
			if origin := o.run.registry.origin(at.Kind, at.Name); origin.File != "" {
				return origin, nil
			}
			return reconcile.Origin{Owners: o.run.in.Owners[file]}, nil
		}
		pieces = []piece{p}
	}
	if moved := o.moved[file]; at.Line >= 1 && at.Line <= len(moved) {
		at.Line = moved[at.Line-1]
	}
	spans, ok := o.spans[file]
	if !ok {
		spans = spansOf(pieces)
		if o.spans == nil {
			o.spans = map[dataplane.Position][]span{}
		}
		o.spans[file] = spans
	}
	s, ok := spanOf(spans, at.Line)
	switch {
	case ok:
		return o.inSpan(ctx, s, at.Line-s.before)
	case at.Name != "":
		return unknown(pieces[0].entry), nil
	}
	return reconcile.Origin{}, nil
}

func originOf(file string, line, column int, text string, owners []any) reconcile.Origin {
	return reconcile.Origin{TemplateLine: reconcile.TemplateLine{File: file, Line: line, Column: column, Text: text}, Owners: owners}
}

// unknown is an origin of which only the entry is known.
func unknown(entry string) reconcile.Origin { return originOf(entry, 0, 0, "", nil) }

// spansOf returns the texts of pieces, one behind the other as [partsOf] puts them. The last
// span has no text, and marks the end.
func spansOf(pieces []piece) []span {
	var spans []span
	n := 0
	for i := range pieces {
		p := &pieces[i]
		for item, t := range p.all() {
			spans = append(spans, span{n, p, item, t})
			n += strings.Count(t.string, "\n")
			if t.string != "" && !strings.HasSuffix(t.string, "\n") {
				n++
			}
		}
	}
	return append(spans, span{before: n})
}

// spanOf returns the span of a line, counted from 1.
func spanOf(spans []span, line int) (s span, ok bool) {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].before >= line }) - 1
	if i < 0 || spans[i].piece == nil {
		return span{}, false
	}
	return spans[i], true
}

func (o *origins) inSpan(ctx context.Context, s span, line int) (reconcile.Origin, error) {
	p, vars, item := s.piece, o.run.varsOf(s.piece.entry), s.item
	if p.each != nil {
		vars = p.each.with(vars, item)
	}
	key := textOf{p.entry, item}
	origin, err := o.trace(ctx, p.entry, s.text.string, vars, key, line)
	if origin.Line > 0 {
		written := strings.Split(o.traced[key].Text, "\n")
		origin.ChangedBy = o.run.post.changedBy(written[min(line, len(written))-1], p.entry)
	}
	if p.each != nil && !slices.ContainsFunc(origin.Owners, func(o any) bool { return len(appendOwners(nil, o)) > 0 }) {
		origin.Owners = appendOwners(nil, item)
	}
	for _, answer := range s.text.asked {
		origin.Reads = appendOwners(origin.Reads, answer)
	}
	return origin, err
}

// trace renders a text again and returns the origin of a line. If the number of lines
// differs, it names only the entry: a missing line is better than a wrong one.
func (o *origins) trace(ctx context.Context, entry, text string, vars map[string]any, key textOf, line int) (reconcile.Origin, error) {
	traced := o.traced[key]
	if traced == nil {
		var err error
		if traced, err = o.run.Engine.RenderTraced(ctx, entry, vars); err != nil {
			return unknown(entry), err
		}
		if o.traced == nil {
			o.traced = map[textOf]*templating.Traced{}
		}
		o.traced[key] = traced
	}
	if strings.Count(traced.Text, "\n") != strings.Count(text, "\n") {
		return unknown(entry), nil
	}
	wrote := traced.Origin(line)
	if wrote.File == "" {
		wrote.File = entry
	}
	return originOf(wrote.File, wrote.Line, wrote.Column, wrote.Text, wrote.Owners), nil
}

// appendOwners adds an object or, for another value, the objects that it belongs to.
func appendOwners(found []any, v any) []any {
	if rv := reflect.ValueOf(v); !rv.IsValid() || rv.Kind() == reflect.Pointer && rv.IsNil() {
		return found
	}
	if _, ok := reconcile.ResourceOf(v); ok {
		return append(found, v)
	}
	return append(found, templating.OwnersOf(v)...)
}
