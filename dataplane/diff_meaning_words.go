package dataplane

import (
	"slices"
	"strings"
)

// free says of a keyword that the order of its arguments means nothing: how
// many of them have a place of their own, which of the others are followed by no
// value, and which by two.
type free struct {
	fixed int
	flags map[string]bool
	pairs string
}

func freeArguments(kind string, words []string) (free, bool) {
	switch keyword := words[0]; keyword {
	case "http-check":
		return free{fixed: 2, pairs: "hdr"}, len(words) > 1 && words[1] == "send"
	case "server", "server-template", "peer":
		return free{fixed: 3, flags: serverFlags}, keyword != "server-template"
	case "default-server":
		return free{fixed: 1, flags: serverFlags}, true
	case "bind", "dgram-bind":
		return free{fixed: 2, flags: bindFlags}, true
	case "stick-table":
		return free{fixed: 1, flags: tableFlags}, true
	case "cookie":
		return free{fixed: 2, flags: cookieFlags}, kind != "acme"
	case "user":
		return free{fixed: 2}, kind == "userlist"
	}
	return free{}, false
}

// bindFlags are the options of a bind line without a value (configuration
// manual, section 5.1).
var bindFlags = map[string]bool{
	"accept-proxy": true, "allow-0rtt": true, "defer-accept": true, "force-sslv3": true, "force-tlsv10": true,
	"force-tlsv11": true, "force-tlsv12": true, "force-tlsv13": true, "force-strict-sni": true, "generate-certificates": true,
	"no-alpn": true, "no-ca-names": true, "no-sslv3": true, "no-strict-sni": true, "no-tls-tickets": true,
	"no-tlsv10": true, "no-tlsv11": true, "no-tlsv12": true, "no-tlsv13": true, "prefer-client-ciphers": true,
	"quic-force-retry": true, "ssl": true, "strict-sni": true, "tfo": true, "transparent": true, "v4v6": true,
	"v6only": true,
}

var tableFlags = map[string]bool{"nopurge": true, "recv-only": true}

var cookieFlags = map[string]bool{
	"rewrite": true, "insert": true, "prefix": true, "indirect": true, "nocache": true, "postonly": true,
	"preserve": true, "httponly": true, "secure": true, "dynamic": true,
}

// together are arguments whose order among each other counts: the first
// certificate of a bind line is its default one, and the last of two states wins.
var together = map[string]string{
	"crt-list": "crt", "default-crt": "crt", "enabled": "disabled", "uid": "user", "gid": "group",
	"send-proxy-v2": "send-proxy", "send-proxy-v2-ssl": "send-proxy", "send-proxy-v2-ssl-cn": "send-proxy",
	"usesrc": "source", "interface": "source", "npn": "alpn", "ssl-max-ver": "ssl-min-ver",
	"uri-lf": "uri", "body-lf": "body", "v6only": "v4v6", "rewrite": "insert", "prefix": "insert", "len": "type",
}

// undoing tells arguments that undo what others set, whose order counts.
func undoing(word string) bool {
	return strings.HasPrefix(word, "no-") || strings.HasPrefix(word, "force-") || word == "non-stick" || word == "agent-addr"
}

// sortedArguments brings the arguments of a line into one order, where theirs
// means nothing.
func sortedArguments(kind string, words []string) []string {
	f, ok := freeArguments(kind, words)
	if !ok || len(words) <= f.fixed+1 || slices.ContainsFunc(words[f.fixed:], undoing) {
		return words
	}
	type argument struct {
		class string
		words []string
	}
	var arguments []argument
	for rest := words[f.fixed:]; len(rest) > 0; {
		n := 2
		switch {
		case f.flags[rest[0]]:
			n = 1
		case rest[0] == f.pairs:
			n = 3
		}
		n = min(n, len(rest))
		class, _, _ := strings.Cut(rest[0], "(")
		if other, ok := together[class]; ok {
			class = other
		}
		arguments = append(arguments, argument{class, rest[:n]})
		rest = rest[n:]
	}
	slices.SortStableFunc(arguments, func(a, b argument) int { return strings.Compare(a.class, b.class) })
	sorted := slices.Clone(words[:f.fixed])
	for _, a := range arguments {
		sorted = append(sorted, a.words...)
	}
	return sorted
}
