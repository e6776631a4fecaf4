package dataplane

import (
	"slices"
	"strconv"
	"strings"
)

// limits compares a frontend or the global section in which nothing but maxconn
// differs, and reports whether that is the case.
func (d *difference) limits(have, want section, old, now []line) bool {
	if d.current.split().conditional || d.desired.split().conditional || want.nth > 0 {
		return false
	}
	from, ok := onlyLimit(old)
	if !ok {
		return false
	}
	to, ok := onlyLimit(now)
	if !ok || from == to || !slices.EqualFunc(withoutLimit(old), withoutLimit(now), line.equal) {
		return false
	}
	op := sectionOp(Update, &want, "")
	op.Impact = ImpactRuntime
	op.Changes = []Change{{"maxconn", strconv.Itoa(from), strconv.Itoa(to)}}
	do := &action{limit: strconv.Itoa(to)}
	switch want.Kind {
	case "frontend", "listen":
		do.kind, do.frontends = setFrontend, []string{want.Name}
		op.Reason = d.target.whyNot("frontend", Update, "maxconn")
	case "global":
		do.kind, do.frontends = setGlobal, d.unlimitedFrontends()
		op.Reason = d.whyNotGlobal(from, to)
	default:
		return false
	}
	if op.Reason == "" && strings.Contains(d.desired.main, "minconn") {
		op.Reason = "the dynamic limits of servers follow from it (minconn, fullconn)"
	}
	if op.Reason == "" {
		op.Reason = whyNoCommand(do.frontends...)
	}
	if op.Reason != "" {
		op.Impact, do = ImpactReload, nil
	}
	d.add(rankSection, op, do)
	return true
}

func isLimit(l line) bool { return l.keyword() == "maxconn" }

// onlyLimit returns the number after the only maxconn of a section.
func onlyLimit(lines []line) (int, bool) {
	at := slices.IndexFunc(lines, isLimit)
	if at < 0 || len(lines[at].words) != 2 || slices.ContainsFunc(lines[at+1:], isLimit) {
		return 0, false
	}
	n, err := strconv.ParseUint(lines[at].words[1], 10, 31)
	return int(n), err == nil && n > 0
}

func withoutLimit(lines []line) []line {
	return slices.DeleteFunc(slices.Clone(lines), isLimit)
}

// whyNotGlobal says why the limit of the process needs a reload to change, ""
// if it does not. What else HAProxy derives from it when it starts, it derives
// only then.
func (d *difference) whyNotGlobal(from, to int) string {
	if why := d.target.whyNot("global", Update, "maxconn"); why != "" {
		return why
	}
	hard := d.target.hardMaxconn
	if hard == 0 {
		hard = from
	}
	if to > hard {
		return "a process cannot go beyond the limit that it started with"
	}
	globals := 0
	for _, s := range d.desired.split().list {
		switch s.Kind {
		case "global":
			globals++
		case "peers", "log-forward":
			return "the limit of section " + s.key().String() + " follows from it"
		}
	}
	if globals > 1 {
		return "another global section may have the last word"
	}
	if strings.Contains(d.desired.main, "splice") {
		return "the number of pipes follows from it"
	}
	return ""
}

// unlimitedFrontends lists the frontends that have the limit of the process
// because they have none of their own (configuration manual, "maxconn").
func (d *difference) unlimitedFrontends() []string {
	x := d.desired.split()
	limited := func(s section) bool { return slices.ContainsFunc(meaningfulLines(s.Text), isLimit) }
	var names []string
	for _, s := range x.list {
		if s.Kind != "frontend" && s.Kind != "listen" {
			continue
		}
		if !limited(s) && !slices.ContainsFunc(x.inherited(s), limited) {
			names = append(names, s.Name)
		}
	}
	return names
}
