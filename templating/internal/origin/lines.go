package origin

import (
	"bytes"
	"slices"
	"strings"
)

// Line is the origin of a line of an output.
type Line struct {
	File         string
	Line, Column int
	Text         string // that line of the template
	Owners       []any
}

// Lines returns the origin of each line of the output. It returns nil if the output differs
// from the recorder's text: no origin is better than a wrong one.
func (r *Recorder) Lines(text string) []Line {
	w := r.root().out
	if !bytes.HasPrefix(w.text, []byte(text)) {
		return nil
	}
	m := lines{files: r.files, places: map[spotAt]Line{}, owners: map[*held][]any{}}
	all := make([]Line, 0, strings.Count(text, "\n")+1)
	at, i, next := 0, 0, 0
	var uses []used // that reach this line
	for line := range strings.Lines(text) {
		first := at
		if key := strings.TrimLeft(line, " \t\r\n"); key != "" {
			first += len(line) - len(key)
		}
		for i+1 < len(w.pieces) && w.pieces[i+1].at <= first {
			i++
		}
		if len(w.pieces) > 0 {
			all = append(all, m.origin(w.pieces[i], first))
		}
		for ; next < len(w.uses) && w.uses[next].at < at+len(line); next++ {
			uses = append(uses, w.uses[next])
		}
		uses = slices.DeleteFunc(uses, func(u used) bool { return u.end <= at })
		if n := len(all); n > 0 {
			for _, u := range uses[max(0, len(uses)-mostUses):] {
				all[n-1].Owners = u.of(all[n-1].Owners)
			}
		}
		at += len(line)
	}
	return all
}

func (r *Recorder) root() *frame {
	f := r.top
	for f.outer != nil {
		f = f.outer
	}
	return f
}

// lines caches origins.
type lines struct {
	files  Files
	places map[spotAt]Line
	owners map[*held][]any
}

type spotAt struct {
	from *Spot
	off  int
}

// origin returns the origin of a byte in piece p.
func (m *lines) origin(p piece, at int) Line {
	if p.from == nil {
		return Line{}
	}
	key := spotAt{from: p.from}
	if p.from.Start >= 0 {
		key.off = min(p.off+at-p.at, len(p.from.Text))
	}
	o, ok := m.places[key]
	if !ok {
		o = Line{File: p.from.File, Line: p.from.Line, Column: p.from.Column}
		if p.from.Start >= 0 {
			o.Line, o.Column = m.files.Position(o.File, p.from.Start+key.off)
		}
		o.Text = m.files.Line(o.File, o.Line)
		m.places[key] = o
	}
	if _, ok := m.owners[p.owners]; !ok {
		m.owners[p.owners] = p.owners.list()
	}
	o.Owners = m.owners[p.owners]
	return o
}
