package validate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// reference is a name in a line that something else declares.
type reference struct {
	kind string // of section: "backend", "resolvers", ...; or "table", "file"
	name string // "" for the section's own table
	line int    // of the section or crt-list, from 1
}

// place says that a name of a kind stands behind a word.
type place struct{ behind, kind string }

// places has the references of a line by its first word. For a rule the key is its action,
// for a filter the name of the filter.
var places = map[string][]place{
	"use_backend":     {{"use_backend", "backend"}},
	"default_backend": {{"default_backend", "backend"}},
	"errorfiles":      {{"errorfiles", "http-errors"}},
	"use-fcgi-app":    {{"use-fcgi-app", "fcgi-app"}},
	"http-error":      {{"errorfiles", "http-errors"}},
	"server":          {{"resolvers", "resolvers"}},
	"server-template": {{"resolvers", "resolvers"}},
	"default-server":  {{"resolvers", "resolvers"}},
	"stick-table":     {{"peers", "peers"}},
	"stick":           {{"table", "table"}},

	"cache":       {{"cache", "cache"}},
	"fcgi-app":    {{"fcgi-app", "fcgi-app"}},
	"cache-use":   {{"cache-use", "cache"}},
	"cache-store": {{"cache-store", "cache"}},
	"track-sc":    {{"table", "table"}},
	"deny":        {{"errorfiles", "http-errors"}},
	"tarpit":      {{"errorfiles", "http-errors"}},
	"return":      {{"errorfiles", "http-errors"}},
}

// called matches fetches and converters whose first argument, or the first one behind
// numbers, is a reference (configuration manual, section 7.3). The groups are the kinds of
// references.
var called = regexp.MustCompile(`(?:^|[,!])\s*(?:(?P<file>map(?:_\w+)?)|(?P<userlist>http_auth\w*)|(?P<backend>nbsrv|be_\w+|avg_queue|connslots|queue)|` +
	`(?P<frontend>fe_\w+)|(?P<table>in_table|table_\w+|src_\w+|sc[012]?_\w+))\(\s*(?:\d+\s*,\s*)*([^\d\s(),"'\\][^\s(),"'\\]*)\s*[,)]`)

// referencesOf returns the references of one line.
func referencesOf(line int, words []string) []reference {
	var refs []reference
	add := func(kind, name string) { refs = append(refs, reference{kind, name, line}) }
	at := 0
	switch words[0] {
	case "filter", "http-request", "http-response", "http-after-response":
		at = 1
	case "tcp-request", "tcp-response":
		at = 2 // behind "content", "connection" or "session"
	}
	for _, p := range places[strings.TrimRight(words[min(at, len(words)-1)], "0123456789")] {
		switch name := after(words, p.behind); {
		case p.kind == "resolvers" && name == "default": // HAProxy makes this section itself
		case fixed(name), name == "" && p.kind == "table":
			add(p.kind, name)
		}
	}
	for _, expression := range expressions(words) {
		for _, m := range called.FindAllStringSubmatch(expression, -1) {
			i := slices.IndexFunc(m[1:], func(group string) bool { return group != "" }) + 1
			kind, name := called.SubexpNames()[i], m[len(m)-1]
			switch {
			case kind == "file" && !strings.HasPrefix(name, "/"): // opt@ and virt@ need no file
			case fixed(name):
				add(kind, name)
			}
		}
	}
	if words[0] != "default-server" { // HAProxy reads its files only if a server uses it
		for _, file := range filesOf(words) {
			add("file", file)
		}
	}
	return refs
}

// expressions returns the words of a line that HAProxy certainly reads as sample
// expressions.
func expressions(words []string) []string {
	var found []string
	for i, word := range words {
		if i > 0 && (words[i-1] == "{" || strings.HasPrefix(words[i-1], "set-var(")) || i == 2 && words[0] == "acl" {
			found = append(found, word)
		}
		for _, part := range strings.Split(word, "%[")[1:] {
			expression, _, _ := strings.Cut(part, "]")
			found = append(found, expression)
		}
	}
	return found
}

// fixed reports whether a name is complete in the text: only HAProxy knows the value of a
// variable or an expression.
func fixed(name string) bool { return name != "" && !strings.ContainsAny(name, "%$\"' ") }

// after returns the word behind a keyword, "" if there is none or the keyword is the name
// of a header.
func after(words []string, keyword string) string {
	i := slices.Index(words, keyword)
	if i < 0 || i+1 == len(words) || i > 0 && headerKeywords[words[i-1]] {
		return ""
	}
	return words[i+1]
}

// setOf makes a set of the words of a text.
func setOf(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

var (
	// fileKeywords are the words behind which HAProxy reads a file.
	fileKeywords = setOf("crt crt-list ca-file ca-verify-file ca-sign-file crl-file key ocsp issuer sctl tls-ticket-keys ssl-dh-param-file " +
		"-f file lf-file errorfile lua-load lua-load-per-thread h1-case-adjust-file")

	// headerKeywords are the words behind which the name of a header stands.
	headerKeywords = setOf("set-header add-header del-header replace-header replace-value hdr")
)

// filesOf returns the absolute paths of the files that HAProxy reads for a line.
func filesOf(words []string) []string {
	var files []string
	for i, word := range words {
		switch {
		case i == 0 || !strings.HasPrefix(word, "/") || !fixed(word):
		case i > 1 && headerKeywords[words[i-2]]: // words[i-1] is the name of a header
		case fileKeywords[words[i-1]], i > 1 && words[i-2] == "errorfile", words[0] == "filter" && words[i-1] == "config":
			files = append(files, word)
		}
	}
	return files
}

// listReferences returns the files that a line of a crt-list names. Only HAProxy
// reads a line with quotes or backslashes.
func listReferences(n int, line string) (refs []reference) {
	if strings.ContainsAny(line, "\"'\\") {
		return nil
	}
	for _, entry := range haproxycfg.ParseCRTList([]byte(line)) {
		options, _ := entry.Split()
		for _, file := range filesOf(append([]string{"crt", entry.Certificate()}, options...)) {
			refs = append(refs, reference{"file", file, n})
		}
	}
	return refs
}
