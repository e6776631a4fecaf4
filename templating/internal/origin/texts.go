package origin

import (
	"bytes"
	"sort"
	"strings"
)

// texts are the macro texts of a traced render. The recorder finds a shown text among them
// by its content: Scriggo does not tell which call made a string, and templates join and
// indent texts.
type texts struct {
	made    []*written
	byText  map[string][]lineOf // their line field is unused
	byLine  map[string][]lineOf // of the texts that were indexed
	indexed int
}

// lineOf is a line of a text: the index of the text in made, and of the line among its
// lines that are not blank.
type lineOf struct{ text, line int }

func (t *texts) keep(w *written) {
	if len(w.text) == 0 {
		return
	}
	if t.byText == nil {
		t.byText = map[string][]lineOf{}
	}
	t.made = append(t.made, w)
	t.byText[string(w.text)] = append(t.byText[string(w.text)], lineOf{text: len(t.made) - 1})
}

// shownAt is the moment of showing a text: the number of texts at the start of the
// statement, and the owners.
type shownAt struct {
	since  int
	owners *held
}

// The likelihood that one of several equal texts is the shown one, in ascending order.
const (
	shownBefore = iota + 1
	notShown
	ofOwner     // made for the same owners
	ofStatement // made by the statement that shows it
)

func (t *texts) rank(text int, at shownAt) int {
	switch w := t.made[text]; {
	case w.shown:
		return shownBefore
	case text >= at.since:
		return ofStatement
	case w.owners == at.owners:
		return ofOwner
	}
	return notShown
}

// best picks one of several texts: the first of the most likely ones. If all were shown
// before, it picks the last.
func (t *texts) best(among []lineOf, at shownAt) (best lineOf) {
	most := 0
	for _, l := range among {
		if rank := t.rank(l.text, at); rank > most || rank == shownBefore && most == shownBefore {
			best, most = l, rank
		}
	}
	return best
}

// find returns the origin of a text: a macro that wrote the same text, or else the origins
// of its lines. An unknown part has no spot.
func (t *texts) find(s string, at shownAt) *written {
	if same := t.byText[s]; len(same) > 0 {
		w := t.made[t.best(same, at).text]
		w.shown = true
		return w
	}
	w, _ := t.align(s, at)
	return w
}

// align finds the origin of a text line by line, and reports whether it found all lines.
// White space around a line does not count.
func (t *texts) align(s string, shown shownAt) (w *written, all bool) {
	t.index()
	w = &written{text: []byte(s), pieces: []piece{{}}}
	next := lineOf{text: -1}
	all = s != ""
	at := 0
	for line := range strings.Lines(s) {
		key := strings.TrimSpace(line)
		start := at + strings.Index(line, key)
		at += len(line)
		if key == "" {
			continue
		}
		found, ok := t.line(key, next, shown)
		if !ok {
			all, next = false, lineOf{text: -1}
			w.pieces = append(w.pieces, piece{at: start})
			continue
		}
		next = lineOf{found.text, found.line + 1}
		from := t.made[found.text]
		from.shown = true
		w.lacks = w.lacks || from.lacks
		p := from.pieceAt(from.starts[found.line])
		p.off += from.starts[found.line] - p.at
		p.at = start
		w.pieces = append(w.pieces, p)
		first := from.starts[found.line]
		w.uses = append(w.uses, from.usesOf(first, first+len(key), start)...)
	}
	return w, all
}

// line finds a line: the next one in the text of the previous line, or the likeliest.
func (t *texts) line(key string, next lineOf, at shownAt) (found lineOf, ok bool) {
	if next.text >= 0 && t.made[next.text].lineIs(next.line, key) {
		return next, true
	}
	among := t.byLine[key]
	return t.best(among, at), len(among) > 0
}

// index notes the lines of all new texts.
func (t *texts) index() {
	if t.byLine == nil {
		t.byLine = map[string][]lineOf{}
	}
	for ; t.indexed < len(t.made); t.indexed++ {
		w, at := t.made[t.indexed], 0
		for line := range strings.Lines(string(w.text)) {
			if key := strings.TrimSpace(line); key != "" {
				t.byLine[key] = append(t.byLine[key], lineOf{t.indexed, len(w.starts)})
				w.starts = append(w.starts, at+strings.Index(line, key))
			}
			at += len(line)
		}
	}
}

// lineIs reports whether line n of the lines that are not blank is key.
func (w *written) lineIs(n int, key string) bool {
	if n >= len(w.starts) {
		return false
	}
	rest, ok := bytes.CutPrefix(w.text[w.starts[n]:], []byte(key))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return ok && len(bytes.TrimSpace(line)) == 0
}

// pieceAt returns the piece of a byte.
func (w *written) pieceAt(at int) piece {
	i := sort.Search(len(w.pieces), func(i int) bool { return w.pieces[i].at > at })
	if i == 0 {
		return piece{at: at}
	}
	return w.pieces[i-1]
}
