package haproxycfg

import (
	"fmt"
	"strings"

	parser "github.com/haproxytech/client-native/v6/config-parser"
	"github.com/haproxytech/client-native/v6/config-parser/options"
)

// parserMu guards every use of client-native's config parser: it keeps the
// name of the last defaults section in a package variable. Only one mutex may
// do so, whoever needs the parser in this package.
var parserMu = &normaliseMu

// WithParser runs f while nobody else in this process uses client-native's
// config parser by way of this module. Whoever calls the parser outside this
// package does so inside f, and f calls nothing of this package.
func WithParser(f func()) {
	parserMu.Lock()
	defer parserMu.Unlock()
	f()
}

// Finding is something wrong in a line of a section.
type Finding struct {
	Line    int    // in the whole text when the section came from [Split]; from 1
	Text    string // the line without surrounding space
	Message string
}

// Parse reads one section strictly and returns what is wrong in it, in the
// order of the lines: words that are not cut as HAProxy cuts them (a quote that
// is not closed, a broken escape), a header without the name that it needs, and
// lines that start with no keyword of HAProxy.
//
// client-native's parser on its own keeps a line that it does not understand
// and says nothing. A finding is made of such a line only when its first word
// is no keyword of any HAProxy either: where HAProxy knows more than
// client-native, or where a keyword has arguments that client-native cannot
// read, HAProxy is the judge. So the parser, which takes a hundred times as
// long as the rest, is asked about the lines with an unknown keyword alone.
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
				message = wrongHeader(s.Kind, words)
			}
		case !known(words) && !parserTakes(s, line):
			message = fmt.Sprintf("unknown keyword %q%s", keyword(words), where(s))
		}
		if message != "" {
			findings = append(findings, Finding{Line: number, Text: strings.TrimSpace(line), Message: message})
		}
	}
	return findings
}

// known reports whether a line may be one of HAProxy's.
func known(words []string) bool { return KnownKeyword(keyword(words)) }

// keyword returns the word that a line is named by.
func keyword(words []string) string {
	if (words[0] == "no" || words[0] == "default") && len(words) > 1 {
		return words[1]
	}
	return words[0]
}

func where(s Section) string {
	if s.Kind == "" {
		return " in front of the first section"
	}
	return ""
}

// parserTakes reports whether client-native's parser makes something of a line
// in a section of that kind.
func parserTakes(s Section, line string) (taken bool) {
	text, kind, name := line, parser.Comments, parser.CommentsSectionName
	switch s.Kind {
	case "":
	case "global":
		text, kind, name = "global\n"+line, parser.Global, parser.GlobalSectionName
	default:
		// The traces section has no name, for any other one will do.
		text, kind, name = s.Kind+" x\n"+line, parser.Section(s.Kind), "x"
		if kind == parser.Traces {
			name = parser.TracesSectionName
		}
	}
	parserMu.Lock()
	defer parserMu.Unlock()
	defer func() {
		if recover() != nil {
			taken = true // it panics on some lines that are too short: HAProxy is the judge
		}
	}()
	p, err := parser.New(options.String(text), options.NoNamedDefaultsFrom)
	if err != nil {
		return true
	}
	left, err := p.GetResult(kind, name, "")
	return err != nil || len(left) == 0
}
