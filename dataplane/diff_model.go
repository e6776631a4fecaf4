package dataplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxymodel"
)

// groupPair is a group of lines that differs between two versions of a section.
type groupPair struct {
	section  *section // the desired one
	old, now []line
}

// compareGroups keeps the groups that differ until [difference.models].
func (d *difference) compareGroups(want *section, old, now []group) {
	for len(old) > 0 || len(now) > 0 {
		p := groupPair{section: want}
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].name < now[0].name:
			p.old, old = old[0].lines, old[1:]
		case len(old) == 0 || now[0].name < old[0].name:
			p.now, now = now[0].lines, now[1:]
		default:
			p.old, p.now, old, now = old[0].lines, now[0].lines, old[1:], now[1:]
		}
		if !slices.EqualFunc(p.old, p.now, line.equal) {
			d.pending = append(d.pending, p)
		}
	}
}

// edit is a difference between two versions of a section: of a child, such as a
// rule, or of the section itself. At least one of old and now is there.
type edit struct {
	section  *section
	child    *haproxymodel.Child // nil for the section itself
	old, now *line
	index    int      // of the child among its kind, in the version that has it
	moved    []Change // the order of children, instead of old and now
	fields   []haproxymodel.Field
}

// models turns the groups that differ into operations. The lines say what
// differs and where; the models of client-native say which fields of a line do.
// So nothing that the models do not hold is lost.
func (d *difference) models() {
	var edits []edit
	for _, p := range d.pending {
		edits = append(edits, p.edits()...)
	}
	d.pending = nil
	edits = slices.DeleteFunc(edits, func(e edit) bool { return e.reordered() })
	readFields(edits)
	for len(edits) > 0 {
		own := edits[0].section
		n := slices.IndexFunc(edits, func(e edit) bool { return e.section != own })
		if n < 0 {
			n = len(edits)
		}
		d.ownChanges(edits[:n])
		d.childChanges(edits[:n])
		edits = edits[n:]
	}
}

// edits compares the lines of the group.
func (p *groupPair) edits() []edit {
	kind := haproxymodel.KindOf(p.section.Kind)
	if kind == nil {
		return p.lineEdits(nil)
	}
	child := func(l line) *haproxymodel.Child { return childOf(kind, l) }
	byName := func(l line) bool { c := child(l); return c != nil && c.ByName() }
	switch {
	case !slices.ContainsFunc(p.old, byName) && !slices.ContainsFunc(p.now, byName):
		return p.lineEdits(child)
	case named(p.old, child) && named(p.now, child):
		return p.namedEdits(child)
	}
	return p.lineEdits(nil) // names that repeat, or lines between them that count
}

// childOf returns the kind of child that a line makes, nil if it makes none.
func childOf(kind *haproxymodel.Kind, l line) *haproxymodel.Child {
	if len(l.words) == 0 || len(positive(l.words)) != len(l.words) && l.words[1] != "log" {
		return nil
	}
	words := strings.Join(firstTwo(positive(l.words)), " ")
	for i := range kind.Children {
		if c := &kind.Children[i]; words == c.Words || strings.HasPrefix(words, c.Words+" ") {
			return c
		}
	}
	return nil
}

// lineEdits aligns the lines. Lines that go and come in one place, and are of
// one sort, are one update.
func (p *groupPair) lineEdits(child func(line) *haproxymodel.Child) []edit {
	if child == nil {
		child = func(line) *haproxymodel.Child { return nil }
	}
	oldIndex, newIndex := positions(p.old, child), positions(p.now, child)
	var edits []edit
	note := func(i, j int) {
		e := edit{section: p.section}
		if i >= 0 {
			e.old, e.index, e.child = &p.old[i], oldIndex[i], child(p.old[i])
		}
		if j >= 0 {
			e.now, e.index, e.child = &p.now[j], newIndex[j], child(p.now[j])
		}
		edits = append(edits, e)
	}
	for _, h := range align(p.old, p.now, line.equal) {
		i, j := h.oldFrom, h.newFrom
		rest := append(align(p.old[i:h.oldTo], p.now[j:h.newTo], similar), hunk{h.oldTo - i, h.oldTo - i, h.newTo - j, h.newTo - j})
		for _, r := range rest {
			for ; i < h.oldFrom+r.oldFrom; i, j = i+1, j+1 {
				note(i, j)
			}
			for ; i < h.oldFrom+r.oldTo; i++ {
				note(i, -1)
			}
			for ; j < h.newFrom+r.newTo; j++ {
				note(-1, j)
			}
		}
	}
	return edits
}

// positions counts the children of each kind, from 0.
func positions(lines []line, child func(line) *haproxymodel.Child) []int {
	count := make(map[*haproxymodel.Child]int)
	out := make([]int, len(lines))
	for i, l := range lines {
		c := child(l)
		out[i] = count[c]
		count[c]++
	}
	return out
}

// similar reports whether one line reads as a new version of the other: the
// same keyword and, of rules and ACLs, the same action or name.
func similar(a, b line) bool {
	if a.keyword() != b.keyword() {
		return false
	}
	switch a.keyword() {
	case "acl", "http-request", "http-response", "http-after-response", "http-check", "http-error",
		"tcp-request", "tcp-response", "tcp-check", "quic-initial", "filter", "stick":
		return slices.Equal(firstTwo(a.words), firstTwo(b.words))
	}
	return true
}

// named reports whether all lines make children that names tell apart.
func named(lines []line, child func(line) *haproxymodel.Child) bool {
	seen := make(map[string]bool, len(lines))
	for _, l := range lines {
		c := child(l)
		if c == nil || !c.ByName() || seen[childName(l)] {
			return false
		}
		seen[childName(l)] = true
	}
	return true
}

// childName returns the name of a child: the second word, or what a bind line
// says after "name".
func childName(l line) string {
	if strings.HasSuffix(l.keyword(), "bind") {
		for i := 2; i+1 < len(l.words); i++ {
			if l.words[i] == "name" {
				return l.words[i+1]
			}
		}
	}
	if len(l.words) < 2 {
		return ""
	}
	return l.words[1]
}

// namedEdits compares lines by name, and then their order.
func (p *groupPair) namedEdits(child func(line) *haproxymodel.Child) []edit {
	was := make(map[string]*line, len(p.old))
	for i := range p.old {
		was[childName(p.old[i])] = &p.old[i]
	}
	is := make(map[string]bool, len(p.now))
	var edits []edit
	var before, after []string
	for i := range p.now {
		now, name := &p.now[i], childName(p.now[i])
		is[name] = true
		old := was[name]
		if old != nil {
			after = append(after, name)
		}
		if old == nil || !old.equal(*now) {
			edits = append(edits, edit{section: p.section, child: child(*now), old: old, now: now})
		}
	}
	for i := range p.old {
		old, name := &p.old[i], childName(p.old[i])
		if is[name] {
			before = append(before, name)
		} else {
			edits = append(edits, edit{section: p.section, child: child(*old), old: old})
		}
	}
	if !slices.Equal(before, after) {
		what := fmt.Sprintf("order of %ss", child(p.now[0]).Kind)
		edits = append(edits, edit{section: p.section, now: &p.now[0], moved: []Change{{what, strings.Join(before, ", "), strings.Join(after, ", ")}}})
	}
	return edits
}
