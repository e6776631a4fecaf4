package haproxycfg

import (
	"slices"
	"strconv"
	"strings"
)

// orderGroup is a group of directives in which the order within a section means
// something although the parser puts its own order there. In all other cases it means
// nothing (configuration manual, at each of the keywords).
type orderGroup struct {
	last  bool     // of the group only the last one counts
	words []string // first words of lines; "+" stands for any further ones
}

var orderGroups = []orderGroup{
	{words: []string{"errorfile", "errorfiles", "errorloc", "errorloc302", "errorloc303", "http-error"}},
	{words: []string{"setenv", "presetenv", "unsetenv", "resetenv"}},
	{words: []string{"server", "server-template"}},
	{words: []string{"capture request", "declare capture request", "http-request capture", "tcp-request content capture"}},
	{words: []string{"capture response", "declare capture response"}},
	{words: []string{"ssl-default-bind-options"}}, // they add up, and the parser keeps the last one
	{words: []string{"ssl-default-server-options"}},
	{words: []string{"force-persist", "ignore-persist"}},
	{words: []string{"enabled", "disabled"}},
	{words: []string{"bind", "default-bind"}},
	{words: []string{"set-var", "set-var-fmt"}},
	{words: []string{"lua-load", "lua-load-per-thread", "lua-prepend-path", "tune.lua.bool-sample-conversion"}},
	{words: []string{"ssl-provider", "ssl-provider-path", "ssl-propquery"}},
	{words: []string{"uid", "user"}},
	{words: []string{"gid", "group"}},
	{words: []string{"option tcpka", "option clitcpka", "option srvtcpka"}},
	{words: []string{"option accept-invalid-http-request", "option accept-unsafe-violations-in-http-request"}},
	{words: []string{"option accept-invalid-http-response", "option accept-unsafe-violations-in-http-response"}},
	{last: true, words: []string{"log-format", "option httplog", "option tcplog", "option httpslog"}},
	{last: true, words: []string{"option httpclose", "option http-server-close", "option http-keep-alive"}},
	{last: true, words: []string{
		"option httpchk", "option tcp-check", "option redis-check", "option mysql-check", "option pgsql-check", "option smtpchk",
		"option ldap-check", "option ssl-hello-chk", "option spop-check", "option external-check",
	}},
	{words: []string{"option httpchk +", "http-check send"}},
}

// inOrderGroup is a group that a directive is known to by its words.
type inOrderGroup struct {
	words []string
	more  bool // only with further words
	group int
}

// orderGroupsByWord finds the groups by the first word of a line. It never changes.
var orderGroupsByWord = func() map[string][]inOrderGroup {
	by := make(map[string][]inOrderGroup)
	for i, g := range orderGroups {
		for _, known := range g.words {
			known, more := strings.CutSuffix(known, " +")
			words := strings.Fields(known)
			by[words[0]] = append(by[words[0]], inOrderGroup{words, more, i})
		}
	}
	return by
}()

// orderGroupsOf returns the groups that a line belongs to, by their places in the
// table, and the words by which the line is known there.
func orderGroupsOf(words []string) (groups []int, what string) {
	if words[0] == "no" && len(words) > 1 {
		words = words[1:]
	}
	for _, in := range orderGroupsByWord[words[0]] {
		if n := len(in.words); n <= len(words) && slices.Equal(words[:n], in.words) && (!in.more || n < len(words)) {
			groups, what = append(groups, in.group), strings.Join(in.words, " ")
		}
	}
	return groups, what
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
	was, used, moved := readOrder(before)
	if moved == nil {
		moved = settingsBelow(before)
	}
	if moved != nil {
		return moved
	}
	is, _, _ := readOrder(after)
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
	for _, d := range was["global\x00"+environmentGroup] {
		if used > 0 && used < d.line {
			return &Refusal{Line: d.line, Text: shorten(d.raw), Why: "the Dataplane API moves this line to the top, above a use of a variable in line " + strconv.Itoa(used)}
		}
	}
	return nil
}

const environmentGroup = "1" // its place in the table

// readOrder lists the directives of each group by section and group, and finds the
// first line that uses a variable. It refuses an ACL with the name of a built-in one
// below other lines: rules above it mean the built-in one, until the API moves it.
func readOrder(text string) (groups map[string][]ordered, used int, moved error) {
	groups = make(map[string][]ordered)
	unnamed, section, line, others := 0, "", 0, false
	for raw := range strings.Lines(text) {
		line++
		raw = strings.TrimSpace(raw)
		words := strings.Fields(raw)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if knownHeaders[words[0]] {
			if section = sectionKey(raw); section == "" {
				section = words[0]
			}
			if raw == "defaults" {
				unnamed++
				section = "defaults unnamed_defaults_" + strconv.Itoa(unnamed)
			}
			others = false
			continue
		}
		if used == 0 && Expands(raw) {
			used = line
		}
		if words[0] == "acl" && len(words) > 1 && others && builtinACL(words[1]) && moved == nil {
			moved = &Refusal{Line: line, Text: shorten(raw), Why: "the Dataplane API moves this ACL above lines that mean the built-in one of that name"}
		}
		others = others || words[0] != "acl"
		found, what := orderGroupsOf(words)
		for _, g := range found {
			key := section + "\x00" + strconv.Itoa(g)
			if orderGroups[g].last {
				groups[key] = nil
			}
			groups[key] = append(groups[key], ordered{what, line, raw})
		}
	}
	return groups, used, moved
}

// builtinACL reports whether an ACL has the name of one that HAProxy knows itself
// (configuration manual, section 7.4).
func builtinACL(name string) bool {
	switch name {
	case "TRUE", "FALSE", "LOCALHOST", "RDP_COOKIE", "REQ_CONTENT", "WAIT_END":
		return true
	}
	return name == "HTTP" || strings.HasPrefix(name, "HTTP_") || strings.HasPrefix(name, "METH_")
}

// lasting are the settings of a global section that count for the whole process. Of
// others, such as log targets, folders and defaults of TLS, only the lines below learn.
var lasting = map[string]bool{
	"maxconn": true, "maxconnrate": true, "maxsessrate": true, "maxsslconn": true, "maxsslrate": true, "maxpipes": true,
	"maxcomprate": true, "maxcompcpuusage": true, "maxzlibmem": true, "spread-checks": true, "max-spread-checks": true,
	"hard-stop-after": true, "ulimit-n": true, "fd-hard-limit": true, "daemon": true, "pidfile": true,
	"chroot": true, "user": true, "group": true, "uid": true, "gid": true, "stats": true, "node": true,
	"description": true, "quiet": true, "zero-warning": true, "server-state-file": true, "server-state-base": true,
}

// settingsBelow refuses settings below sections that they would count for if they
// stood above, which is where the API moves them.
func settingsBelow(text string) error {
	section, line, others, proxies := "", 0, false, false
	for raw := range strings.Lines(text) {
		line++
		words := strings.Fields(raw)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if knownHeaders[words[0]] {
			section = words[0]
			others = others || section != "global" && section != "crt-store"
			proxies = proxies || section == "frontend" || section == "backend" || section == "listen"
			continue
		}
		if section == "global" && others && !lasting[words[0]] || section == "crt-store" && proxies {
			return &Refusal{Line: line, Text: shorten(strings.TrimSpace(raw)), Why: "the Dataplane API moves this line above sections that would then follow it"}
		}
	}
	return nil
}
