package templating

import (
	"bytes"
	"strings"
)

// texts are the texts of macros that a traced render made. A text that is shown
// is found among them again by what it says: Scriggo does not tell which call a
// string comes from, and templates put texts together and indent them.
type texts struct {
	made    []*written
	byText  map[string][]*written
	byLine  map[string][]lineOf // of the texts that were indexed
	indexed int
}

// lineOf is a line of a text: both are numbers from 0, of the texts made and of
// their lines that are not blank.
type lineOf struct{ text, line int }

func (t *texts) keep(w *written) {
	if len(w.text) == 0 {
		return
	}
	if t.byText == nil {
		t.byText = map[string][]*written{}
	}
	t.made = append(t.made, w)
	t.byText[string(w.text)] = append(t.byText[string(w.text)], w)
}

// find returns what wrote a text: a macro that wrote the same, or else what
// wrote its lines. Texts from since on, which the statement made that is being
// rendered, go first, then those that were not shown before. The spot of what
// is not known is nil.
func (t *texts) find(s string, since int) *written {
	if w := t.pick(s, since); w != nil {
		w.shown = true
		return w
	}
	w, _ := t.align(s, since)
	return w
}

func (t *texts) pick(s string, since int) *written {
	same := t.byText[s]
	if len(same) == 0 {
		return nil
	}
	for _, w := range t.made[min(since, len(t.made)):] {
		if !w.shown && string(w.text) == s {
			return w
		}
	}
	for i, w := range same {
		if !w.shown {
			t.byText[s] = same[i:] // those before are not asked again
			return w
		}
	}
	return same[len(same)-1]
}

// align finds what wrote a text line by line, and reports whether it found all
// of its lines. White space around them does not count.
func (t *texts) align(s string, since int) (w *written, all bool) {
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
		found, ok := t.line(key, next, since)
		if !ok {
			all, next = false, lineOf{text: -1}
			w.pieces = append(w.pieces, piece{at: start})
			continue
		}
		next = lineOf{found.text, found.line + 1}
		from := t.made[found.text]
		from.shown = true
		p := from.pieceAt(from.starts[found.line])
		p.off += from.starts[found.line] - p.at
		p.at = start
		w.pieces = append(w.pieces, p)
	}
	return w, all
}

// line finds a line: the one behind the one before it, one of this statement,
// one of a text that was not shown, any.
func (t *texts) line(key string, next lineOf, since int) (found lineOf, ok bool) {
	const ofStatement, notShown, any = 3, 2, 1
	if next.text >= 0 && t.made[next.text].lineIs(next.line, key) {
		return next, true
	}
	best := 0
	for _, l := range t.byLine[key] {
		rank := any
		switch {
		case t.made[l.text].shown:
		case l.text >= since:
			rank = ofStatement
		default:
			rank = notShown
		}
		if rank > best || rank == any && best == any { // of those that were shown the last
			found, best = l, rank
		}
	}
	return found, best > 0
}

// index notes the lines of the texts that were made since it was last called.
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

// lineIs reports whether the text has this line, as the one of this number that
// is not blank.
func (w *written) lineIs(n int, key string) bool {
	if n >= len(w.starts) {
		return false
	}
	rest, ok := bytes.CutPrefix(w.text[w.starts[n]:], []byte(key))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return ok && len(bytes.TrimSpace(line)) == 0
}
