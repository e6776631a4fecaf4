package haproxycfg

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	parser "github.com/haproxytech/client-native/v6/config-parser"
	"github.com/haproxytech/client-native/v6/config-parser/options"
)

// normaliseMu guards the config parser, which keeps the name of the last
// defaults section in a package variable.
var normaliseMu sync.Mutex

// Refusal says that the config parser of the Dataplane API, through which
// every text goes that it stores, would change the meaning of a text without a
// word.
type Refusal struct {
	Line int    // counted from 1
	Text string // the line, without surrounding space
	Why  string
}

// Error tells line, text and reason.
func (r *Refusal) Error() string {
	return fmt.Sprintf("line %d: %s: %s", r.Line, r.Text, r.Why)
}

// Normalise returns the text as the Dataplane API stores it: sections ordered
// by kind and name, directives in the order of the parser, unnamed defaults
// named, proxies with an explicit "from". It returns a [*Refusal] where that
// would lose or change something.
//
// The result has none of the lines that the API adds for itself.
func Normalise(text string) (string, error) {
	if err := CheckRoundTrip(text); err != nil {
		return "", err
	}
	out, err := RoundTrip(text)
	if errors.Is(err, errPanic) {
		return "", panics(text)
	}
	if err != nil {
		return "", err
	}
	if err := checkNothingLost(text, out); err != nil {
		return "", err
	}
	if err := checkOrder(text, out); err != nil {
		return "", err
	}
	return out, nil
}

// RoundTrip is [Normalise] without any refusal: it returns what the Dataplane
// API would store, whatever gets lost.
func RoundTrip(text string) (out string, err error) {
	normaliseMu.Lock()
	defer normaliseMu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			out, err = "", fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	p, err := parser.New(options.String(text))
	if err != nil {
		return "", fmt.Errorf("config parser: %w", err)
	}
	return p.String(), nil
}

// errPanic says that the parser panics, which it does on some lines that are
// too short: here, and in the API as well.
var errPanic = errors.New("the config parser panics")

// panics finds the line on which the parser panics: the last of the shortest
// beginning of the text that makes it do so.
func panics(text string) *Refusal {
	lines := slices.Collect(strings.Lines(text))
	n := sort.Search(len(lines), func(n int) bool {
		_, err := RoundTrip(strings.Join(lines[:n], ""))
		return errors.Is(err, errPanic)
	})
	return &Refusal{Line: n, Text: shorten(strings.TrimSpace(lines[n-1])), Why: "the Dataplane API cannot read this line: something is missing"}
}

// maxParserLine is the length of a line from which on the parser, without a
// word, ignores the rest of the file.
const maxParserLine = 64 << 10

// knownHeaders are the words that start a section for the parser.
var knownHeaders = map[string]bool{
	"global": true, "defaults": true, "frontend": true, "backend": true, "listen": true,
	"userlist": true, "peers": true, "mailers": true, "resolvers": true, "cache": true,
	"ring": true, "traces": true, "log-forward": true, "log-profile": true, "http-errors": true,
	"acme": true, "crt-store": true, "program": true, "fcgi-app": true,
}

// foreignHeaders start a section for HAProxy, but not for the parser, which
// folds their lines into the section before. The value says that the word is
// a header only at the start of a line, because it is a directive as well.
var foreignHeaders = map[string]bool{"namespace_list": false, "healthcheck": true}

// conditionals are the directives of section 2.4 of the configuration manual,
// "Conditional blocks". The parser keeps them and drops what they enclose.
var conditionals = map[string]bool{
	".if": true, ".elif": true, ".else": true, ".endif": true,
	".notice": true, ".warning": true, ".diag": true, ".alert": true,
}

