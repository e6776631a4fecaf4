package dataplane

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/internal/haproxymodel"
)

// maxModelled bounds how many pairs of lines are read into models, which takes
// some hundred times as long as comparing them. Beyond it a plan shows lines
// instead of fields.
const maxModelled = 500

// linePair is what the fields that differ depend on.
type linePair struct{ kind, old, now string }

// readFields finds the fields that differ. One pass of the parser reads all
// lines, each as a section of its own, and equal pairs only once.
func readFields(edits []edit) {
	pairs := make(map[linePair]int)
	var inputs []haproxymodel.Input
	for i := range edits {
		p, ok := edits[i].pair()
		if _, known := pairs[p]; !ok || known || len(pairs) == maxModelled {
			continue
		}
		pairs[p] = len(inputs)
		inputs = append(inputs, p.input(p.old), p.input(p.now))
	}
	if len(inputs) == 0 {
		return
	}
	sections := haproxymodel.Parse(inputs)
	for i := range edits {
		p, ok := edits[i].pair()
		if at, parsed := pairs[p]; ok && parsed {
			edits[i].fields = fieldsBetween(sections[at], sections[at+1], edits[i].child != nil)
		}
	}
}

// fieldsBetween returns the fields in which two sections of one line differ,
// nil where the models do not hold all of it.
func fieldsBetween(old, now *haproxymodel.Section, child bool) []haproxymodel.Field {
	if old.Err() != nil || now.Err() != nil || len(haproxymodel.DiffLines(old, now)) > 0 {
		return nil
	}
	differences := haproxymodel.Diff(old, now)
	if len(differences) != 1 || differences[0].Action != haproxymodel.Update || (differences[0].Child != nil) != child {
		return nil
	}
	fields := differences[0].Fields
	if !child && slices.ContainsFunc(fields, ofList) {
		return nil // its place in the list is that among one line
	}
	told := func(f haproxymodel.Field) bool { return f.Old == "{}" || f.New == "{}" } // by other fields
	if slices.ContainsFunc(fields, func(f haproxymodel.Field) bool { return !told(f) }) {
		fields = slices.DeleteFunc(slices.Clone(fields), told)
	}
	return fields
}

// ofList reports whether a field is within a list.
func ofList(f haproxymodel.Field) bool {
	return slices.ContainsFunc(strings.Split(f.Name, "."), func(name string) bool {
		_, err := strconv.Atoi(name)
		return err == nil
	})
}

// pair returns the lines of an edit whose fields may tell more than they do.
func (e *edit) pair() (linePair, bool) {
	if e.moved != nil || e.child != nil && (e.old == nil || e.now == nil) {
		return linePair{}, false
	}
	p := linePair{kind: e.section.Kind}
	for _, side := range []struct {
		line *line
		text *string
	}{{e.old, &p.old}, {e.now, &p.now}} {
		if side.line == nil {
			continue
		}
		if side.line.words == nil {
			return p, false
		}
		*side.text = side.line.raw
	}
	return p, haproxymodel.KindOf(p.kind) != nil
}

func (p linePair) input(line string) haproxymodel.Input {
	header := p.kind
	if !haproxymodel.KindOf(p.kind).Single {
		header += " x"
	}
	s := haproxycfg.Section{Kind: p.kind, Line: 1, Header: 1, Text: header + "\n  " + line + "\n"}
	if header != p.kind {
		s.Name = "x"
	}
	return haproxymodel.Input{Section: s}
}
