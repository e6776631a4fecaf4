package render

import (
	"iter"
	"slices"
)

// piece is what one entry made.
type piece struct {
	entry string
	each  *Each // nil: it was rendered once, for the item nil
	*madeTexts
}

// madeTexts are the texts of the items of an entry. Renders share them.
type madeTexts struct {
	chunks  []*chunk
	content []byte // of the file that they make, once it was asked for
}

// chunk is a part of the items of an entry, with a text for each. Renders share it.
type chunk struct {
	items []any
	texts []*text

	parts []string // see partsBefore
	next  string   // its argument
	last  bool     // its argument
}

// all iterates over the items and their texts.
func (m *madeTexts) all() iter.Seq2[any, *text] {
	return func(yield func(any, *text) bool) {
		for _, c := range m.chunks {
			for i, item := range c.items {
				if !yield(item, c.texts[i]) {
					return
				}
			}
		}
	}
}

// chunksOf gives the parts of a list of items their texts, which stand one after the other.
func chunksOf(items [][]any, texts []*text) (all []*chunk) {
	for _, part := range items {
		n := len(part)
		all = append(all, &chunk{items: part, texts: slices.Clip(texts[:n])})
		texts = texts[n:]
	}
	return all
}

// itemsOf returns the items of an entry, in parts, and how it is rendered for them.
func (r *run) itemsOf(entry string) (each *Each, items [][]any) {
	of, ok := r.in.Each[entry]
	switch {
	case !ok:
		return nil, [][]any{{nil}}
	case of.Parts != nil:
		return &of, of.Parts
	}
	return &of, slices.Collect(slices.Chunk(of.Items, fewHundred))
}

// fewHundred items are a part of a list that was not given in parts.
const fewHundred = 256

// sharedParts counts the parts at the front and at the end that two lists of items share.
func sharedParts(a, b [][]any) (front, back int) {
	n := min(len(a), len(b))
	for front < n && sameSlice(a[front], b[front]) {
		front++
	}
	for back < n-front && sameSlice(a[len(a)-1-back], b[len(b)-1-back]) {
		back++
	}
	return front, back
}

func sameSlice(a, b []any) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// partAt is where a part lies: parts that lie in the same place have the same items.
type partAt struct {
	first *any
	len   int
}

func placeOf(part []any) partAt {
	if len(part) == 0 {
		return partAt{}
	}
	return partAt{&part[0], len(part)}
}

// partsChanged returns the items of the parts that only one of two lists has.
func partsChanged(was, now [][]any) (gone, come []any) {
	count := map[partAt]int{}
	for _, part := range was {
		count[placeOf(part)]++
	}
	for _, part := range now {
		if at := placeOf(part); count[at] > 0 {
			count[at]--
		} else {
			come = append(come, part...)
		}
	}
	for _, part := range was {
		if at := placeOf(part); count[at] > 0 {
			count[at]--
			gone = append(gone, part...)
		}
	}
	return gone, come
}

// common counts the items at the front and at the end that two lists share.
func common(a, b []any) (first, last int) {
	n := min(len(a), len(b))
	if sameSlice(a, b) {
		return n, 0
	}
	for first < n && a[first] == b[first] {
		first++
	}
	for last < n-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	return first, last
}

// partsOfItems returns the items of chunks.
func partsOfItems(chunks []*chunk) [][]any {
	parts := make([][]any, len(chunks))
	for i, c := range chunks {
		parts[i] = c.items
	}
	return parts
}

// few is how many items are looked for in a list, one by one.
const few = 32

// piece puts the texts of an entry in the order of its items. It takes those that stand as
// they stood in the last render over, and looks up the others.
func (t *texts) piece(entry string, r *run, changed []any) piece {
	last, p := t.pieces[entry], piece{entry: entry}
	var items [][]any
	p.each, items = r.itemsOf(entry)
	if last.madeTexts == nil || len(changed) > few {
		last = piece{madeTexts: &madeTexts{}}
	}
	front, back := sharedParts(partsOfItems(last.chunks), items)
	old := last.chunks[front : len(last.chunks)-back]
	middle := items[front : len(items)-back]
	texts, found, same := t.look(entry, old, middle, changed)
	if same && len(changed) == 0 && t.pieces[entry].madeTexts == last.madeTexts {
		p.madeTexts = last.madeTexts
		return p
	}
	p.madeTexts = &madeTexts{chunks: slices.Concat(last.chunks[:front], chunksOf(middle, texts), last.chunks[len(last.chunks)-back:])}
	if found < len(changed) || len(t.twice) > 0 {
		t.lookAgain(entry, p.chunks, changed)
	}
	return p
}

// look returns the texts of items. old are those that stood between the same neighbours. found
// counts the changed ones among those that it looked up; same: all stand as they stood.
func (t *texts) look(entry string, old []*chunk, parts [][]any, changed []any) (texts []*text, found int, same bool) {
	was, items, known := slices.Concat(partsOfItems(old)...), slices.Concat(parts...), []*text(nil)
	for _, c := range old {
		known = append(known, c.texts...)
	}
	first, end := common(was, items)
	texts = make([]*text, len(items))
	at := map[partAt]*chunk{}
	for _, c := range old {
		at[placeOf(c.items)] = c
	}
	i := 0
	for _, part := range parts {
		if c := at[placeOf(part)]; c != nil {
			copy(texts[i:], c.texts)
			i += len(part)
			continue
		}
		for _, item := range part {
			if i >= first && i < len(items)-end {
				texts[i], _ = t.made.Get(nil, textOf{entry, item})
				if slices.Contains(changed, item) {
					found++
				}
			}
			i++
		}
	}
	copy(texts, known[:first])
	copy(texts[len(texts)-end:], known[len(known)-end:])
	return texts, found, first == len(items) && len(items) == len(was)
}

// lookAgain looks up the texts of changed items wherever they stand.
func (t *texts) lookAgain(entry string, chunks []*chunk, changed []any) {
	for n, c := range chunks {
		for i, item := range c.items {
			if !slices.Contains(changed, item) {
				continue
			}
			if now, _ := t.made.Get(nil, textOf{entry, item}); now != c.texts[i] {
				c = &chunk{items: c.items, texts: slices.Clone(c.texts)} // others share the old one
				chunks[n], c.texts[i] = c, now
			}
		}
	}
}
