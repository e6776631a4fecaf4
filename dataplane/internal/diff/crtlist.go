package diff

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// listChanges adds a step for each entry in which a crt-list differs.
func (d *difference) listChanges(old, now config.File) {
	before, after := haproxycfg.ParseCRTList(old.Content), haproxycfg.ParseCRTList(now.Content)
	was, is := byCertificate(before), byCertificate(after)
	if len(was) < len(before) || len(is) < len(after) {
		step := fileStep(change.Update, now)
		step.Needs("a certificate stands in several entries")
		d.add(rankList, step)
		return
	}
	reason := d.whyNotList(now, before, after)
	rest := func(e haproxycfg.ListEntry) string { return strings.Join(e[min(1, len(e)):], " ") }
	note := func(r rank, action change.Action, e, from, to haproxycfg.ListEntry) {
		step := change.Step{Action: action, Kind: "crt-list entry", Parent: "crt-list " + now.Name, Name: e.Certificate(), Impact: change.Runtime}
		f := change.Field{Name: "filters", Old: rest(from), New: rest(to)}
		if f.Old != f.New {
			step.Fields = []change.Field{f}
		}
		step.Do = &change.ChangeListEntry{Action: action, File: now, Entry: e}
		step.Needs(reason)
		d.add(r, step)
	}
	for _, e := range after {
		if entry, ok := was[e.Certificate()]; !ok {
			note(rankList, change.Create, e, nil, e)
		} else if !slices.Equal(entry, e) {
			note(rankList, change.Update, e, entry, e)
		}
	}
	for _, e := range before {
		if _, ok := is[e.Certificate()]; !ok {
			note(rankListGone, change.Delete, e, e, nil)
		}
	}
	if from, to := kept(certificatesOf(before), certificatesOf(after)); !slices.Equal(from, to) {
		step := fileStep(change.Update, now)
		step.Fields = []change.Field{{Name: "order of entries", Old: strings.Join(from, ", "), New: strings.Join(to, ", ")}}
		step.Needs(reason)
		d.add(rankList, step)
	}
}

func byCertificate(entries []haproxycfg.ListEntry) map[string]haproxycfg.ListEntry {
	m := make(map[string]haproxycfg.ListEntry, len(entries))
	for _, e := range entries {
		m[e.Certificate()] = e
	}
	return m
}

func certificatesOf(entries []haproxycfg.ListEntry) []string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Certificate()
	}
	return names
}

// whyNotList says why a list needs a reload to change, or "" if it does not. New entries go
// to the end of the running list. That matters only for the first entry, which is the default
// certificate, and for entries that share a name.
func (d *difference) whyNotList(list config.File, before, after []haproxycfg.ListEntry) string {
	for _, action := range []change.Action{change.Create, change.Update, change.Delete} {
		if why := d.target.WhyNot("crt-list entry", action, ""); why != "" {
			return why
		}
	}
	switch {
	case len(before) == 0 || len(after) == 0:
		return "HAProxy loads an empty list only at a reload"
	case !slices.Equal(before[0], after[0]) && !(d.was.defaultIdle(list) && d.is.defaultIdle(list)):
		return "the first entry is the default certificate, which changes only at a reload"
	}
	for _, e := range slices.Concat(before, after) {
		if why := whyNoCommand(e.Certificate()); why != "" {
			return why
		}
	}
	return d.whyNotOrder(before, after)
}

// whyNotOrder says why a list needs a reload to get into its order, or returns "". If two
// certificates are for one name, HAProxy serves the one that it loaded first.
func (d *difference) whyNotOrder(before, after []haproxycfg.ListEntry) string {
	was, is := byCertificate(before), byCertificate(after)
	var running []haproxycfg.ListEntry // the list that commands would lead to
	for _, e := range before {
		if slices.Equal(e, is[e.Certificate()]) {
			running = append(running, e)
		}
	}
	for _, e := range after {
		if !slices.Equal(e, was[e.Certificate()]) {
			running = append(running, e)
		}
	}
	if slices.Equal(certificatesOf(running), certificatesOf(after)) {
		return ""
	}
	have := d.certificatesByName(running)
	for name, want := range d.certificatesByName(after) {
		if len(want) > 1 && !slices.Equal(want, have[name]) {
			return "HAProxy takes the first of two certificates for one name, and their order changes only at a reload"
		}
	}
	return ""
}

func (d *difference) certificatesByName(entries []haproxycfg.ListEntry) map[string][]string {
	m := make(map[string][]string)
	for _, e := range entries {
		for _, name := range d.namesOf(e) {
			m[name] = append(m[name], e.Certificate())
		}
	}
	return m
}

// namesOf returns the names of an entry: its filters, or else the names in the certificate.
// An unknown certificate counts as sharing no name with others.
func (d *difference) namesOf(e haproxycfg.ListEntry) []string {
	_, filters := e.Split()
	names := slices.DeleteFunc(filters, func(f string) bool { return strings.HasPrefix(f, "!") })
	if len(names) == 0 {
		names = slices.Clone(d.desired.CertificateNames(e.Certificate()[strings.LastIndexByte(e.Certificate(), '/')+1:]))
	}
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}
