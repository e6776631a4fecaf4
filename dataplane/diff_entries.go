package dataplane

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// mapEntry is a line of a map file.
type mapEntry struct{ key, value string }

// parseMap reads a map file as HAProxy does: a key, blanks, and a value that
// goes to the end of the line, blanks there excepted; lines that start with "#" and empty lines mean
// nothing.
func parseMap(content []byte) []mapEntry {
	var entries []mapEntry
	for l := range strings.Lines(string(content)) {
		l = strings.TrimRight(l, "\r\n")
		if strings.HasPrefix(l, "#") {
			continue
		}
		l = strings.TrimLeft(l, " \t")
		if l == "" {
			continue
		}
		end := strings.IndexAny(l, " \t")
		if end < 0 {
			end = len(l)
		}
		entries = append(entries, mapEntry{l[:end], strings.Trim(l[end:], " \t")})
	}
	return entries
}

// valuesByKey groups the values of a map and lists its keys in their order.
func valuesByKey(entries []mapEntry) (keys []string, values map[string][]string) {
	values = make(map[string][]string, len(entries))
	for _, e := range entries {
		if _, ok := values[e.key]; !ok {
			keys = append(keys, e.key)
		}
		values[e.key] = append(values[e.key], e.value)
	}
	return keys, values
}

// maxDiffering bounds the lines that [differingLines] looks up in the others.
const maxDiffering = 64

// differingLines returns the contents of two maps without the lines that they
// have in common at their beginnings and ends, so that the cost of one changed
// entry among many is that of comparing bytes. Where a key that is left stands
// among the common lines as well, or many lines are left, it returns everything.
func differingLines(old, now []byte) (before, after []byte) {
	head := 0
	for n := min(len(old), len(now)); ; {
		end := bytes.IndexByte(old[head:n], '\n') + 1
		if end == 0 || !bytes.Equal(old[head:head+end], now[head:head+end]) {
			break
		}
		head += end
	}
	before, after = old[head:], now[head:]
	tail := 0
	for i := 1; i <= min(len(before), len(after)) && before[len(before)-i] == after[len(after)-i]; i++ {
		if i == len(before) || i == len(after) {
			if i == len(before) && (i == len(after) || after[len(after)-i-1] == '\n') || i == len(after) && before[len(before)-i-1] == '\n' {
				tail = i
			}
			break
		}
		if before[len(before)-i-1] == '\n' && after[len(after)-i-1] == '\n' {
			tail = i
		}
	}
	common := [][]byte{old[:head], before[len(before)-tail:]}
	before, after = before[:len(before)-tail], after[:len(after)-tail]
	left := append(parseMap(before), parseMap(after)...)
	if len(left) > maxDiffering {
		return old, now
	}
	for _, e := range left {
		for _, text := range common {
			if hasKey(text, e.key) {
				return old, now
			}
		}
	}
	return before, after
}

// hasKey reports whether a line of the text may have that key.
func hasKey(text []byte, key string) bool {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(key))
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(key)
		if (start == 0 || isBlank(text[start-1])) && (end == len(text) || isBlank(text[end])) {
			return true
		}
		at = start + 1
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// mapChanges lists the entries in which a map differs. They are carried out
// together, by the step of the first.
func (d *difference) mapChanges(old, now File, ordered bool) {
	before, after := old.Content, now.Content
	if !ordered {
		before, after = differingLines(before, after)
	}
	oldKeys, oldValues := valuesByKey(parseMap(before))
	newKeys, newValues := valuesByKey(parseMap(after))
	do := &action{kind: changeMap, file: now}
	var ops []Op
	note := func(a Action, key string, from, to []string) {
		do.replace = do.replace || len(from) > 1 || len(to) > 1
		do.changes = append(do.changes, mapChange{a, key, strings.Join(to, "")})
		shown := redactValue(key, now.Name)
		c := Change{Field: "value", Old: strings.Join(from, ", "), New: strings.Join(to, ", ")}
		c.Old, c.New = redactValue(c.Old, now.Name, key), redactValue(c.New, now.Name, key)
		op := Op{Action: a, Kind: "map entry", Parent: "map " + now.Name, Name: shown, Impact: ImpactRuntime}
		if op.Reason = d.target.whyNot("map entry", a, ""); op.Reason != "" {
			op.Impact = ImpactReload
		}
		if c.Old != "" || c.New != "" {
			op.Changes = []Change{c}
		}
		ops = append(ops, op)
	}
	var kept, keptNow []string
	for _, key := range newKeys {
		before, ok := oldValues[key]
		if ok {
			keptNow = append(keptNow, key)
		}
		switch {
		case !ok:
			note(Create, key, nil, newValues[key])
		case !slices.Equal(before, newValues[key]):
			note(Update, key, before, newValues[key])
		}
	}
	for _, key := range oldKeys {
		if _, ok := newValues[key]; ok {
			kept = append(kept, key)
		} else {
			note(Delete, key, oldValues[key], nil)
		}
	}
	if ordered {
		// What comes at runtime comes at the end.
		do.replace = do.replace || !slices.Equal(kept, newKeys[:len(kept)])
		if !slices.Equal(kept, keptNow) {
			ops = append(ops, Op{Action: Update, Kind: "map", Name: now.Name, Impact: ImpactRuntime,
				Changes: []Change{{"order of entries", redactValue(strings.Join(kept, ", "), now.Name), redactValue(strings.Join(keptNow, ", "), now.Name)}}})
		}
	}
	for i, op := range ops {
		if i > 0 {
			do = nil
		}
		d.add(rankMap, op, do)
	}
}