// CheckRoundTrip returns a [*Refusal] for the first line that the parser of
// the Dataplane API would change in silence: conditional blocks, lines of 64
// KiB and more, sections that it does not know, two sections of one kind and
// name, a default-server behind the servers it would then apply to, a proxy
// above all defaults sections, a password behind the groups of its user.
func CheckRoundTrip(text string) error {
	var line, seenServer int
	seen := map[string]int{}
	var early *Refusal // a proxy above all defaults sections
	for raw := range strings.Lines(text) {
		line++
		refuse := func(format string, args ...any) error {
			return &Refusal{Line: line, Text: shorten(strings.TrimSpace(raw)), Why: fmt.Sprintf(format, args...)}
		}
		if len(raw) >= maxParserLine {
			return refuse("the Dataplane API drops everything from a line of %d bytes on", len(raw))
		}
		if !utf8.ValidString(raw) {
			return refuse("the Dataplane API replaces what is not UTF-8")
		}
		words := strings.Fields(raw)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		word := words[0]
		onlyAtStart, foreign := foreignHeaders[word]
		switch {
		case conditionals[word]:
			return refuse("the Dataplane API loses what conditional blocks hold")
		case foreign && (!onlyAtStart || raw[0] != ' ' && raw[0] != '\t'):
			return refuse("the Dataplane API does not know this section and folds it into the one before")
		case knownHeaders[word]:
			seenServer = 0
			if word == "defaults" && early != nil {
				return early
			}
			if early == nil && seen["defaults"] == 0 && takesDefaults(words) {
				early = &Refusal{Line: line, Text: shorten(strings.TrimSpace(raw)), Why: "the Dataplane API moves a defaults section above this one, which stands above all of them"}
			}
			if word == "defaults" {
				seen[word] = line
			}
			if key := sectionKey(raw); key != "" {
				if seen[key] != 0 {
					return refuse("the Dataplane API keeps only the last of two sections of one name, the first is in line %d", seen[key])
				}
				seen[key] = line
			}
		case word == "http-check" && (slices.Contains(words, "uri") && slices.Contains(words, "uri-lf") ||
			slices.Contains(words, "body") && slices.Contains(words, "body-lf")):
			return refuse("the Dataplane API changes the order of arguments that replace each other")
		case word == "user" && len(words) > 4 && words[2] == "groups":
			return refuse("the Dataplane API loses a password that stands behind the groups")
		case word == "server" || word == "server-template":
			if seenServer == 0 {
				seenServer = line
			}
		case word == "default-server" && seenServer != 0:
			return refuse("the Dataplane API moves a default-server above the servers, the first is in line %d", seenServer)
		}
	}
	return nil
}

// takesDefaults reports whether a header opens a proxy that falls under the
// defaults section before it.
func takesDefaults(words []string) bool {
	return (words[0] == "frontend" || words[0] == "backend" || words[0] == "listen") && !slices.Contains(words, "from")
}

// sectionKey names a section by its header for the search for doubles;
// sections that may stand several times have none.
func sectionKey(raw string) string {
	words, _ := Fields(raw)
	switch {
	case len(words) == 1 && words[0] == "crt-store":
		return words[0] // the one without a name
	case len(words) < 2 || words[0] == "global" || words[0] == "traces" || words[1] == "from":
		return ""
	}
	return words[0] + " " + words[1]
}

// checkNothingLost finds directives that stood in a section and do not any
// more. One of several equal ones may go, for HAProxy too takes the last.
func checkNothingLost(before, after string) error {
	kept := map[string]int{}
	walkDirectives(after, func(_ int, section, word, _ string) bool {
		kept[section+"\x00"+word]++
		return true
	})
	seen := map[string]int{}
	var lost error
	walkDirectives(before, func(line int, section, word, raw string) bool {
		key := section + "\x00" + word
		seen[key]++
		switch {
		case kept[key] == 0:
			lost = &Refusal{Line: line, Text: shorten(raw), Why: "the Dataplane API loses this line"}
		case section == "global" && seen[key] > kept[key]:
			lost = &Refusal{Line: line, Text: shorten(raw), Why: "the Dataplane API keeps the last of several such lines in a global section, and HAProxy takes the first"}
		}
		return lost == nil
	})
	return lost
}

// walkDirectives calls f with every directive that stands in a section that
// has a name or is the only one of its kind.
func walkDirectives(text string, f func(line int, section, word, raw string) bool) {
	section, line := "", 0
	for raw := range strings.Lines(text) {
		line++
		trimmed := strings.TrimSpace(raw)
		word, _, _ := strings.Cut(trimmed, " ")
		word, _, _ = strings.Cut(word, "\t")
		switch {
		case word == "" || word[0] == '#':
		case knownHeaders[word]:
			if section = sectionKey(trimmed); section == "" {
				section = word
			}
			if section == "defaults" || strings.HasPrefix(section, "defaults ") {
				section = "defaults" // unnamed ones get a name
			}
		case !f(line, section, word, trimmed):
			return
		}
	}
}

func shorten(s string) string {
	const most = 120
	if len(s) > most {
		return s[:most] + " ..."
	}
	return s
}
