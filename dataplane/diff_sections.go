package dataplane

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

func (d *difference) sections() {
	cur, des := d.current.split(), d.desired.split()
	if cur.conditional || des.conditional {
		d.sectionsInOrder(cur, des)
		return
	}
	cur, des = cur.merged(), des.merged()
	d.eachPair(cur, des, func(have, want *section) {
		same := have.Hash == want.Hash && have.Text == want.Text
		if same && have.defaults == want.defaults {
			return
		}
		d.header(have, want)
		if !same {
			d.sectionChanges(*have, *want)
		}
	})
	d.models()
}

// eachPair finds the sections that both have, and notes those that come and go.
// The order of sections means nothing but for the defaults of a proxy.
func (d *difference) eachPair(cur, des *sectionIndex, compare func(have, want *section)) {
	if sameSections(cur, des) {
		for i := range des.list {
			compare(&cur.list[i], &des.list[i])
		}
		return
	}
	have, want := cur.keys(), des.keys()
	for key, i := range inOrder(want) {
		s := des.list[i]
		s.nth = key.nth
		if at, ok := have[key]; ok {
			compare(&cur.list[at], &s)
		} else {
			d.sectionComes(&s)
		}
	}
	for key, i := range inOrder(have) {
		if _, ok := want[key]; !ok {
			s := cur.list[i]
			s.nth = key.nth
			d.sectionGoes(&s)
		}
	}
}

// inOrder goes through the keys of sections in the order of the text.
func inOrder(keys map[sectionKey]int) iter.Seq2[sectionKey, int] {
	ordered := make([]sectionKey, len(keys))
	for key, i := range keys {
		ordered[i] = key
	}
	return func(yield func(sectionKey, int) bool) {
		for i, key := range ordered {
			if !yield(key, i) {
				return
			}
		}
	}
}

// sameSections reports whether both have the same sections in the same order.
func sameSections(cur, des *sectionIndex) bool {
	if len(cur.list) != len(des.list) {
		return false
	}
	for i := range cur.list {
		if cur.list[i].Name != des.list[i].Name || cur.list[i].Kind != des.list[i].Kind {
			return false
		}
	}
	return true
}

// header compares what stands behind the name of a section, and the defaults
// that apply to it, named or not.
func (d *difference) header(have, want *section) {
	was, is := headerOf(have), headerOf(want)
	if was.from != is.from {
		op := sectionOp(Update, want, "other defaults apply to it")
		op.Changes = []Change{{Field: "defaults", Old: was.from, New: is.from}}
		d.add(rankChange, op, nil)
	}
	if !slices.Equal(was.rest, is.rest) {
		op := sectionOp(Update, want, "the header of a section can change only at a reload")
		op.Changes = []Change{{"header", strings.Join(redactWords(was.rest), " "), strings.Join(redactWords(is.rest), " ")}}
		d.add(rankChange, op, nil)
	}
}

func (d *difference) sectionComes(s *section) {
	if !s.empty() || d.current.main == "" {
		d.add(rankOf(s.Kind, rankSection, rankBackend, rankFrontend), sectionOp(Create, s, "HAProxy reads new sections only at a reload"), nil)
	}
}

func (d *difference) sectionGoes(s *section) {
	if !s.empty() {
		d.add(rankOf(s.Kind, rankSectionGone, rankBackendGone, rankFrontendGone), sectionOp(Delete, s, "HAProxy drops sections only at a reload"), nil)
	}
}

// empty reports whether a section says nothing.
func (s *section) empty() bool {
	return (s.Kind == "" || s.Kind == "global") && len(bodyOf(s.Kind, s.Text)) == 0
}

func rankOf(kind string, section, backend, frontend int) int {
	switch kind {
	case "backend":
		return backend
	case "frontend", "listen":
		return frontend
	}
	return section
}

func sectionOp(a Action, s *section, reason string) Op {
	op := Op{Action: a, Kind: s.Kind, Name: s.Name, Impact: ImpactReload, Reason: reason}
	if op.Kind == "" {
		op.Kind = "preamble"
	}
	if s.nth > 0 {
		op.Name = strings.TrimPrefix(fmt.Sprintf("%s (%d)", op.Name, s.nth+1), " ")
	}
	return op
}

// sectionChanges compares the lines of two versions of a section, group by
// group.
func (d *difference) sectionChanges(have, want section) {
	before, after := bodyOf(have.Kind, have.Text), bodyOf(want.Kind, want.Text)
	j := joinsOf(want.Kind, before, after)
	old, now := groupsOf(want.Kind, before, j), groupsOf(want.Kind, after, j)
	if equalGroups(old, now) {
		return
	}
	if serversApart(old, now) {
		if d.servers(have, want, flatten(old), flatten(now)) {
			return
		}
		// Servers change one by one also where other lines change with them.
		if d.servers(have, want, withServersOf(now, old), flatten(now)) {
			old, now = withoutServerLines(old), withoutServerLines(now)
		}
	}
	d.compareGroups(&want, old, now)
}