// parsePatterns reads a file of patterns as HAProxy does: one a line, blanks
// before it excepted, empty lines and lines that start with "#" left out. A
// pattern that stands there twice counts once.
func parsePatterns(content []byte) []string {
	var patterns []string
	seen := make(map[string]bool)
	for l := range strings.Lines(string(content)) {
		if strings.HasPrefix(l, "#") {
			continue
		}
		l = strings.TrimLeft(l, " \t")
		if end := strings.IndexAny(l, "\r\n"); end >= 0 {
			l = l[:end]
		}
		if l != "" && !seen[l] {
			seen[l] = true
			patterns = append(patterns, l)
		}
	}
	return patterns
}

// patternChanges lists the patterns in which a file of an ACL differs. Their
// order means nothing.
func (d *difference) patternChanges(old, now File) {
	before, after := parsePatterns(old.Content), parsePatterns(now.Content)
	do := &action{kind: changePatterns, file: now}
	why := ""
	note := func(a Action, pattern string) {
		do.changes = append(do.changes, mapChange{action: a, key: pattern})
		why = cmp.Or(why, d.target.whyNot("acl entry", a, ""))
		if !haproxyctl.Plain(pattern) {
			why = cmp.Or(why, "a pattern has characters that the runtime commands do not take")
		}
	}
	for _, p := range missingFrom(after, before) {
		note(Create, p)
	}
	for _, p := range missingFrom(before, after) {
		note(Delete, p)
	}
	if len(do.changes) > maxSingle && slices.ContainsFunc(after, func(p string) bool { return !haproxyctl.Plain(p) }) {
		why = cmp.Or(why, "a pattern has characters that the runtime commands do not take")
	}
	for i, c := range do.changes {
		op := Op{Action: c.action, Kind: "acl entry", Parent: string(now.Kind) + " " + now.Name,
			Name: redactValue(c.key, now.Name), Impact: ImpactRuntime}
		if why != "" {
			op.Impact, op.Reason = ImpactReload, why
		}
		if i == 0 && why == "" {
			d.add(rankMap, op, do)
		} else {
			d.add(rankMap, op, nil)
		}
	}
}

// missingFrom returns the words that the other list has not.
func missingFrom(words, other []string) []string {
	have := make(map[string]bool, len(other))
	for _, w := range other {
		have[w] = true
	}
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return have[w] })
}

// parseCrtList reads a crt-list: for each line that means something, its words,
// the certificate first (configuration manual, "crt-list").
func parseCrtList(content []byte) [][]string {
	var entries [][]string
	for l := range strings.Lines(string(content)) {
		words := strings.Fields(l)
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			entries = append(entries, words)
		}
	}
	return entries
}

