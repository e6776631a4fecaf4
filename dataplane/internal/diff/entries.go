package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// entries adds a step for each entry in which a map, or a file of ACL patterns, differs. The
// Do of the first step carries out all of them.
func (d *difference) entries(old, now config.File, parse func([]byte) []config.MapEntry, ordered bool) {
	from, to, end := old.Content, now.Content, []byte(nil)
	if !d.whole {
		from, to, end = between(from, to, parse)
	}
	before, after := newEntries(parse(from)), newEntries(parse(to))
	was, is := kept(before.keys, after.keys)
	if ordered && (!slices.Equal(was, is) || len(is) < len(after.keys) && len(parse(end)) > 0) { // here all keys count
		before, after = newEntries(parse(old.Content)), newEntries(parse(now.Content))
	}
	do := &change.ChangeEntries{File: now}
	isMap := now.Kind == config.Map
	kind, parent := "acl entry", string(now.Kind)+" "+now.Name
	if isMap {
		kind = "map entry"
	}
	var steps []change.Step
	reason, secret := "", config.SpeaksOfSecrets(now.Name)
	note := func(action change.Action, key string) {
		from, to := before.values[key], after.values[key]
		do.Whole = do.Whole || len(from) > 1 || len(to) > 1
		do.Entries = append(do.Entries, change.Entry{Action: action, Key: key, Value: strings.Join(to, "")})
		f := change.Field{Name: "value", Old: strings.Join(from, ", "), New: strings.Join(to, ", ")}
		step := change.Step{Action: action, Kind: kind, Parent: parent, Name: key, Impact: change.Runtime}
		if secret {
			step.Name = config.RedactValue(key, now.Name)
		}
		if secret || config.SpeaksOfSecrets(key) {
			f.Old, f.New = config.RedactValue(f.Old, now.Name, key), config.RedactValue(f.New, now.Name, key)
		}
		if f.Old != "" || f.New != "" {
			step.Fields = []change.Field{f}
		}
		reason = cmp.Or(reason, d.target.WhyNot(kind, action, ""))
		if reason == "" && !isMap && !haproxyctl.Plain(key) {
			reason = "a pattern has characters that the runtime commands do not take"
		}
		for _, value := range to {
			reason = cmp.Or(reason, d.whyNoValue(value))
		}
		steps = append(steps, step)
	}
	for _, key := range after.keys {
		if values, ok := before.values[key]; !ok {
			note(change.Create, key)
		} else if !slices.Equal(values, after.values[key]) {
			note(change.Update, key)
		}
	}
	for _, key := range before.keys {
		if _, ok := after.values[key]; !ok {
			note(change.Delete, key)
		}
	}
	if ordered {
		steps = append(steps, orderOfEntries(do, now, before, after)...)
	}
	for i := range steps {
		if i == 0 {
			steps[i].Do = do
		}
		steps[i].Needs(reason)
		d.add(rankEntry, steps[i])
	}
}

// orderOfEntries returns a step if entries that stay change places. At runtime, new entries
// come at the end.
func orderOfEntries(do *change.ChangeEntries, now config.File, before, after *entries) []change.Step {
	was, is := kept(before.keys, after.keys)
	do.Whole = do.Whole || !slices.Equal(was, after.keys[:len(was)])
	if slices.Equal(was, is) {
		return nil
	}
	f := change.Field{Name: "order of entries", Old: strings.Join(was, ", "), New: strings.Join(is, ", ")}
	f.Old, f.New = config.RedactValue(f.Old, now.Name), config.RedactValue(f.New, now.Name)
	return []change.Step{{Action: change.Update, Kind: string(config.Map), Name: now.Name, Impact: change.Runtime, Fields: []change.Field{f}}}
}

// entries are the entries of one file, by their keys.
type entries struct {
	keys   []string // in their order
	values map[string][]string
}

func newEntries(list []config.MapEntry) *entries {
	e := &entries{keys: make([]string, 0, len(list)), values: make(map[string][]string, len(list))}
	all := make([]string, len(list)) // one array for all: most keys have one value
	for i, entry := range list {
		all[i] = entry.Value
		if values, ok := e.values[entry.Key]; ok {
			e.values[entry.Key] = append(values, entry.Value)
			continue
		}
		e.keys = append(e.keys, entry.Key)
		e.values[entry.Key] = all[i : i+1 : i+1]
	}
	return e
}
