package dataplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// sectionKey identifies a section: sections may repeat, as "global" does.
type sectionKey struct {
	kind, name string
	nth        int
}

func (k sectionKey) String() string {
	s := k.kind
	if s == "" {
		s = "preamble"
	}
	if k.name != "" {
		s += " " + k.name
	}
	if k.nth > 0 {
		s += fmt.Sprintf(" (%d)", k.nth+1)
	}
	return s
}

// section is one section with what applies to it.
type section struct {
	haproxycfg.Section
	key      sectionKey
	defaults int // index of the defaults section before it, -1 if there is none
}

// sectionIndex finds the sections of one configuration.
type sectionIndex struct {
	list  []section
	byKey map[sectionKey]int

	// conditional says that there are .if blocks: what of the text HAProxy
	// reads, it alone knows.
	conditional bool
}

func indexSections(text string) *sectionIndex {
	parts := haproxycfg.Split(text)
	x := &sectionIndex{list: make([]section, len(parts)), byKey: make(map[sectionKey]int, len(parts)), conditional: hasConditions(text)}
	defaults := -1
	for i, s := range parts {
		key := sectionKey{kind: s.Kind, name: s.Name}
		for _, taken := x.byKey[key]; taken; _, taken = x.byKey[key] {
			key.nth++
		}
		x.byKey[key] = i
		x.list[i] = section{Section: s, key: key, defaults: defaults}
		if s.Kind == "defaults" {
			defaults = i
		}
	}
	return x
}

// hasConditions reports whether a line starts with ".if".
func hasConditions(text string) bool {
	if !strings.Contains(text, ".if") {
		return false
	}
	for l := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(l, " \t"), ".if") {
			return true
		}
	}
	return false
}

// defaultsOf returns the defaults section that applies to a proxy: the one it
// names with "from", or else the last before it.
func (x *sectionIndex) defaultsOf(s section) (section, bool) {
	if d, ok := x.namedBy(s); ok {
		return d, true
	}
	if s.defaults < 0 {
		return section{}, false
	}
	return x.list[s.defaults], true
}

// namedBy returns the defaults section that a proxy, or another defaults
// section, names with "from".
func (x *sectionIndex) namedBy(s section) (section, bool) {
	_, text, ok := strings.Cut(headerOf(s.Section), " from ")
	if !ok {
		return section{}, false
	}
	words, _ := haproxycfg.Fields(text)
	if len(words) == 0 {
		return section{}, false
	}
	i, ok := x.byKey[sectionKey{kind: "defaults", name: words[0]}]
	if !ok {
		return section{}, false
	}
	return x.list[i], true
}

// inherited returns all defaults sections that apply to a proxy, the most
// distant first: each may name another one.
func (x *sectionIndex) inherited(s section) []section {
	var chain []section
	for d, ok := x.defaultsOf(s); ok && len(chain) < len(x.list); d, ok = x.namedBy(d) {
		chain = append(chain, d)
	}
	slices.Reverse(chain)
	return chain
}

func headerOf(s haproxycfg.Section) string {
	n := s.Header - s.Line
	for line := range strings.Lines(s.Text) {
		if n == 0 {
			return strings.ReplaceAll(line, "\t", " ")
		}
		n--
	}
	return ""
}

func (d *difference) sections() {
	cur, des := d.current.split(), d.desired.split()
	sameOrder := len(cur.list) == len(des.list)
	for i := range des.list {
		want := des.list[i]
		have, ok := section{}, false
		if i < len(cur.list) && cur.list[i].key == want.key {
			have, ok = cur.list[i], true // nearly always
		} else {
			sameOrder = false
			var at int
			if at, ok = cur.byKey[want.key]; ok {
				have = cur.list[at]
			}
		}
		switch {
		case !ok:
			d.sectionComes(want)
		case have.Hash != want.Hash || have.Text != want.Text:
			d.sectionChanges(have, want)
		}
	}
	if sameOrder {
		return
	}
	for _, have := range cur.list {
		if _, ok := des.byKey[have.key]; !ok {
			d.sectionGoes(have)
		}
	}
	d.order(cur, des)
}

func (d *difference) sectionComes(s section) {
	if len(meaningfulLines(s.Text)) == 0 {
		return
	}
	d.add(rankSection, sectionOp(Create, s, "HAProxy reads new sections only at a reload"), nil)
}

