package haproxycfg

import (
	"fmt"
	"strings"
)

// headerRule is what HAProxy takes behind the keyword of a section.
type headerRule struct {
	words    int  // how many; a negative number for any
	nameless bool // the name may be left out
	free     bool // the name may have any characters
	from     bool // "from" and the name of a defaults section may follow
}

// ruleOf returns the rule of one kind of section. Of a word too many behind the
// name of a frontend, backend or listen section HAProxy up to 3.0 takes no
// notice but that it drops the section, and complains only of the lines in it;
// later versions refuse it. Where none of them minds, neither do we.
func ruleOf(kind string) headerRule {
	switch kind {
	case "global", "traces":
		return headerRule{words: 0, nameless: true}
	case "defaults":
		return headerRule{words: -1, nameless: true, free: true, from: true}
	case "crt-store":
		return headerRule{words: 1, nameless: true, free: true}
	case "frontend", "backend", "listen":
		return headerRule{words: 1, from: true}
	case "program", "cache":
		return headerRule{words: 1, free: true}
	case "peers", "userlist", "log-forward", "fcgi-app", "log-profile":
		return headerRule{words: 1}
	case "acme":
		return headerRule{words: -1, free: true}
	}
	return headerRule{words: -1} // resolvers, mailers, http-errors, ring
}

// wrongHeader says what is wrong with the first line of a section, given as its
// words: a name that is missing or has characters that HAProxy refuses, or
// words that it would drop or refuse. It returns "" for a line that is fine.
func wrongHeader(kind string, words []string) string {
	rule, args := ruleOf(kind), words[1:]
	switch {
	case len(args) == 0 || args[0] == "":
		if !rule.nameless {
			return fmt.Sprintf("a %s section needs a name", kind)
		}
		return ""
	case rule.words != 0 && !rule.free:
		if i := strings.IndexFunc(args[0], func(r rune) bool { return !nameRune(r) }); i >= 0 {
			return fmt.Sprintf("character %q is not permitted in the name of a %s section", []rune(args[0][i:])[0], kind)
		}
	}
	if rule.words < 0 {
		return ""
	}
	rest := args[min(rule.words, len(args)):]
	if rule.from && len(rest) > 1 && rest[0] == "from" {
		rest = rest[2:]
	}
	if len(rest) > 0 {
		message := fmt.Sprintf("a %s section cannot have %q here", kind, rest[0])
		if rule.from {
			message += ": HAProxy refuses the section, or drops it in silence"
		}
		return message
	}
	return ""
}

// nameRune reports the characters that the name of a section may have.
func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_:.-", r)
}
