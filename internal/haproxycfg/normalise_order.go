package haproxycfg

import (
	"slices"
	"strconv"
	"strings"
)

// orderGroup returns the group of directives in which the order within a
// section means something although the parser puts its own order there, "" for
// the many in which it does not. Of the groups with last only the last one
// counts.
func orderGroup(word, second string) (group string, last bool) {
	switch word {
	case "errorfile", "errorfiles", "errorloc", "errorloc302", "errorloc303", "http-error":
		return "errors", false
	case "setenv", "presetenv", "unsetenv", "resetenv":
		return "environment", false
	case "server", "server-template":
		return "servers", false
	case "capture", "declare":
		return "captures", false
	case "ssl-default-bind-options", "ssl-default-server-options":
		return word, false // they add up, and the parser keeps the last one
	case "log-format":
		return "log format", true
	case "option":
		switch second {
		case "httplog", "tcplog", "httpslog":
			return "log format", true
		case "httpclose", "http-server-close", "http-keep-alive":
			return "connection mode", true
		case "httpchk", "tcp-check", "redis-check", "mysql-check", "pgsql-check", "smtpchk", "ldap-check",
			"ssl-hello-chk", "spop-check", "external-check":
			return "check", true
		}
	}
	return "", false
}

// ordered is one directive of an order group.
type ordered struct {
	what string
	line int
	raw  string
}

// checkOrder finds directives that come out in another order than they stood,
// where that changes their meaning (configuration manual: the last of several
// wins, or they are numbered), and variables that are used before they are set.
func checkOrder(before, after string) error {
	was, used := orderGroups(before)
	is, _ := orderGroups(after)
	sections := make([]string, 0, len(was))
	for key := range was {
		sections = append(sections, key)
	}
	slices.Sort(sections)
	for _, key := range sections {
		have, ok := is[key]
		if !ok {
			continue // a section that got another name
		}
		for i, d := range was[key] {
			if i < len(have) && have[i].what == d.what {
				continue
			}
			return &Refusal{Line: d.line, Text: shorten(d.raw), Why: "the Dataplane API changes the order of this line and others, on which their meaning depends"}
		}
	}
	for _, d := range was["global\x00environment"] {
		if used > 0 && used < d.line {
			return &Refusal{Line: d.line, Text: shorten(d.raw), Why: "the Dataplane API moves this line to the top, above a use of a variable in line " + strconv.Itoa(used)}
		}
	}
	return nil
}

// orderGroups lists the directives of each group by section and group, and
// finds the first line that uses a variable.
func orderGroups(text string) (groups map[string][]ordered, used int) {
	groups = make(map[string][]ordered)
	unnamed, section, line := 0, "", 0
	for raw := range strings.Lines(text) {
		line++
		raw = strings.TrimSpace(raw)
		word, rest, _ := strings.Cut(raw, " ")
		word, _, _ = strings.Cut(word, "\t")
		if word == "" || word[0] == '#' {
			continue
		}
		if knownHeaders[word] {
			if section = sectionKey(raw); section == "" {
				section = word
			}
			if raw == "defaults" {
				unnamed++
				section = "defaults unnamed_defaults_" + strconv.Itoa(unnamed)
			}
			continue
		}
		if used == 0 && Expands(raw) {
			used = line
		}
		second, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
		group, last := orderGroup(word, second)
		if group == "" {
			continue
		}
		key := section + "\x00" + group
		d := ordered{word, line, raw}
		if word != "log-format" && group != word {
			d.what += " " + second
		}
		if last {
			groups[key] = nil
		}
		groups[key] = append(groups[key], d)
	}
	return groups, used
}