func equalGroups(a, b []group) bool {
	return slices.EqualFunc(a, b, func(x, y group) bool {
		return x.name == y.name && slices.EqualFunc(x.lines, y.lines, line.equal)
	})
}

// serversApart reports whether servers can be compared apart from templates:
// whether these stand at the same places among them.
func serversApart(old, now []group) bool {
	was, is := findGroup(old, groupServers), findGroup(now, groupServers)
	template := func(l line) bool { return l.keyword() == "server-template" }
	if !slices.ContainsFunc(was, template) && !slices.ContainsFunc(is, template) {
		return true
	}
	return slices.Equal(serversAndTemplates(was, is), serversAndTemplates(is, was))
}

// serversAndTemplates lists the templates, and the servers that the other side has too.
func serversAndTemplates(lines, other []line) []string {
	var order []string
	for _, l := range lines {
		common := slices.ContainsFunc(other, func(o line) bool { return slices.Equal(firstTwo(o.words), firstTwo(l.words)) })
		if l.keyword() == "server-template" || l.keyword() == "server" && common {
			order = append(order, strings.Join(firstTwo(l.words), " "))
		}
	}
	return order
}

// withServersOf returns the lines of a section with the server lines of
// another version of it. A default-server stays, where both have one.
func withServersOf(groups, other []group) []line {
	var lines []line
	for i, g := range groups {
		if g.name == groupServers {
			return append(append(lines, otherServers(g.lines, other)...), flatten(groups[i+1:])...)
		}
		if g.name > groupServers {
			return append(append(lines, otherServers(nil, other)...), flatten(groups[i:])...)
		}
		lines = append(lines, g.lines...)
	}
	return append(lines, otherServers(nil, other)...)
}

// otherServers is withServersOf for the lines of servers alone.
func otherServers(own []line, other []group) []line {
	var lines []line
	at := 0
	for _, l := range findGroup(other, groupServers) {
		if l.keyword() != "server" {
			for at < len(own) && own[at].keyword() == "server" {
				at++
			}
			if at < len(own) && own[at].keyword() == l.keyword() {
				l, at = own[at], at+1
			}
		}
		lines = append(lines, l)
	}
	return lines
}

func findGroup(groups []group, name string) []line {
	for _, g := range groups {
		if g.name == name {
			return g.lines
		}
	}
	return nil
}

func withoutServerLines(groups []group) []group {
	var rest []group
	for _, g := range groups {
		if g.name == groupServers {
			g.lines = withoutServers(g.lines)
		}
		if len(g.lines) > 0 {
			rest = append(rest, g)
		}
	}
	return rest
}

// reasonFor names the keywords that stand in the way of a runtime change.
func reasonFor(changes []Change) string {
	var keywords []string
	for _, c := range changes {
		for _, text := range []string{c.Old, c.New} {
			keyword, _, _ := strings.Cut(text, " ")
			if !isDirective(keyword) {
				keyword = "line"
			}
			if keyword != "" && !slices.Contains(keywords, keyword) {
				keywords = append(keywords, keyword)
			}
		}
	}
	return onlyAtReload(keywords)
}

func onlyAtReload(keywords []string) string {
	slices.Sort(keywords)
	keywords = slices.Compact(keywords)
	if len(keywords) > 3 {
		return fmt.Sprintf("%s and %d other keywords change only at a reload", strings.Join(keywords[:3], ", "), len(keywords)-3)
	}
	return strings.Join(keywords, ", ") + " can change only at a reload"
}

func isProxy(kind string) bool { return kind == "frontend" || kind == "backend" || kind == "listen" }

// sectionsInOrder compares texts with conditions: nobody but HAProxy knows what
// of them counts, so that every difference and every order does.
func (d *difference) sectionsInOrder(cur, des *sectionIndex) {
	d.eachPair(cur, des, func(have, want *section) {
		changes := lineChanges(meaningfulLines(have.Text), meaningfulLines(want.Text))
		if len(changes) > 0 {
			op := sectionOp(Update, want, reasonFor(changes))
			op.Changes = changes
			d.add(rankChange, op, nil)
		}
	})
	before, after := keysWithin(cur, des), keysWithin(des, cur)
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		op := Op{Action: Update, Kind: "configuration", Impact: ImpactReload, Reason: "among conditions the order of sections may matter"}
		op.Changes = []Change{{"order of sections", "..., " + before[i].String() + ", ...", "..., " + after[i].String() + ", ..."}}
		d.add(rankChange, op, nil)
		return
	}
}

// keysWithin lists the sections that the other configuration has as well.
func keysWithin(x, other *sectionIndex) []sectionKey {
	var keys []sectionKey
	for key, i := range inOrder(x.keys()) {
		if _, ok := other.keys()[key]; ok && len(meaningfulLines(x.list[i].Text)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}
