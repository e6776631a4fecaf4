package origin

import (
	"bytes"
	"slices"
	"sort"
	"strings"
)

// A shown value comes from an object: it is a field of the object's variable, or of a
// variable made from the object. This object answers for the line before the objects of the
// loops around it. An object of another namespace than the innermost owner does not answer.
// Otherwise a reference from one namespace could get an object of another one quarantined.

// used are the objects behind a part of a text.
type used struct {
	at, end int
	objects []any
	outer   bool // noted by the statement that shows the text of a macro
}

// innermost returns the objects that answer first, nil behind a call of owner: its argument
// answers then.
func (r *Recorder) innermost() []any {
	if r.owners != nil && !r.owners.element {
		return nil
	}
	return r.near()
}

// near returns the objects behind the statement, without those of another namespace than
// the innermost owner's.
func (r *Recorder) near() []any {
	if len(r.uses) == 0 || r.owners == nil {
		return r.uses
	}
	own := namespaceOf(r.owners.last())
	if own == "" || !slices.ContainsFunc(r.uses, func(o any) bool { return namespaceOf(o) != own }) {
		return r.uses
	}
	return slices.DeleteFunc(slices.Clone(r.uses), func(o any) bool { return namespaceOf(o) != own })
}

// of adds these objects to the owners of a line.
func (u *used) of(owners []any) []any {
	if !u.outer {
		return last(owners, u.objects)
	}
	missing := slices.DeleteFunc(slices.Clone(u.objects), func(o any) bool { return contains(owners, o) })
	return append(missing, owners...)
}

// use notes the variables behind the statement.
func (r *Recorder) use(names string, values []any) {
	r.uses = nil
	for i, name := range strings.Split(names, ",") {
		objects := ObjectsOf(values[i])
		if len(objects) == 0 {
			objects = r.madeOf[name]
		}
		r.uses = last(r.uses, objects)
	}
}

// give notes that the objects of the statement are behind a variable. If two variables have
// one name, the last one counts.
func (r *Recorder) give(name string) {
	if r.madeOf == nil {
		r.madeOf = map[string][]any{}
	}
	r.madeOf[name] = r.uses
}

// last returns objects without others, then others.
func last(objects, others []any) []any {
	if len(others) == 0 {
		return objects
	}
	kept := slices.DeleteFunc(slices.Clone(objects), func(o any) bool { return contains(others, o) })
	return append(kept, others...)
}

func contains(objects []any, o any) bool {
	return slices.ContainsFunc(objects, func(x any) bool { return sameObject(x, o) })
}

// mostUses bounds how many notes of one line count: the last ones. Without it, a line of
// thousands of values would take a minute.
const mostUses = 64

// made notes the objects behind the text from at on. The innermost owner alone needs no
// note, and neither does a repetition in the same line.
func (w *written) made(at int, objects []any, innermost any) {
	if len(objects) == 0 || at == len(w.text) {
		return
	}
	from := min(max(w.line, w.sought), at)
	w.sought = at
	if feed := bytes.LastIndexByte(w.text[from:at], '\n'); feed >= 0 {
		w.line = from + feed + 1
	}
	first := len(w.uses)
	for first > max(0, len(w.uses)-mostUses) && w.uses[first-1].end > w.line {
		first--
		if u := &w.uses[first]; slices.EqualFunc(u.objects, objects, sameObject) {
			u.end = len(w.text)
			return
		}
	}
	if first < len(w.uses) || len(objects) > 1 || !sameObject(objects[0], innermost) {
		w.uses = append(w.uses, used{at, len(w.text), objects, false})
	}
}

// usesOf returns the notes about a part of a complete text, moved to the byte at.
func (w *written) usesOf(start, end, at int) (all []used) {
	for i := len(w.reach); i < len(w.uses); i++ {
		reach := w.uses[i].end
		if i > 0 {
			reach = max(reach, w.reach[i-1])
		}
		w.reach = append(w.reach, reach)
	}
	first := sort.SearchInts(w.reach, start+1)
	for _, u := range w.uses[first:] {
		if u.at >= end {
			break
		}
		if u.end > start {
			all = append(all, used{max(u.at-start, 0) + at, min(u.end, end) - start + at, u.objects, u.outer})
		}
	}
	return all
}
