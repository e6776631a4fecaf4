package validate

import (
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// reference is something a line refers to by name.
type reference struct {
	kind string // "backend", "userlist", "resolvers", "http-errors", "file"
	name string
	line int // of the section, from zero
}

// late reports the references that HAProxy follows only once it has read all,
// and only from proxies that are in use.
func (r reference) late() bool {
	switch r.kind {
	case "backend", "resolvers", "http-errors":
		return true
	}
	return false
}

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

// appendReferences adds what one line refers to by a name that is fixed.
// Names with "%[" or an environment variable are known to HAProxy alone.
func appendReferences(refs []reference, line int, words []string) []reference {
	add := func(kind, name string) {
		if name != "" && !strings.ContainsAny(name, "%$") {
			refs = append(refs, reference{kind: kind, name: name, line: line})
		}
	}
	switch words[0] {
	case "use_backend", "default_backend":
		if len(words) > 1 {
			add("backend", words[1])
		}
	case "server", "server-template", "default-server":
		for i := 1; i+1 < len(words); i++ {
			// HAProxy makes a resolvers section "default" itself.
			if words[i] == "resolvers" && words[i+1] != "default" {
				add("resolvers", words[i+1])
			}
		}
	case "errorfiles":
		if len(words) > 1 {
			add("http-errors", words[1])
		}
	}
	for _, word := range words[1:] {
		for _, fetch := range []string{"http_auth(", "http_auth_group("} {
			if _, rest, ok := strings.Cut(word, fetch); ok {
				name, _, _ := strings.Cut(rest, ")")
				add("userlist", strings.TrimSpace(name))
			}
		}
	}
	for _, path := range paths(words) {
		add("file", path)
	}
	return refs
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
			if fileKeywords[words[i-1]] || i > 1 && words[i-2] == "errorfile" {
				found = append(found, word)
			}
			continue
		}
		// With opt@ or virt@ (2.9) there need not be a file.
		for rest := word; ; {
			start := strings.Index(rest, "(/")
			if start < 0 {
				break
			}
			before, path := rest[:start], rest[start+1:]
			rest = path
			if strings.Contains(word, " ") && !strings.Contains(word, "%[") {
				continue // of a text, not of an expression
			}
			converter := before[strings.LastIndexAny(before, ",[ !")+1:]
			if converter != "map" && !strings.HasPrefix(converter, "map_") {
				continue
			}
			if end := strings.IndexAny(path, ",)"); end >= 0 {
				path = path[:end]
			}
			found = append(found, path)
		}
	}
	return found
}
