package haproxymodel

import (
	"slices"
	"strings"
)

// Unmodelled returns the lines that the model does not hold faithfully, in the
// order of the text: what client-native does not know, loses or changes. Every
// word of the section is in the model or in one of them. For a section with an
// error these are all lines.
func (s *Section) Unmodelled() []Line {
	if s.err != nil {
		return s.Lines()
	}
	var lost []Line
	for _, l := range s.accountAll() {
		lost = append(lost, l.Line)
	}
	return lost
}

func (s *Section) accountAll() []line {
	a := newAccount(s)
	var lost []line
	for i, l := range s.lines {
		if (i == 0 && s.oddHeader) || !a.take(l) {
			lost = append(lost, l)
		}
	}
	return lost
}

// account matches lines of a text with those that the model holds.
type account struct {
	s    *Section
	used map[*Child]held
}

func newAccount(s *Section) *account { return &account{s, map[*Child]held{}} }

// take reports whether the model holds the line. Children count one by one;
// of the section's own directives equal ones mean the same as one.
func (a *account) take(l line) bool {
	holds, key := a.s.heldBy(l.Child), loose(l.words)
	if l.Child == nil {
		return holds[key] > 0
	}
	if a.used[l.Child] == nil {
		a.used[l.Child] = held{}
	}
	if a.used[l.Child][key] >= holds[key] {
		return false
	}
	a.used[l.Child][key]++
	return true
}

// LineDifference is a line that makes a difference which no [Difference] shows.
type LineDifference struct {
	Action Action // Create, Delete; Update for a line that only moved
	Line   Line   // in the new section, in the old one for Delete
}

// DiffLines returns the differences between two sections that [Diff] cannot
// see: lines that the models do not hold, and the order of lines where it means
// something and the models do not keep it (servers, error files, ...). When
// Diff and DiffLines are both empty, the sections mean the same. Of sections
// with an error it compares all lines. First come deleted lines, then created
// ones, then those that moved, each in the order of their text.
func DiffLines(old, new *Section) []LineDifference {
	if old.err != nil || new.err != nil || old.Kind != new.Kind {
		return diffText(old.lines, new.lines)
	}
	onlyOld, onlyNew := cancel(old.lines, new.lines)
	var differences []LineDifference
	if len(onlyOld)+len(onlyNew) > 0 {
		gone, come := unexplained(old, new, onlyOld, onlyNew)
		differences = list(Delete, gone, differences)
		differences = list(Create, come, differences)
	}
	return list(Update, moved(old, new), differences)
}

func list(action Action, lines []line, to []LineDifference) []LineDifference {
	for _, l := range lines {
		to = append(to, LineDifference{action, l.Line})
	}
	return to
}

// diffText compares texts of which no model is known: every line, and the
// order of all.
func diffText(old, new []line) []LineDifference {
	matches := align(keysOf(old), keysOf(new))
	inOld, inNew := map[int]bool{}, map[int]bool{}
	for _, m := range matches {
		inOld[m.old], inNew[m.new] = true, true
	}
	var differences []LineDifference
	for i, l := range old {
		if !inOld[i] {
			differences = append(differences, LineDifference{Delete, l.Line})
		}
	}
	for i, l := range new {
		if !inNew[i] {
			differences = append(differences, LineDifference{Create, l.Line})
		}
	}
	return differences
}

func keysOf(lines []line) []string {
	keys := make([]string, len(lines))
	for i, l := range lines {
		keys[i] = l.exact
	}
	return keys
}

// cancel leaves out the lines that both have.
func cancel(old, new []line) (onlyOld, onlyNew []line) {
	count := make(map[string]int, len(old))
	for _, l := range old {
		if l.Child == nil {
			count[l.exact] = 1
		} else {
			count[l.exact]++
		}
	}
	seen := map[string]bool{}
	for _, l := range new {
		switch {
		case l.Child == nil && seen[l.exact]:
		case count[l.exact] > 0:
			count[l.exact]--
		default:
			onlyNew = append(onlyNew, l)
		}
		seen[l.exact] = true
	}
	for i := len(old) - 1; i >= 0; i-- { // what is left over are the last ones
		if l := old[i]; count[l.exact] > 0 {
			count[l.exact]--
			onlyOld = append(onlyOld, l)
		}
	}
	slices.Reverse(onlyOld)
	return onlyOld, onlyNew
}

// unexplained returns those of the lines that only one section has which the
// models do not account for. A line is explained when the model of its section
// holds it and the other model does not: then the models differ, and Diff says
// so. Two lines that the models hold alike explain each other.
func unexplained(old, new *Section, onlyOld, onlyNew []line) (gone, come []line) {
	heldOld, gone := partition(old, onlyOld)
	heldNew, come := partition(new, onlyNew)
	type key struct {
		child *Child
		loose string
	}
	pairs := map[key]int{}
	for _, l := range heldOld {
		pairs[key{l.Child, loose(l.words)}]++
	}
	explained := map[key]int{}
	for _, l := range heldNew {
		k := key{l.Child, loose(l.words)}
		if pairs[k] > 0 {
			pairs[k]--
			continue
		}
		if new.heldBy(l.Child)[k.loose]-old.heldBy(l.Child)[k.loose] > explained[k] {
			explained[k]++
			continue
		}
		come = append(come, l)
	}
	clear(explained)
	for _, l := range heldOld {
		k := key{l.Child, loose(l.words)}
		if pairs[k] <= 0 {
			continue
		}
		pairs[k]--
		if old.heldBy(l.Child)[k.loose]-new.heldBy(l.Child)[k.loose] > explained[k] {
			explained[k]++
			continue
		}
		gone = append(gone, l)
	}
	byNumber := func(a, b line) int { return a.Number - b.Number }
	slices.SortStableFunc(gone, byNumber)
	slices.SortStableFunc(come, byNumber)
	return gone, come
}

