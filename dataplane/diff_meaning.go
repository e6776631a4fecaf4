package dataplane

import (
	"slices"
	"strings"
)

// group is the lines of a section whose order among each other means something.
// Of lines in different groups it means nothing which comes first, since HAProxy
// keeps what they say in different places.
type group struct {
	name   string
	joined bool // of several groups
	lines  []line
}

// groupsOf sorts the lines of a section, without its header, into groups, in
// the order of their names. Lines that a later one makes void are left out.
func groupsOf(kind string, lines []line, j joins) []group {
	at := make(map[string]int)
	var groups []group
	for _, l := range lines {
		name, joined := j.name(kind, l.words)
		i, ok := at[name]
		if !ok {
			i = len(groups)
			at[name] = i
			groups = append(groups, group{name: name, joined: joined})
		}
		groups[i].lines = append(groups[i].lines, l)
	}
	for i := range groups {
		if !groups[i].joined {
			groups[i].lines = inForce(kind, groups[i])
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.name, b.name) })
	return groups
}

// flatten lists the lines of all groups.
func flatten(groups []group) []line {
	var lines []line
	for _, g := range groups {
		lines = append(lines, g.lines...)
	}
	return lines
}

// The groups that are made of several keywords.
const (
	groupServers     = "server" // default-server counts for the servers below it
	groupErrors      = "errors"
	groupEnvironment = "environment"
	groupCaptures    = "captures" // they are numbered together
	groupVariables   = "set-var"
	groupLua         = "lua"
	groupLogFormat   = "log-format"
	groupConnections = "connection mode"
	groupChecks      = "check"
	groupKeepAlive   = "keep-alive"
	groupUnsafe      = "option unsafe requests"
	groupUnsafeReply = "option unsafe responses"
	groupPersistence = "persistence" // the first rule that matches counts
	groupState       = "state"
	groupProviders   = "ssl-provider"
	groupUnreadable  = "" // lines that cannot be cut into words
)

var groupOfKeyword = map[string]string{
	"server": groupServers, "server-template": groupServers, "default-server": groupServers, "peer": groupServers,
	"bind": "bind", "default-bind": "bind",
	"errorfile": groupErrors, "errorfiles": groupErrors, "errorloc": groupErrors, "errorloc302": groupErrors,
	"errorloc303": groupErrors, "http-error": groupErrors,
	"setenv": groupEnvironment, "presetenv": groupEnvironment, "unsetenv": groupEnvironment, "resetenv": groupEnvironment,
	"capture": groupCaptures, "declare": groupCaptures,
	"set-var": groupVariables, "set-var-fmt": groupVariables,
	"lua-load": groupLua, "lua-load-per-thread": groupLua, "lua-prepend-path": groupLua,
	"log-format":    groupLogFormat,
	"force-persist": groupPersistence, "ignore-persist": groupPersistence,
	"enabled": groupState, "disabled": groupState,
	"ssl-provider": groupProviders, "ssl-provider-path": groupProviders, "ssl-propquery": groupProviders,
	"uid": "user", "gid": "group",
	"tune.lua.bool-sample-conversion": groupLua,
}

// groupOfOption are options that set the same thing, so that the last one counts.
var groupOfOption = map[string]string{
	"httplog": groupLogFormat, "tcplog": groupLogFormat, "httpslog": groupLogFormat,
	"httpclose": groupConnections, "http-server-close": groupConnections, "http-keep-alive": groupConnections,
	"httpchk": groupChecks, "tcp-check": groupChecks, "redis-check": groupChecks, "mysql-check": groupChecks,
	"pgsql-check": groupChecks, "smtpchk": groupChecks, "ldap-check": groupChecks, "ssl-hello-chk": groupChecks,
	"spop-check": groupChecks, "external-check": groupChecks,
	"tcpka": groupKeepAlive, "clitcpka": groupKeepAlive, "srvtcpka": groupKeepAlive,
	"accept-invalid-http-request": groupUnsafe, "accept-unsafe-violations-in-http-request": groupUnsafe,
	"accept-invalid-http-response": groupUnsafeReply, "accept-unsafe-violations-in-http-response": groupUnsafeReply,
	"independant-streams": "option independent-streams", "independent-streams": "option independent-streams",
}

// families are keywords whose second word says what the line is about.
var families = map[string]bool{
	"option": true, "timeout": true, "stats": true, "compression": true, "email-alert": true, "rate-limit": true, "hold": true,
}

// groupName returns the name of the group that a line belongs to.
func groupName(kind string, words []string) string {
	if len(words) == 0 {
		return groupUnreadable
	}
	words = positive(words)
	keyword, second := words[0], ""
	if len(words) > 1 {
		second = words[1]
	}
	if kind == "crt-store" {
		return kind // its base folders count for the loads below them
	}
	if keyword == "option" && groupOfOption[second] != "" {
		return groupOfOption[second]
	}
	if families[keyword] {
		return keyword + " " + second
	}
	if name, ok := groupOfKeyword[keyword]; ok {
		return name
	}
	return keyword
}

// positive returns the words of a line without a leading "no" or "default".
func positive(words []string) []string {
	if len(words) > 1 && (words[0] == "no" || words[0] == "default") {
		return words[1:]
	}
	return words
}

// inForce leaves out what a later line of the group makes void (configuration
// manual, at each of the keywords).
func inForce(kind string, g group) []line {
	lines := g.lines
	if len(lines) < 2 {
		return lines
	}
	switch g.name {
	case groupLogFormat:
		if slices.ContainsFunc(lines, func(l line) bool { return slices.Contains(l.words, "clf") }) {
			return lines // it also decides about quotes in the formats below
		}
		return lastOfKind(lines)
	case groupConnections, groupChecks:
		return lastOfKind(lines)
	}
	if lastCounts(kind, g) {
		return lines[len(lines)-1:]
	}
	return lines
}

// lastOfKind is inForce for options that replace each other: "no option" undoes
// only the one that it names.
func lastOfKind(lines []line) []line {
	last := -1
	for i, l := range lines {
		if len(positive(l.words)) == len(l.words) {
			last = i
		}
	}
	if last < 0 {
		return lines
	}
	kept := lines[last : last+1]
	for _, l := range lines[last+1:] {
		if slices.Equal(firstTwo(positive(l.words)), firstTwo(lines[last].words)) {
			kept = []line{lines[last], l}
		}
	}
	return kept
}

func firstTwo(words []string) []string { return words[:min(2, len(words))] }

// scalars are keywords with one value, which a later line replaces.
var scalars = map[string]bool{
	"mode": true, "balance": true, "maxconn": true, "retries": true, "fullconn": true, "backlog": true,
	"default_backend": true, "hash-type": true, "http-reuse": true, "log-tag": true, "monitor-uri": true,
	"hash-balance-factor": true, "unique-id-header": true,
	"unique-id-format": true, "error-log-format": true, "log-format-sd": true, "dynamic-cookie-key": true,
}

// lastCounts reports whether each line of a group replaces those before it.
func lastCounts(kind string, g group) bool {
	if kind == "global" {
		return false // the first one counts of many ("already specified")
	}
	if strings.HasPrefix(g.name, "option ") {
		// Options with arguments may add to each other.
		return !slices.ContainsFunc(g.lines, func(l line) bool { return len(positive(l.words)) != 2 })
	}
	plain := func(l line) bool { return len(positive(l.words)) == len(l.words) }
	if !plain(g.lines[len(g.lines)-1]) {
		return false
	}
	return scalars[g.name] || strings.HasPrefix(g.name, "timeout ")
}
