package dataplane

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/internal/haproxymodel"
)

// structuredChange is one change within a transaction.
type structuredChange struct {
	method string
	target string // path and query below the configuration
	body   []byte // may hold secrets
	what   string // for errors: "backend shop: server s1"
}

// sectionPair is a section that differs, before and after; nil where it is not.
type sectionPair struct {
	key      string
	old, new *haproxymodel.Section
}

// kindRank orders kinds of sections: what others refer to comes first.
var kindRank = map[string]int{
	"global": 0, "traces": 1, "log-profile": 2, "ring": 3, "log-forward": 4, "crt-store": 5, "acme": 6, "cache": 7,
	"userlist": 8, "resolvers": 9, "peers": 10, "mailers": 11, "http-errors": 12, "defaults": 13, "fcgi-app": 14,
	"program": 15, "backend": 16, "frontend": 17,
}

// wholeSections are the kinds that the API takes with all their children. It
// says so of others as well, but then loses the name servers of resolvers, for
// one.
var wholeSections = map[string]bool{"global": true, "defaults": true, "frontend": true, "backend": true}

// structuredChanges lists the changes that make one normal text of another:
// sections that come or change in the order in which they refer to each other,
// then those that go, the other way round. It fails with [ErrUnsupported] for a
// line that differs and that the models of the API cannot hold.
func (c *Client) structuredChanges(desired *Config, before, after string) ([]structuredChange, error) {
	var changes []structuredChange
	pairs := sectionPairs(before, after)
	for _, p := range pairs {
		if p.new == nil {
			continue
		}
		more, err := p.changes()
		if err != nil {
			return nil, c.unmodelled(desired, err)
		}
		changes = append(changes, more...)
	}
	for _, p := range slices.Backward(pairs) {
		if p.new != nil {
			continue
		}
		if p.old.Kind == nil {
			return nil, c.unmodelled(desired, p.old.Err())
		}
		changes = append(changes, structuredChange{method: http.MethodDelete, target: p.old.Kind.Target(p.old.Name), what: p.key})
	}
	return changes, nil
}

// lineError says that a line differs that the models cannot hold.
type lineError struct{ section, text, why string }

func (e *lineError) Error() string { return e.section + ": " + redactRaw(e.text) + ": " + e.why }

// unmodelled makes an [*Error] of it with the line of the desired text.
func (c *Client) unmodelled(desired *Config, err error) error {
	e := &Error{Endpoint: c.Name(), Stage: "check", File: configFile, Err: ErrUnsupported}
	if err == nil {
		e.Output = "the Dataplane API knows no such section"
		return e
	}
	e.Output = err.Error()
	l, ok := err.(*lineError)
	if !ok {
		return e
	}
	section := ""
	for _, s := range haproxycfg.Split(desired.Main()) {
		section = ownedSection(s)
		at := s.Line
		for text := range strings.Lines(s.Text) {
			if section == "section "+l.section && strings.Join(strings.Fields(text), " ") == strings.Join(strings.Fields(l.text), " ") {
				e.Line = at
				return e
			}
			at++
		}
	}
	return e
}

// sectionPairs lists the sections that differ.
func sectionPairs(before, after string) []sectionPair {
	old, now := map[string]haproxycfg.Section{}, map[string]haproxycfg.Section{}
	var keys []string
	for _, s := range haproxycfg.Split(before) {
		old[ownedSection(s)] = s
		keys = append(keys, ownedSection(s))
	}
	for _, s := range haproxycfg.Split(after) {
		key := ownedSection(s)
		if _, ok := old[key]; !ok {
			keys = append(keys, key)
		}
		now[key] = s
	}
	var pairs []sectionPair
	var inputs []haproxymodel.Input
	for _, key := range keys {
		was, hadOld := old[key]
		is, hasNew := now[key]
		if hadOld && hasNew && equalSections(was.Text, is.Text) || was.Kind+is.Kind == "" {
			continue
		}
		pairs = append(pairs, sectionPair{key: strings.TrimPrefix(key, "section ")})
		was.Text, is.Text = withoutGivenNames(was.Text), withoutGivenNames(is.Text)
		if hadOld {
			inputs = append(inputs, haproxymodel.Input{Section: was})
		}
		if hasNew {
			inputs = append(inputs, haproxymodel.Input{Section: is})
		}
	}
	parsed := haproxymodel.Parse(inputs)
	for i := range pairs {
		key := "section " + pairs[i].key
		if _, ok := old[key]; ok {
			pairs[i].old, parsed = parsed[0], parsed[1:]
		}
		if _, ok := now[key]; ok {
			pairs[i].new, parsed = parsed[0], parsed[1:]
		}
	}
	rank := func(p sectionPair) int {
		kind, _, _ := strings.Cut(p.key, " ")
		return kindRank[kind]
	}
	slices.SortStableFunc(pairs, func(a, b sectionPair) int { return cmp.Compare(rank(a), rank(b)) })
	return pairs
}