// crtListChanges lists the entries in which a crt-list differs. New entries go
// to the end of the running list; that matters only for the first one, the
// default certificate, and for entries that share a certificate or a name.
func (d *difference) crtListChanges(old, now File) {
	before, after := parseCrtList(old.Content), parseCrtList(now.Content)
	why := d.whyNotCrtList(now, before, after)
	byOrder := ""
	if why == "" {
		byOrder = d.whyCrtListOrder(before, after)
		why = byOrder
	}
	note := func(rank int, a Action, kind actionKind, entry []string, c []Change) {
		op := Op{Action: a, Kind: "crt-list entry", Parent: "crt-list " + now.Name, Name: entry[0], Changes: c, Impact: ImpactRuntime}
		do := &action{kind: kind, file: now, entry: entry}
		if why != "" {
			op.Impact, op.Reason, do = ImpactReload, why, nil
		}
		d.add(rank, op, do)
	}
	if why == repeatedCertificate {
		op := Op{Action: Update, Kind: string(CRTList), Name: now.Name, Impact: ImpactReload, Reason: why}
		op.Changes = lineChanges(crtListLines(before), crtListLines(after))
		if len(op.Changes) > 0 {
			d.add(rankCrtList, op, nil)
		}
		return
	}
	entryWas, entryIs := byCertificate(before), byCertificate(after)
	for _, e := range after {
		was := entryWas[e[0]]
		switch {
		case was == nil:
			note(rankCrtList, Create, addCrtListEntry, e, filterChange(nil, e))
		case !slices.Equal(was, e):
			note(rankCrtList, Update, updateCrtListEntry, e, filterChange(was, e))
		}
	}
	for _, e := range before {
		if entryIs[e[0]] == nil {
			note(rankCrtListGone, Delete, deleteCrtListEntry, e, filterChange(e, nil))
		}
	}
	if from, to := orderWithin(before, entryIs), orderWithin(after, entryWas); from != to && why == byOrder {
		op := Op{Action: Update, Kind: string(CRTList), Name: now.Name, Changes: []Change{{"order of entries", from, to}}, Reason: why}
		if why != "" {
			op.Impact = ImpactReload
		}
		d.add(rankCrtList, op, nil)
	}
	if len(before) > 0 && len(after) > 0 && before[0][0] != after[0][0] && why != "" {
		d.add(rankCrtList, Op{Action: Update, Kind: string(CRTList), Name: now.Name, Impact: ImpactReload, Reason: why,
			Changes: []Change{{"default certificate", before[0][0], after[0][0]}}}, nil)
	}
}

func byCertificate(entries [][]string) map[string][]string {
	m := make(map[string][]string, len(entries))
	for _, e := range entries {
		m[e[0]] = e
	}
	return m
}

// orderWithin lists the certificates that the other list has as well.
func orderWithin(entries [][]string, other map[string][]string) string {
	var names []string
	for _, e := range entries {
		if other[e[0]] != nil {
			names = append(names, e[0])
		}
	}
	return strings.Join(names, ", ")
}

const repeatedCertificate = "a certificate stands in several entries"

// whyNotCrtList says why a list needs a reload to change, "" if it does not.
func (d *difference) whyNotCrtList(list File, before, after [][]string) string {
	if why := cmp.Or(d.target.whyNot("crt-list entry", Create, ""), d.target.whyNot("crt-list entry", Update, ""),
		d.target.whyNot("crt-list entry", Delete, "")); why != "" {
		return why
	}
	for _, list := range [][][]string{before, after} {
		seen := make(map[string]bool)
		for _, e := range list {
			if seen[e[0]] {
				return repeatedCertificate
			}
			seen[e[0]] = true
		}
	}
	if len(before) == 0 || len(after) == 0 {
		return "HAProxy loads an empty list only at a reload"
	}
	if !slices.Equal(before[0], after[0]) && !(d.was.defaultIdle(list) && d.is.defaultIdle(list)) {
		return "the first entry is the default certificate, which changes only at a reload"
	}
	return ""
}

func filterChange(old, now []string) []Change {
	rest := func(e []string) string {
		if len(e) < 2 {
			return ""
		}
		return strings.Join(e[1:], " ")
	}
	if rest(old) == rest(now) {
		return nil
	}
	return []Change{{"filters", rest(old), rest(now)}}
}

func crtListLines(entries [][]string) []line {
	lines := make([]line, len(entries))
	for i, e := range entries {
		text := strings.Join(e, " ")
		lines[i] = line{meaning: text, words: e, raw: text}
	}
	return lines
}
