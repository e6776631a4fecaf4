package validate

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// reference is something a line refers to by name.
type reference struct {
	kind string // of section: "backend", "userlist", ...; "table", ownTable, "server" or "file"
	name string // of a server: "name", or "backend/name"
	line int    // of the section, from zero
	late bool   // HAProxy follows it only when something uses the section
}

// ownTable is the kind of what refers to the stick table of its section's name.
const ownTable = "own table"

// text returns the line of the reference.
func (r reference) text(s haproxycfg.Section) string {
	n := 0
	for line := range strings.Lines(s.Text) {
		if n == r.line {
			return strings.TrimSpace(line)
		}
		n++
	}
	return ""
}

// referrer collects what the lines of a section refer to.
type referrer struct {
	refs []reference
	line int
}

// add notes a reference by a name that is fixed. Names with "%[" or an
// environment variable are known to HAProxy alone.
func (r *referrer) add(kind, name string) {
	if name != "" && !strings.ContainsAny(name, "%$\"' ") {
		r.refs = append(r.refs, reference{kind: kind, name: name, line: r.line, late: true})
	}
}

// read takes one line.
func (r *referrer) read(line int, words []string) {
	r.line = line
	r.byKeyword(words)
	for _, expression := range expressions(words) {
		for call, args := range calls(expression) {
			kind, i := argumentOf(call)
			if i < 0 || i >= len(args) {
				continue
			}
			name := strings.TrimSpace(args[i])
			if kind != "server" || strings.Contains(name, "/") {
				r.add(kind, name)
			}
		}
	}
	for _, path := range paths(words) {
		r.add("file", path)
		if n := len(r.refs) - 1; n >= 0 && r.refs[n].kind == "file" {
			r.refs[n].late = words[0] == "default-server"
		}
	}
}

// byKeyword takes what stands behind the keywords of a line.
func (r *referrer) byKeyword(words []string) {
	after := func(keyword string) string {
		if i := slices.Index(words, keyword); i > 0 && i+1 < len(words) && !headerKeywords[words[i-1]] {
			return words[i+1]
		}
		return ""
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	switch words[0] {
	case "use_backend", "default_backend":
		r.add("backend", second)
	case "use-server":
		r.add("server", second)
	case "server", "server-template", "default-server":
		// HAProxy makes a resolvers section "default" itself.
		if name := after("resolvers"); name != "default" {
			r.add("resolvers", name)
		}
		if words[0] == "server" {
			r.add("server", after("track"))
		}
	case "errorfiles":
		r.add("http-errors", second)
	case "stick-table":
		r.add("peers", after("peers"))
	case "stick":
		r.table(after("table"))
	case "use-fcgi-app":
		r.add("fcgi-app", second)
	case "filter":
		if second == "cache" || second == "fcgi-app" {
			r.add(second, after(second))
		}
	case "http-request", "http-response", "http-after-response", "tcp-request", "tcp-response", "http-error":
		r.byAction(words, after)
	}
}

// table notes a stick table: that of the section where no other is named.
func (r *referrer) table(name string) {
	if name == "" {
		r.refs = append(r.refs, reference{kind: ownTable, line: r.line, late: true})
		return
	}
	r.add("table", name)
}

// byAction takes the actions of rules.
func (r *referrer) byAction(words []string, after func(string) string) {
	if words[0] == "http-error" {
		r.add("http-errors", after("errorfiles"))
		return
	}
	for _, word := range words[1:min(3, len(words))] {
		switch {
		case strings.HasPrefix(word, "track-sc"):
			r.table(after("table"))
		case word == "cache-use", word == "cache-store":
			r.add("cache", after(word))
		case word == "deny", word == "tarpit", word == "return":
			r.add("http-errors", after("errorfiles"))
		case strings.HasPrefix(word, "do-resolve("):
			if args := strings.Split(strings.TrimSuffix(word, ")"), ","); len(args) > 1 {
				r.add("resolvers", strings.TrimSpace(args[1]))
			}
		}
	}
}

// fileKeywords are the words behind which HAProxy reads a file.
var fileKeywords = map[string]bool{
	"crt": true, "crt-list": true, "ca-file": true, "ca-verify-file": true, "ca-sign-file": true, "crl-file": true,
	"key": true, "ocsp": true, "issuer": true, "sctl": true, "tls-ticket-keys": true, "ssl-dh-param-file": true,
	"-f": true, "file": true, "lf-file": true, "errorfile": true, "lua-load": true, "lua-load-per-thread": true,
	"h1-case-adjust-file": true,
}

// headerKeywords are the words behind which the name of a header stands.
var headerKeywords = map[string]bool{
	"set-header": true, "add-header": true, "del-header": true, "replace-header": true, "replace-value": true, "hdr": true,
}

// paths returns the absolute paths of files that a line makes HAProxy read:
// behind a keyword, behind "errorfile" and a status, and as the first argument
// of a map converter.
func paths(words []string) []string {
	var found []string
	for i, word := range words {
		if i == 0 {
			continue
		}
		if strings.HasPrefix(word, "/") {
			if i > 1 && headerKeywords[words[i-2]] {
				continue // words[i-1] is the name of a header
			}
			if fileKeywords[words[i-1]] || i > 1 && words[i-2] == "errorfile" || words[0] == "filter" && words[i-1] == "config" {
				found = append(found, word)
			}
		}
	}
	for _, expression := range expressions(words) {
		for call, args := range calls(expression) {
			// With opt@ or virt@ (2.9) there need not be a file.
			if (call == "map" || strings.HasPrefix(call, "map_")) && strings.HasPrefix(args[0], "/") {
				found = append(found, args[0])
			}
		}
	}
	return found
}
