package dataplane

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// joins says which groups of lines are one in a section, by their names: what
// some lines say makes the order count between lines of several groups.
type joins struct {
	all bool // the order of all lines counts
	by  map[string]string
}

// name returns the name of the group that a line belongs to, and whether that
// is made of several ones.
func (j joins) name(kind string, words []string) (name string, joined bool) {
	if j.all {
		return groupEverything, true
	}
	name = groupName(kind, words)
	if other, ok := j.by[name]; ok {
		return other, true
	}
	return name, false
}

const groupEverything = "lines"

// joinsOf looks at the lines of both versions of a section, so that their
// groups are the same ones.
func joinsOf(kind string, versions ...[]line) joins {
	j := joins{by: make(map[string]string)}
	for _, lines := range versions {
		var slots []string // groups of lines that take a slot for a captured part of a request
		request, send := false, false
		for _, l := range lines {
			switch {
			case l.opensUnknown() || l.keyword() == "acl" && len(l.words) > 1 && builtinACL(l.words[1]):
				return joins{all: true}
			case capturesRequest(l.words):
				slots = append(slots, groupName(kind, l.words))
			case l.keyword() == "option" && len(l.words) > 2 && l.words[1] == "httpchk":
				request = true
			case l.keyword() == "http-check" && len(l.words) > 1 && l.words[1] == "send":
				send = true
			}
		}
		slices.Sort(slots)
		if slots = slices.Compact(slots); len(slots) > 1 {
			for _, name := range slots {
				j.by[name] = groupCaptures
			}
		}
		if request && send { // the last one says what is sent
			j.by[groupChecks], j.by["http-check"] = groupChecks, groupChecks
		}
	}
	return j
}

// opensUnknown reports whether a line may be the header of a section that only a
// newer HAProxy knows: what follows it belongs to it.
func (l line) opensUnknown() bool {
	return l.flush && len(l.words) > 0 && (l.words[0] == "healthcheck" || !haproxycfg.KnownKeyword(positive(l.words)[0]))
}

// capturesRequest reports whether a line takes the next slot for a captured part
// of a request. Logs and rules name the slots by their number.
func capturesRequest(words []string) bool {
	if len(words) < 3 {
		return false
	}
	switch words[0] {
	case "capture":
		return words[1] == "request"
	case "declare":
		return words[2] == "request"
	case "http-request":
		return words[1] == "capture" && slices.Contains(words, "len")
	case "tcp-request":
		return words[2] == "capture"
	}
	return false
}

// builtinACL reports whether an ACL has the name of one that HAProxy knows
// itself (configuration manual, section 7.4): rules above it mean the other one.
func builtinACL(name string) bool {
	switch name {
	case "TRUE", "FALSE", "LOCALHOST", "RDP_COOKIE", "REQ_CONTENT", "WAIT_END":
		return true
	}
	return name == "HTTP" || strings.HasPrefix(name, "HTTP_") || strings.HasPrefix(name, "METH_")
}
