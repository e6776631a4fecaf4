package haproxycfg

import (
	"slices"
	"strconv"
	"strings"
)

// orderGroup is a group of directives whose order within a section has a meaning, although
// the parser changes it. In all other cases the order has no meaning (configuration manual,
// at each of the keywords).
type orderGroup struct {
	last  bool     // only the last one of the group counts
	words []string // first words of lines; "+" stands for any further ones
}

var orderGroups = []orderGroup{
	{words: []string{"errorfile", "errorfiles", "errorloc", "errorloc302", "errorloc303", "http-error"}},
	{words: []string{"setenv", "presetenv", "unsetenv", "resetenv"}},
	{words: []string{"server", "server-template"}},
	{words: []string{"capture request", "declare capture request", "http-request capture", "tcp-request content capture"}},
	{words: []string{"capture response", "declare capture response"}},
	{words: []string{"ssl-default-bind-options"}}, // their values add up, but the parser keeps only the last one
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

// orderGroupsByWords maps the first words of a line to groups.
var orderGroupsByWords = func() map[string][]int {
	by := make(map[string][]int)
	for i, g := range orderGroups {
		for _, words := range g.words {
			by[words] = append(by[words], i)
		}
	}
	return by
}()

// ordered is a directive of an order group, with the words that select the group.
type ordered struct {
	*directive
	what string
}

// orders returns the directives of each group, by section and group.
func orders(list []directive) map[string][]ordered {
	groups := make(map[string][]ordered)
	for i := range list {
		d := &list[i]
		words := d.words
		if words[0] == "no" {
			words = words[1:]
		}
		for n := range min(3, len(words)) {
			what := strings.Join(words[:n+1], " ")
			found := orderGroupsByWords[what]
			if n+1 < len(words) {
				found = slices.Concat(found, orderGroupsByWords[what+" +"])
			}
			for _, g := range found {
				key := d.section + "\x00" + strconv.Itoa(g)
				if orderGroups[g].last {
					groups[key] = nil
				}
				groups[key] = append(groups[key], ordered{d, what})
			}
		}
	}
	return groups
}

// checkOrder finds the first directive that changes its place if that changes the meaning.
// That is so if the last of several wins, or if they are numbered (configuration manual).
func checkOrder(before, after []directive) error {
	is := orders(after)
	var moved *directive
	for key, list := range orders(before) {
		have, known := is[key] // if not: the section got another name
		for i, o := range list {
			if known && (i >= len(have) || have[i].what != o.what) {
				if moved == nil || o.line < moved.line {
					moved = o.directive
				}
				break
			}
		}
	}
	if moved == nil {
		return nil
	}
	return moved.refuse("the Dataplane API changes the order of this line and others, on which their meaning depends")
}
