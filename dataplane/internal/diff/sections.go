package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// sections compares the texts section by section.
func (d *difference) sections() {
	cur, des := d.current.Index(), d.desired.Index()
	if !d.whole {
		d.stretches = config.Stretches(cur, des)
		if d.apart(d.stretches) {
			return
		}
	}
	if cur.SameKeys(des) {
		for i := range des.List {
			d.section(cur.List[i], des.List[i])
		}
		return
	}
	var common []config.Key
	listed, wanted := cur.Numbered(), des.Numbered()
	for _, s := range wanted {
		if have := cur.Find(s.Key()); have != nil {
			d.section(have, s)
			common = append(common, s.Key())
		} else {
			d.sectionComes(s)
		}
	}
	var before []config.Key
	for _, s := range listed {
		if des.Find(s.Key()) == nil {
			d.sectionGoes(s)
		} else {
			before = append(before, s.Key())
		}
	}
	d.sectionOrder(before, common)
}

// sectionOrder compares the order of the sections that both texts have. The order matters for
// sections that affect the sections below them. Between two of those, the others may change
// places.
func (d *difference) sectionOrder(before, after []config.Key) {
	bound := func(k config.Key) bool {
		return d.conditional() || k.Kind == "" || k.Kind == "global" || k.Kind == "defaults" || k.Kind == "crt-store"
	}
	before, after = sortRuns(before, bound), sortRuns(after, bound)
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		d.rearranged = true
		d.add(rankChange, change.Step{
			Action: change.Update, Kind: "configuration", Impact: change.Reload, Reason: "the order of these sections counts",
			Fields: []change.Field{{Name: "order of sections", Old: before[i].String(), New: after[i].String()}},
		})
		return
	}
}

func (d *difference) conditional() bool {
	return d.current.Index().Conditional() || d.desired.Index().Conditional()
}

// sortRuns sorts each run of keys between two bound ones.
func sortRuns(keys []config.Key, bound func(config.Key) bool) []config.Key {
	start := 0
	for i := 0; i <= len(keys); i++ {
		if i == len(keys) || bound(keys[i]) {
			slices.SortFunc(keys[start:i], func(a, b config.Key) int { return strings.Compare(a.String(), b.String()) })
			start = i + 1
		}
	}
	return keys
}

func (d *difference) sectionComes(s *config.Section) {
	if saysNothing(s) && d.current.Size() > 0 {
		return
	}
	step := sectionStep(change.Create, s)
	step.Needs(whyNewSection)
	if s.Kind == "backend" {
		step = d.backendComes(s)
	}
	d.wholeSection(step, s, rankSection, rankBackend, rankFrontend)
}

func (d *difference) sectionGoes(s *config.Section) {
	if saysNothing(s) {
		return
	}
	step := sectionStep(change.Delete, s)
	step.Needs(whyOldSection)
	if s.Kind == "backend" {
		step = d.backendGoes(s)
	}
	d.wholeSection(step, s, rankSectionGone, rankBackendGone, rankFrontendGone)
}

func saysNothing(s *config.Section) bool {
	return (s.Kind == "" || s.Kind == "global") && len(s.Lines()) == 0
}

func (d *difference) wholeSection(step change.Step, s *config.Section, r, backend, frontend rank) {
	d.rearranged = d.rearranged || s.Nth > 0
	switch s.Kind {
	case "backend":
		r = backend
	case "frontend", "listen":
		r = frontend
	}
	d.add(r, step)
}

// sectionStep returns a step about a whole section.
func sectionStep(action change.Action, s *config.Section) change.Step {
	step := change.Step{Action: action, Kind: s.Kind, Name: s.Name}
	if step.Kind == "" {
		step.Kind = "preamble"
	}
	if s.Nth > 0 {
		step.Name = strings.TrimPrefix(fmt.Sprintf("%s (%d)", step.Name, s.Nth+1), " ")
	}
	return step
}