// withoutGivenNames takes from the bind lines of a section the names that the API
// has given them: a bind that has none is called by its address.
func withoutGivenNames(text string) string {
	if !strings.Contains(text, " name ") {
		return text
	}
	var b strings.Builder
	for l := range strings.Lines(text) {
		words := strings.Fields(l)
		if len(words) > 3 && (words[0] == "bind" || words[0] == "dgram-bind") {
			l = strings.Replace(l, " name "+words[1], "", 1)
		}
		b.WriteString(l)
	}
	return b.String()
}

// same reports whether both mean the same.
func (p *sectionPair) same() bool {
	return p.old != nil && p.new != nil && p.old.Kind != nil && p.old.Err() == nil && p.new.Err() == nil &&
		p.old.From == p.new.From && len(haproxymodel.Diff(p.old, p.new)) == 0 && len(haproxymodel.DiffLines(p.old, p.new)) == 0
}

// changes lists what makes new of old.
func (p *sectionPair) changes() ([]structuredChange, error) {
	if p.new.Kind == nil {
		return nil, &lineError{section: p.key, why: "the Dataplane API knows no such section"}
	}
	if err := p.new.Err(); err != nil {
		return nil, &lineError{section: p.key, why: err.Error()}
	}
	if p.old == nil {
		if lines := p.new.Unmodelled(); len(lines) > 0 {
			return nil, &lineError{p.key, lines[0].Text, "the models of the Dataplane API cannot hold this line"}
		}
		return p.create()
	}
	lines := haproxymodel.DiffLines(p.old, p.new)
	moved := len(lines) > 0
	for _, l := range lines {
		moved = moved && l.Action == haproxymodel.Update
	}
	if len(lines) > 0 && (!moved || len(p.new.Unmodelled()) > 0) {
		return nil, &lineError{p.key, lines[0].Line.Text, "the models of the Dataplane API cannot hold this line"}
	}
	differences := haproxymodel.Diff(p.old, p.new)
	if moved || p.new.Kind.NoUpdate && changesSection(differences) || !appends(p.new, differences) {
		return p.recreate()
	}
	return p.update(differences)
}

// changesSection reports whether the section's own fields change.
func changesSection(differences []haproxymodel.Difference) bool {
	return slices.ContainsFunc(differences, func(d haproxymodel.Difference) bool { return d.Child == nil || d.Child.Inline() })
}

// appends reports whether all new children that have names stand behind the
// others of their kind: the API adds them there.
func appends(s *haproxymodel.Section, differences []haproxymodel.Difference) bool {
	fresh := map[string]bool{}
	for _, d := range differences {
		if d.Child != nil && d.Child.ByName() && d.Action == haproxymodel.Create {
			fresh[d.Child.Words+" "+d.Name] = true
		}
	}
	seen := map[string]bool{} // words of which a fresh one has come
	for _, l := range s.Lines() {
		words := strings.Fields(l.Text)
		if len(words) < 2 || len(fresh) == 0 {
			continue
		}
		if fresh[words[0]+" "+words[1]] {
			seen[words[0]] = true
		} else if seen[words[0]] {
			return false
		}
	}
	return true
}

// recreate deletes the section and makes it again, in the order of its lines.
func (p *sectionPair) recreate() ([]structuredChange, error) {
	if lines := p.new.Unmodelled(); len(lines) > 0 {
		return nil, &lineError{p.key, lines[0].Text, "the models of the Dataplane API cannot hold this line"}
	}
	created, err := p.create()
	if err != nil || p.new.Kind.Single {
		return created, err
	}
	gone := structuredChange{method: http.MethodDelete, target: p.new.Kind.Target(p.new.Name), what: p.key}
	return append([]structuredChange{gone}, created...), nil
}