// partition parts lines that the model of their section holds from the others.
func partition(s *Section, lines []line) (held, lost []line) {
	a := newAccount(s)
	for _, l := range lines {
		if !(s.oddHeader && l.Number == s.lines[0].Number) && a.take(l) {
			held = append(held, l)
		} else {
			lost = append(lost, l)
		}
	}
	return held, lost
}

// moved returns lines of new that stand in another order than in old, where
// the order means something and is not told by Diff.
func moved(old, new *Section) []line {
	was, is := orderGroups(old.lines), orderGroups(new.lines)
	var found []line
	for group, now := range is {
		before := was[group]
		if group[0] == '=' { // only the last one counts
			if len(before) > 0 && before[len(before)-1].key != now[len(now)-1].key && sameSet(before, now) {
				found = append(found, now[len(now)-1].line)
			}
			continue
		}
		before, now = shared(before, now)
		if slices.EqualFunc(before, now, func(a, b orderedLine) bool { return a.key == b.key }) {
			continue
		}
		if c := now[0].line.Child; c != nil && group == c.Words && c.slice && holdsAll(old, c) && holdsAll(new, c) {
			continue // Diff tells
		}
		stays := map[int]bool{}
		for _, m := range align(orderKeys(before), orderKeys(now)) {
			stays[m.new] = true
		}
		for i, l := range now {
			if !stays[i] {
				found = append(found, l.line)
			}
		}
	}
	slices.SortFunc(found, func(a, b line) int { return a.Number - b.Number })
	return slices.CompactFunc(found, func(a, b line) bool { return a.Number == b.Number })
}

// holdsAll reports whether the model holds all lines of a collection.
func holdsAll(s *Section, c *Child) bool {
	a := newAccount(s)
	for _, l := range s.body() {
		if l.Child == c && !a.take(l) {
			return false
		}
	}
	return true
}

// orderedLine is a line of an order group and what tells it apart in there.
type orderedLine struct {
	line line
	key  string
}

func orderKeys(lines []orderedLine) []string {
	keys := make([]string, len(lines))
	for i, l := range lines {
		keys[i] = l.key
	}
	return keys
}

func sameSet(a, b []orderedLine) bool {
	left, right := orderKeys(a), orderKeys(b)
	slices.Sort(left)
	slices.Sort(right)
	return slices.Equal(left, right)
}

// shared leaves what both have, as often as both have it.
func shared(a, b []orderedLine) ([]orderedLine, []orderedLine) {
	keep := func(lines, other []orderedLine) []orderedLine {
		count := map[string]int{}
		for _, l := range other {
			count[l.key]++
		}
		var kept []orderedLine
		for _, l := range lines {
			if count[l.key] > 0 {
				count[l.key]--
				kept = append(kept, l)
			}
		}
		return kept
	}
	return keep(a, b), keep(b, a)
}

// orderGroups sorts lines into the groups within which their order means
// something.
func orderGroups(lines []line) map[string][]orderedLine {
	groups := map[string][]orderedLine{}
	for _, l := range lines {
		groupsOf := orderGroup(l.words)
		if l.Child != nil && l.Child.slice && l.words[0] != "http-error" {
			groupsOf = []string{l.Child.Words} // not with the section's own lines
		}
		for _, group := range groupsOf {
			key := loose(l.words)
			if len(l.words) > 1 && (l.Child != nil && !l.Child.slice || group == "environment" || group == "errors") {
				key = l.words[0] + separator + l.words[1]
			}
			groups[group] = append(groups[group], orderedLine{l, key})
		}
	}
	return groups
}

// orderGroup names the groups of a line. Those with a leading = are groups of
// which the last one wins. See the configuration manual at each keyword; what is
// not listed keeps the order among lines with the same first word.
func orderGroup(words []string) []string {
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	switch word := words[0]; word {
	case "errorfile", "errorfiles", "errorloc", "errorloc302", "errorloc303":
		return []string{"errors"}
	case "http-error":
		return []string{"errors", word}
	case "setenv", "presetenv", "unsetenv", "resetenv":
		return []string{"environment"}
	case "server", "server-template", "default-server":
		return []string{"servers"}
	case "default-path", "lua-prepend-path", "lua-load", "lua-load-per-thread",
		"expose-experimental-directives", "expose-deprecated-directives":
		return []string{"loading"}
	case "log-format":
		return []string{"=log format"}
	case "option":
		switch second {
		case "httplog", "tcplog", "httpslog":
			return []string{"=log format"}
		case "httpclose", "http-server-close", "http-keep-alive":
			return []string{"=connection mode"}
		case "httpchk", "tcp-check", "redis-check", "mysql-check", "pgsql-check", "smtpchk", "ldap-check",
			"ssl-hello-chk", "spop-check", "external-check":
			return []string{"=check"}
		}
		return nil
	case "timeout", "no", "default", "compression", "email-alert", "external-check", "hold",
		"user", "group", "nameserver", "mailer", "table", "load":
		return nil
	default:
		if strings.HasPrefix(word, "tune.lua.") {
			return []string{"loading"}
		}
		return []string{word}
	}
}
