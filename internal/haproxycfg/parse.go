package haproxycfg

import (
	"fmt"
	"strings"

	parser "github.com/haproxytech/client-native/v6/config-parser"
	"github.com/haproxytech/client-native/v6/config-parser/options"
)

// Finding is an error in a line of a section.
type Finding struct {
	Line    int    // in the whole text if the section came from [Split]; from 1
	Text    string // the line without surrounding space
	Message string
}

// Parse reads one section strictly and returns the wrong lines: broken quotes and escapes, a
// header without the name that it needs, unknown keywords.
//
// A keyword is unknown if neither [KnownKeyword] nor client-native knows it. Parse leaves the
// arguments to HAProxy. client-native's parser takes a hundred times as long as the rest, so
// Parse asks it about unknown keywords only.
func Parse(s Section) []Finding {
	var findings []Finding
	number := s.Line - 1
	for line := range strings.Lines(s.Text) {
		number++
		words, err := Fields(line)
		message := ""
		switch {
		case err != nil:
			message = err.Error()
		case len(words) == 0:
		case number == s.Header && s.Kind != "":
			if !Expands(line) {
				message = wrongHeader(s.Kind, words[1:])
			}
		case !KnownKeyword(keyword(words)) && !parserTakes(s.Kind, line):
			message = fmt.Sprintf("unknown keyword %q", keyword(words))
			if s.Kind == "" {
				message += " in front of the first section"
			}
		}
		if message != "" {
			findings = append(findings, Finding{Line: number, Text: strings.TrimSpace(line), Message: message})
		}
	}
	return findings
}

// keyword returns the keyword of a line.
func keyword(words []string) string {
	if (words[0] == "no" || words[0] == "default") && len(words) > 1 {
		return words[1]
	}
	return words[0]
}

// parserTakes reports whether client-native's parser knows a line in a section
// of that kind.
func parserTakes(kind, line string) (taken bool) {
	parserMu.Lock()
	defer parserMu.Unlock()
	defer func() {
		if recover() != nil {
			taken = true // it panics on some lines that are too short: let HAProxy judge
		}
	}()
	p, err := parser.New(options.String(kind+" x\n"+line), options.DisableUnProcessed, options.NoNamedDefaultsFrom)
	return err == nil && len(directives(p.String())) > 1 // it drops lines that it does not know
}

// wrongHeader says what is wrong with the words after the keyword of a section: a missing
// name, a name with characters that HAProxy refuses, or words that HAProxy would drop or
// refuse. It returns "" if the words are correct.
func wrongHeader(kind string, args []string) string {
	rule := sectionKinds[kind]
	if len(args) == 0 || args[0] == "" {
		if rule.nameless {
			return ""
		}
		return fmt.Sprintf("a %s section needs a name", kind)
	}
	if rule.words != 0 && !rule.free {
		if i := strings.IndexFunc(args[0], func(r rune) bool { return !nameRune(r) }); i >= 0 {
			return fmt.Sprintf("character %q is not permitted in the name of a %s section", []rune(args[0][i:])[0], kind)
		}
	}
	if rule.words < 0 {
		return ""
	}
	rest := args[min(rule.words, len(args)):]
	if rule.from && len(rest) > 1 && rest[0] == "from" {
		rest = rest[2:]
	}
	switch {
	case len(rest) == 0:
		return ""
	case rule.from:
		return fmt.Sprintf("a %s section cannot have %q here: HAProxy refuses the section, or drops it in silence", kind, rest[0])
	}
	return fmt.Sprintf("a %s section cannot have %q here", kind, rest[0])
}

// nameRune reports whether the name of a section may have a character.
func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_:.-", r)
}
