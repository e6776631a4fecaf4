package haproxymodel

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Action is what happens to a section, a child or a line.
type Action int

// The actions.
const (
	Create Action = iota + 1
	Update
	Delete
)

// String returns "create", "update" or "delete".
func (a Action) String() string {
	switch a {
	case Create:
		return "create"
	case Update:
		return "update"
	case Delete:
		return "delete"
	}
	return ""
}

// Difference is one step from an old section to a new one.
type Difference struct {
	Action Action
	Child  *Child // nil for the section's own fields, whose Action is Update
	Name   string // of a child that has one: its key, or the name of an ACL; else ""

	// Positions of a child in its list, from 0, in the old section (-1 for
	// Create) and in the new one (-1 for Delete). -1 for all that are in no list.
	OldIndex, NewIndex int

	Fields []Field // what changed; all that is set for Create and Delete
	Old    any     // pointer to the model of the child or of the whole section before; nil for Create
	New    any     // and after; nil for Delete
}

// Field is one field of a model with its value as text.
type Field struct {
	Name     string // JSON names, joined by dots: "cond_test", "balance.algorithm", "log_steps.0"
	Old, New string // "" for absent
	Secret   bool   // the values must not be shown
}

// Diff returns the steps from old to new, in an order in which they can be made
// one after the other: first the section's own fields, then collection by
// collection as in the descriptor table. Within a collection come the updates,
// addressed by OldIndex, then the deletions with the highest index first, then
// the creations with the lowest index first.
//
// Children by position are aligned by their longest common subsequence, so
// that an insertion is one step. Metadata, which are comments, make no
// difference. Sections of two kinds, or with an error, have none here: what the
// models do not hold is told by [DiffLines].
func Diff(old, new *Section) []Difference {
	if old.err != nil || new.err != nil || old.Kind != new.Kind {
		return nil
	}
	var differences []Difference
	was, is := reflect.ValueOf(old.model).Elem(), reflect.ValueOf(new.model).Elem()
	if sameLines(old, new, nil) && old.From == new.From && old.Name == new.Name {
		// Most changes are in the children.
	} else if fields := fieldsOf(old.Kind, nil, was, is); len(fields) > 0 {
		differences = append(differences, Difference{
			Action: Update, OldIndex: -1, NewIndex: -1, Fields: fields, Old: old.model, New: new.model,
		})
	}
	for i := range old.Kind.Children {
		c := &old.Kind.Children[i]
		lines := c
		if c.write == nil {
			lines = nil // they are read with the section
		}
		if sameLines(old, new, lines) {
			continue
		}
		before, after := old.children(c), new.children(c)
		switch {
		case len(before) == 0 && len(after) == 0:
		case c.ByName():
			differences = append(differences, diffNamed(old.Kind, c, before, after)...)
		default:
			differences = append(differences, diffListed(old.Kind, c, before, after)...)
		}
	}
	return differences
}

// child is one child of a section: a pointer to its model, and its name with a
// number behind it where several have one name.
type child struct {
	name  string
	model reflect.Value
	index int // in a list
}

// children returns the children of a collection, those by name in the order of
// the text.
func (s *Section) children(c *Child) []child {
	children := childrenOf(s.model, c)
	if !c.slice {
		position := make(map[string]int, len(children))
		for i, name := range s.order[c] {
			position[name] = i + 1
		}
		slices.SortStableFunc(children, func(a, b child) int { return cmp.Compare(position[a.name], position[b.name]) })
	}
	return children
}

// childrenOf returns the children in the order of the model, those of a map by name.
func childrenOf(model any, c *Child) []child {
	v := reflect.ValueOf(model).Elem().FieldByIndex(c.index)
	children := make([]child, 0, v.Len())
	if !c.slice {
		for _, key := range v.MapKeys() {
			p := reflect.New(c.elem)
			p.Elem().Set(v.MapIndex(key))
			children = append(children, child{name: key.String(), model: p})
		}
		slices.SortFunc(children, func(a, b child) int { return strings.Compare(a.name, b.name) })
		return children
	}
	for i := range v.Len() {
		children = append(children, child{nameOf(c, v.Index(i)), v.Index(i), i})
	}
	return children
}

// nameOf returns the name that a child has, if any.
func nameOf(c *Child, model reflect.Value) string {
	key := c.Key
	if c.Field == "ACLList" {
		key = "ACLName"
	}
	if key == "" {
		return ""
	}
	return text(follow(model.Elem().FieldByName(key)))
}