// create makes a section. Children by name, of which the API would forget the
// order, follow one by one.
func (p *sectionPair) create() ([]structuredChange, error) {
	kind := p.new.Kind
	empty := haproxymodel.Parse([]haproxymodel.Input{{Section: haproxycfg.Section{
		Kind: kind.Name, Name: p.new.Name, Line: 1, Header: 1, Text: strings.TrimSpace(kind.Name+" "+p.new.Name) + "\n",
	}}})[0]
	differences := haproxymodel.Diff(empty, p.new)
	named := map[*haproxymodel.Child]int{}
	most := 0
	for _, d := range differences {
		if d.Child != nil && d.Child.ByName() && !d.Child.Inline() {
			named[d.Child]++
			most = max(most, named[d.Child])
		}
	}
	whole := wholeSections[kind.Name] && most <= 1
	apart := slices.ContainsFunc(kind.Children, func(c haproxymodel.Child) bool { return !c.Inline() })
	body, query := p.new.SectionBody, ""
	switch {
	case whole:
		body, query = p.new.FullBody, "?full_section=true"
	case !apart:
		body = p.new.FullBody
	}
	content, err := body()
	if err != nil {
		return nil, err
	}
	head := structuredChange{method: http.MethodPost, target: kind.Path + query, body: content, what: p.key}
	if kind.Single && (kind.Name == "global" || p.old != nil) {
		head.method = http.MethodPut
	}
	if whole || !apart {
		return []structuredChange{head}, nil
	}
	children, err := p.children(differences)
	return append([]structuredChange{head}, children...), err
}

// update changes a section in place.
func (p *sectionPair) update(differences []haproxymodel.Difference) ([]structuredChange, error) {
	var changes []structuredChange
	if changesSection(differences) {
		body, err := p.new.SectionBody()
		if err != nil {
			return nil, err
		}
		changes = append(changes, structuredChange{
			method: http.MethodPut, target: p.new.Kind.Target(p.new.Name), body: body, what: p.key,
		})
	}
	children, err := p.children(differences)
	return append(changes, children...), err
}

// children changes children: positions are deleted from the last on and created
// from the first on, so that each is right when its turn comes; what changes in
// its place does so then.
func (p *sectionPair) children(differences []haproxymodel.Difference) ([]structuredChange, error) {
	var own []haproxymodel.Difference
	for _, d := range differences {
		if d.Child != nil && !d.Child.Inline() {
			own = append(own, d)
		}
	}
	lineOf := map[string]int{}
	for i, l := range p.new.Lines() {
		if words := strings.Fields(l.Text); len(words) > 1 {
			lineOf[words[0]+" "+words[1]] = i
		}
	}
	step := map[haproxymodel.Action]int{haproxymodel.Delete: 0, haproxymodel.Create: 1, haproxymodel.Update: 2}
	slices.SortStableFunc(own, func(a, b haproxymodel.Difference) int {
		switch {
		case a.Child != b.Child:
			return 0
		case a.Action != b.Action:
			return cmp.Compare(step[a.Action], step[b.Action])
		case a.Action == haproxymodel.Delete:
			return cmp.Compare(b.OldIndex, a.OldIndex)
		case a.Child.ByName():
			return cmp.Compare(lineOf[a.Child.Words+" "+a.Name], lineOf[b.Child.Words+" "+b.Name])
		}
		return cmp.Compare(a.NewIndex, b.NewIndex)
	})
	var changes []structuredChange
	for _, d := range own {
		change, err := p.child(d)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func (p *sectionPair) child(d haproxymodel.Difference) (structuredChange, error) {
	change := structuredChange{what: strings.TrimSpace(fmt.Sprintf("%s: %s %s", p.key, d.Child.Kind, d.Name))}
	section := p.new.Name
	var err error
	switch d.Action {
	case haproxymodel.Delete:
		change.method, change.target = http.MethodDelete, d.Child.Target(section, d.Name, d.OldIndex)
		if d.Child.NoUpdate {
			change.body, err = json.Marshal(d.Old)
		}
		return change, err
	case haproxymodel.Create:
		change.method, change.target = http.MethodPost, d.Child.Target(section, d.Name, d.NewIndex)
		if d.Child.ByName() {
			change.target = d.Child.Collection(section)
		}
	default:
		change.method, change.target = http.MethodPut, d.Child.Target(section, d.Name, d.NewIndex)
	}
	change.body, err = d.Body()
	return change, err
}
