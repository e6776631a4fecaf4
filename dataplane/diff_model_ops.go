package dataplane

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxymodel"
)

// ownChanges adds one operation for what changes in a section itself.
func (d *difference) ownChanges(edits []edit) {
	var changes []Change
	var keywords []string
	for i := range edits {
		e := &edits[i]
		if e.child != nil {
			continue
		}
		changes = append(changes, e.changes()...)
		keywords = append(keywords, e.keyword())
	}
	if len(changes) == 0 {
		return
	}
	op := sectionOp(Update, edits[0].section, onlyAtReload(keywords))
	op.Changes = changes
	d.add(rankChange, op, nil)
}

// childChanges adds an operation for each child that comes, goes or changes, in
// an order in which each can be done after the other: children that go from the
// last to the first, as their index is that in the current section, then those
// that come and change, whose index is that in the desired one.
func (d *difference) childChanges(edits []edit) {
	for i := len(edits) - 1; i >= 0; i-- {
		if e := &edits[i]; e.child != nil && e.now == nil {
			rank := rankChange
			if e.child.Words == "acl" {
				rank = rankACLGone
			}
			d.add(rank, e.op(), nil)
		}
	}
	for _, comes := range []bool{true, false} {
		for i := range edits {
			if e := &edits[i]; e.child != nil && e.now != nil && (e.old == nil) == comes {
				d.add(rankChange, e.op(), nil)
			}
		}
	}
}

// op makes the operation for a child.
func (e *edit) op() Op {
	op := Op{Action: Update, Kind: e.child.Kind, Impact: ImpactReload, Reason: onlyAtReload([]string{e.keyword()})}
	l := e.now
	switch {
	case e.old == nil:
		op.Action = Create
	case e.now == nil:
		op.Action, l = Delete, e.old
	}
	parent := sectionOp(Update, e.section, "")
	op.Parent = strings.TrimSpace(parent.Kind + " " + parent.Name)
	if e.child.ByName() || e.child.Words == "acl" {
		op.Name = visible(childName(*l), l)
	}
	if !e.child.ByName() {
		op.Index = &e.index
	}
	op.Changes = e.changes()
	return op
}

// keyword names the line for a reason.
func (e *edit) keyword() string {
	l := e.now
	if l == nil {
		l = e.old
	}
	words := positive(l.words)
	if len(words) > 1 && families[words[0]] && isDirective(words[1]) {
		return words[0] + " " + words[1]
	}
	if len(words) > 0 && isDirective(words[0]) {
		return words[0]
	}
	return "line"
}

// isDirective reports whether a word may be a keyword of HAProxy, and holds no
// text of somebody's own.
func isDirective(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool { return !isNameRune(r) && r != '.' }) < 0
}

// changes shows the edit: the fields where the models know them, and the line
// where they do not know all that changed in it.
func (e *edit) changes() []Change {
	if e.moved != nil {
		return e.moved
	}
	var changes []Change
	for _, f := range e.fields {
		changes = append(changes, Change{f.Name, shown(f, f.Old, e.old), shown(f, f.New, e.now)})
	}
	if len(changes) == 0 || len(e.fields) < e.places() {
		c := Change{Field: fieldLine}
		if e.old != nil {
			c.Old = e.old.show()
		}
		if e.now != nil {
			c.New = e.now.show()
		}
		changes = append(changes, c)
	}
	return changes
}

// places counts the places in which the words of the two lines differ. A field
// tells of one.
func (e *edit) places() int {
	if e.old == nil || e.now == nil {
		return 1
	}
	return len(align(e.old.words, e.now.words, func(a, b string) bool { return a == b }))
}

// shown hides the value of a field that is secret.
func shown(f haproxymodel.Field, value string, l *line) string {
	if value != "" && (f.Secret || namesSecret(f.Name)) {
		return secret
	}
	return visible(value, l)
}

// visible hides a part of a line that hides anything, unless the line shows
// that part.
func visible(part string, l *line) string {
	if part == "" || l == nil {
		return part
	}
	text := l.show()
	if strings.Contains(text, secret) && !slices.Contains(strings.Fields(text), part) {
		return secret
	}
	return part
}