func diffNamed(k *Kind, c *Child, old, new []child) (steps []Difference) {
	type id struct {
		name string
		nth  int
	}
	was := map[id]child{}
	count := map[string]int{}
	for _, o := range old {
		was[id{o.name, count[o.name]}] = o
		count[o.name]++
	}
	clear(count)
	var updates, deletes, creates []Difference
	for _, n := range new {
		key := id{n.name, count[n.name]}
		count[n.name]++
		o, ok := was[key]
		delete(was, key)
		if !ok {
			creates = append(creates, step(k, c, Create, child{}, n))
		} else if d := step(k, c, Update, o, n); len(d.Fields) > 0 {
			updates = append(updates, d)
		}
	}
	clear(count)
	for _, o := range old {
		key := id{o.name, count[o.name]}
		count[o.name]++
		if _, gone := was[key]; gone {
			deletes = append(deletes, step(k, c, Delete, o, child{}))
		}
	}
	slices.Reverse(deletes)
	return slices.Concat(updates, deletes, creates)
}

func diffListed(k *Kind, c *Child, old, new []child) []Difference {
	var updates, deletes, creates []Difference
	i, j := 0, 0
	matches := align(fingerprints(k, c, old), fingerprints(k, c, new))
	if c.Append {
		matches = onlyAppend(matches, !c.NoUpdate)
	}
	for _, m := range append(matches, match{len(old), len(new)}) {
		if i < m.old || j < m.new {
			u, d, n := diffHunk(k, c, old[i:m.old], new[j:m.new])
			updates = append(updates, shift(u, i, j)...)
			deletes = append(deletes, shift(d, i, j)...)
			creates = append(creates, shift(n, i, j)...)
		}
		i, j = m.old+1, m.new+1
	}
	slices.Reverse(deletes)
	return slices.Concat(updates, deletes, creates)
}

// onlyAppend leaves the matches that may stay when children can only be created
// at the end: those in place, and without updates only those in front of the
// first change.
func onlyAppend(matches []match, update bool) []match {
	var stay []match
	for i, m := range matches {
		if m.old == m.new && (update || m.old == i) {
			stay = append(stay, m)
		}
	}
	return stay
}

// diffHunk compares stretches of two lists that have nothing in common.
func diffHunk(k *Kind, c *Child, old, new []child) (updates, deletes, creates []Difference) {
	var pairs []match
	if !c.NoUpdate {
		pairs = pair(len(old), len(new), func(i, j int) int {
			return -len(fieldsOf(k, c, old[i].model, new[j].model))
		})
		if c.Append {
			pairs = pairs[:0]
			for i := range min(len(old), len(new)) {
				pairs = append(pairs, match{i, i})
			}
		}
	}
	i, j := 0, 0
	for _, m := range append(pairs, match{len(old), len(new)}) {
		for ; i < m.old; i++ {
			d := step(k, c, Delete, old[i], child{})
			d.OldIndex = i
			deletes = append(deletes, d)
		}
		for ; j < m.new; j++ {
			d := step(k, c, Create, child{}, new[j])
			d.NewIndex = j
			creates = append(creates, d)
		}
		if i < len(old) && j < len(new) {
			d := step(k, c, Update, old[i], new[j])
			d.OldIndex, d.NewIndex = i, j
			if len(d.Fields) > 0 {
				updates = append(updates, d)
			}
			i, j = i+1, j+1
		}
	}
	return updates, deletes, creates
}

func shift(steps []Difference, old, new int) []Difference {
	for i := range steps {
		if steps[i].OldIndex >= 0 {
			steps[i].OldIndex += old
		}
		if steps[i].NewIndex >= 0 {
			steps[i].NewIndex += new
		}
	}
	return steps
}

func step(k *Kind, c *Child, action Action, old, new child) Difference {
	d := Difference{
		Action: action, Child: c, OldIndex: -1, NewIndex: -1,
		Name: cmp.Or(new.name, old.name), Fields: fieldsOf(k, c, old.model, new.model),
	}
	if c.ByName() && c.slice {
		if old.model.IsValid() {
			d.OldIndex = old.index
		}
		if new.model.IsValid() {
			d.NewIndex = new.index
		}
	}
	if old.model.IsValid() {
		d.Old = old.model.Interface()
	}
	if new.model.IsValid() {
		d.New = new.model.Interface()
	}
	return d
}

// fingerprints makes a string of each child, equal where they do not differ.
func fingerprints(k *Kind, c *Child, children []child) []string {
	prints := make([]string, len(children))
	for i, ch := range children {
		var b strings.Builder
		for _, f := range fieldsOf(k, c, reflect.Value{}, ch.model) {
			words, _, err := cut(f.New)
			if err != nil {
				words = []string{f.New}
			}
			value, _ := json.Marshal(append([]string{f.Name}, words...))
			b.Write(value)
		}
		prints[i] = b.String()
	}
	return prints
}
