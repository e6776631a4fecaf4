package validate

import (
	"iter"
	"slices"
	"strings"
)

// expressionAfter are the words behind which a sample expression stands
// (chapter 7 of the configuration manual). What has arguments of its own, such
// as set-var(txn.a), is told by the words of expressionAfterCall.
var expressionAfter = map[string]bool{
	"{": true, "track-sc0": true, "track-sc1": true, "track-sc2": true, "hash": true, "sni": true, "capture": true,
	"set-src": true, "set-dst": true, "set-src-port": true, "set-dst-port": true, "set-priority-class": true,
	"set-priority-offset": true, "store-request": true, "store-response": true, "match": true, "on": true,
}

var expressionAfterCall = []string{"set-var(", "do-resolve(", "sc-set-gpt(", "sc-set-gpt0(", "sc-add-gpc(", "track-sc("}

// expressions returns the sample expressions of a line, as far as they can be
// told from texts: nothing that HAProxy reads as a text is among them.
func expressions(words []string) []string {
	var found []string
	if words[0] == "acl" && len(words) > 2 {
		found = append(found, words[2])
	}
	for i, word := range words {
		if i > 0 && isExpression(words, i) {
			found = append(found, strings.TrimPrefix(word, "!"))
			continue
		}
		for rest := word; ; {
			_, after, ok := strings.Cut(rest, "%[")
			if !ok {
				break
			}
			var expression string
			expression, rest, _ = strings.Cut(after, "]")
			found = append(found, expression)
		}
	}
	return found
}

func isExpression(words []string, i int) bool {
	before := words[i-1]
	if expressionAfter[before] {
		// Not the name of a header, nor a header's text.
		return i == 1 || !headerKeywords[before] && !headerKeywords[words[i-2]] && (i < 3 || !headerKeywords[words[i-3]])
	}
	return slices.ContainsFunc(expressionAfterCall, func(call string) bool { return strings.HasPrefix(before, call) })
}

// calls yields the fetches and converters of an expression that have
// arguments. It ends where quotes begin, which only HAProxy reads.
func calls(expression string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for rest := expression; rest != ""; {
			end := strings.IndexAny(rest, "(,")
			if end < 0 {
				return
			}
			name := strings.TrimSpace(rest[:end])
			if rest[end] == ',' {
				rest = rest[end+1:]
				continue
			}
			args, after, ok := strings.Cut(rest[end+1:], ")")
			if !ok || strings.ContainsAny(args, "\"'\\") {
				return
			}
			if !yield(name, strings.Split(args, ",")) {
				return
			}
			rest = strings.TrimPrefix(after, ",")
		}
	}
}

// argumentOf tells which argument of a fetch or converter names a section, or
// a server of one; -1 when none does (sections 7.3.1 to 7.3.6 of the
// configuration manual).
func argumentOf(name string) (kind string, index int) {
	switch name {
	case "http_auth", "http_auth_group":
		return "userlist", 0
	case "nbsrv", "be_conn", "be_conn_free", "be_sess_rate", "avg_queue", "connslots", "queue":
		return "backend", 0
	case "fe_conn", "fe_sess_rate", "fe_req_rate":
		return "frontend", 0
	case "srv_is_up", "srv_conn", "srv_conn_free", "srv_weight", "srv_uweight", "srv_iweight", "srv_sess_rate", "srv_queue":
		return "server", 0
	case "in_table":
		return "table", 0
	case "src_is_local", "src_port":
		return "", -1
	}
	family, rest, _ := strings.Cut(name, "_")
	switch family {
	case "table", "src", "sc0", "sc1", "sc2":
		index = 0
	case "sc":
		index = 1 // behind the number of the counter
	default:
		return "", -1
	}
	if numbered(rest) {
		index++
	}
	return "table", index
}

// numbered reports the counters that come as an array, with an index in front:
// gpc, gpt and gpc_rate, but not gpc0.
func numbered(rest string) bool {
	return strings.HasSuffix(rest, "gpc") || strings.HasSuffix(rest, "gpt") || strings.HasSuffix(rest, "gpc_rate")
}
