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

// paths returns the absolute paths of files that a line makes HAProxy read.
// Lines that name folders, sockets or files to write are left out.
func paths(words []string) []string {
	from := 1
	switch words[0] {
	case "log", "pidfile", "chroot", "server-state-base", "server-state-file", "load-server-state-from-file",
		"unix-bind", "stats", "crt-base", "ca-base", "key-base", "default-path", "lua-prepend-path",
		"setenv", "presetenv", "description", "command", "redirect", "errorloc", "errorloc302", "errorloc303",
		"tune.ssl.keylog", "mailer", "nameserver", "monitor-uri", "external-check", "localpeer":
		return nil
	case "bind", "server", "peer": // an address may be the path of a socket
		from = 2
		if words[0] != "bind" {
			from = 3
		}
	}
	var found []string
	for i := from; i < len(words); i++ {
		for rest := words[i]; ; {
			start := strings.IndexByte(rest, '/')
			if start < 0 {
				break
			}
			before, path := rest[:start], rest[start:]
			if end := strings.IndexAny(path, ",)]}\"' "); end >= 0 {
				path, rest = path[:end], path[end:]
			} else {
				rest = ""
			}
			// A path starts a word or an argument; opt@ and virt@ (2.9) need
			// no file.
			if before == "" || strings.HasSuffix(before, "(") || strings.HasSuffix(before, ",") {
				found = append(found, path)
			}
		}
	}
	return found
}