// section compares two versions of a section.
func (d *difference) section(have, want *config.Section) {
	same := have.Text == want.Text
	d.header(have, want, same)
	if same {
		return
	}
	before, after := have.Lines(), want.Lines()
	if slices.EqualFunc(before, after, config.Line.Equal) {
		return
	}
	defer d.spareChanges(want, len(d.steps))
	if d.servers(have, want, before, after) {
		before, after = withoutServers(before), withoutServers(after)
	}
	edits := editsBetween(before, after)
	if moves(edits) {
		if a, b, ok := d.normalForms(have, want, before, after); ok {
			edits = editsBetween(a, b)
		}
	}
	d.lines(want, edits)
}

// header compares the words after the name of a section, and the defaults that apply to it,
// named or not.
func (d *difference) header(have, want *config.Section, same bool) {
	if same && have.Above == want.Above {
		return
	}
	was, is := have.Header(), want.Header()
	note := func(name, old, now, reason string) {
		step := sectionStep(change.Update, want)
		step.Fields = []change.Field{{Name: name, Old: old, New: now}}
		step.Needs(reason)
		d.add(rankChange, step)
	}
	if was.From != is.From {
		note("defaults", was.From, is.From, "other defaults apply to it")
	}
	if !slices.Equal(was.Rest, is.Rest) {
		shown := func(words []string) string { return strings.Join(haproxycfg.RedactWords(words), " ") }
		note("header", shown(was.Rest), shown(is.Rest), "the header of a section can change only at a reload")
	}
}

// maxNormalised bounds the sections that are brought into the normal form, which takes some
// hundred times as long as comparing them. Above it the text decides.
const maxNormalised = 1000

// normalForms brings the lines of two versions of a section into the order that the Dataplane
// API gives them. It reports false if the API would lose or change a line.
func (d *difference) normalForms(have, want *config.Section, before, after []config.Line) (a, b []config.Line, ok bool) {
	d.normalised++
	if d.normalised > maxNormalised || want.Kind == "" {
		return nil, nil, false
	}
	a, ok = normalForm(have, before)
	if ok {
		b, ok = normalForm(want, after)
	}
	return a, b, ok
}

func normalForm(s *config.Section, lines []config.Line) ([]config.Line, bool) {
	var text strings.Builder
	text.WriteString(strings.TrimSpace(s.Kind+" "+s.Name) + "\n")
	for _, l := range lines {
		text.WriteString("  " + l.Raw + "\n")
	}
	normal, err := haproxycfg.Normalise(text.String())
	if err != nil {
		return nil, false
	}
	x := config.Empty().With(normal).Index()
	for _, n := range x.List {
		if n.Kind == s.Kind && n.Name == s.Name {
			in := n.Lines()
			return in, keepsWords(lines, in)
		}
	}
	return nil, false
}

// moves reports whether a line that comes has the same words, or the same keyword, as a line
// that goes. Only then can the normal form show a smaller difference.
func moves(edits []edit) bool {
	gone := make(map[string]bool)
	for _, e := range edits {
		if e.old != nil {
			gone[wordsOf(*e.old)] = true
		}
		if e.now == nil {
			gone[e.old.Keyword()] = true
		}
	}
	return slices.ContainsFunc(edits, func(e edit) bool {
		return e.now != nil && (gone[wordsOf(*e.now)] || e.old == nil && gone[e.now.Keyword()])
	})
}

// wordsOf returns the same string for lines with the same words in any order.
func wordsOf(l config.Line) string {
	return strings.Join(slices.Sorted(slices.Values(l.Words)), "\x00")
}

// keepsWords reports whether each line of the normal form has all words of one line of
// the text. The Dataplane API loses words that it does not understand.
func keepsWords(text, normal []config.Line) bool {
	known := make(map[string]bool, len(text))
	for _, l := range text {
		known[wordsOf(l)] = true
	}
	return !slices.ContainsFunc(normal, func(l config.Line) bool { return !known[wordsOf(l)] })
}