func (d *difference) sectionGoes(s section) {
	if len(meaningfulLines(s.Text)) == 0 {
		return
	}
	d.add(rankSection, sectionOp(Delete, s, "HAProxy drops sections only at a reload"), nil)
}

func sectionOp(a Action, s section, reason string) Op {
	op := Op{Action: a, Kind: s.key.kind, Name: s.key.name, Impact: ImpactReload, Reason: reason}
	if op.Kind == "" {
		op.Kind = "preamble"
	}
	if s.key.nth > 0 {
		op.Name = strings.TrimPrefix(fmt.Sprintf("%s (%d)", op.Name, s.key.nth+1), " ")
	}
	return op
}

func (d *difference) sectionChanges(have, want section) {
	old, now := meaningfulLines(have.Text), meaningfulLines(want.Text)
	if slices.EqualFunc(old, now, line.equal) {
		return
	}
	if d.servers(have, want, old, now) {
		return
	}
	changes := lineChanges(old, now)
	op := sectionOp(Update, want, reasonFor(changes))
	op.Changes = changes
	d.add(rankSection, op, nil)
}

// reasonFor names the keywords that stand in the way of a runtime change.
func reasonFor(changes []Change) string {
	var keywords []string
	for _, c := range changes {
		for _, text := range []string{c.Old, c.New} {
			keyword, _, _ := strings.Cut(text, " ")
			if keyword != "" && !slices.Contains(keywords, keyword) {
				keywords = append(keywords, keyword)
			}
		}
	}
	slices.Sort(keywords)
	if len(keywords) > 3 {
		return fmt.Sprintf("%s and %d other keywords change only at a reload", strings.Join(keywords[:3], ", "), len(keywords)-3)
	}
	return strings.Join(keywords, ", ") + " can change only at a reload"
}

// order compares the order of the sections that both have. It matters for
// everything but the proxies that only name each other, as long as the same
// defaults section precedes them.
func (d *difference) order(cur, des *sectionIndex) {
	common := func(x, other *sectionIndex, take func(section) bool) []string {
		var keys []string
		for _, s := range x.list {
			if _, ok := other.byKey[s.key]; ok && take(s) {
				keys = append(keys, s.key.String())
			}
		}
		return keys
	}
	all := func(section) bool { return true }
	before, after := common(cur, des, all), common(des, cur, all)
	if slices.Equal(before, after) {
		d.movedDefaults(cur, des)
		return
	}
	op := Op{Action: Update, Kind: "configuration", Changes: []Change{movedSection(before, after)}}
	fixed := func(s section) bool { return s.Kind != "backend" }
	if !slices.Equal(common(cur, des, fixed), common(des, cur, fixed)) {
		op.Impact, op.Reason = ImpactReload, "the order of sections other than backends may matter"
	}
	d.add(rankSection, op, nil)
	d.movedDefaults(cur, des)
}

// movedSection names the first section that another stands in place of.
func movedSection(before, after []string) Change {
	for i := range before {
		if before[i] != after[i] {
			return Change{Field: "order of sections", Old: "..., " + before[i] + ", ...", New: "..., " + after[i] + ", ..."}
		}
	}
	return Change{Field: "order of sections"}
}

// movedDefaults shows the proxies that fall under another defaults section
// without a change of their own text.
func (d *difference) movedDefaults(cur, des *sectionIndex) {
	for _, want := range des.list {
		at, ok := cur.byKey[want.key]
		if !ok || !isProxy(want.Kind) {
			continue
		}
		old, hadOld := cur.defaultsOf(cur.list[at])
		now, hasNow := des.defaultsOf(want)
		if hadOld == hasNow && (!hadOld || old.key == now.key) {
			continue
		}
		op := sectionOp(Update, want, "other defaults apply to it")
		op.Changes = []Change{{Field: "defaults", Old: keyName(old, hadOld), New: keyName(now, hasNow)}}
		d.add(rankSection, op, nil)
	}
}

func keyName(s section, ok bool) string {
	if !ok {
		return ""
	}
	return s.key.String()
}

func isProxy(kind string) bool { return kind == "frontend" || kind == "backend" || kind == "listen" }
