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

// Finding is something wrong in a line of a section.
type Finding struct {
	Line    int    // in the whole text when the section came from [Split]; from 1
	Text    string // the line without surrounding space
	Message string
}

// Parse reads one section strictly, with client-native's parser, and returns
// what is wrong in it, in the order of the lines: words that are not cut as
// HAProxy cuts them (a quote that is not closed, a broken escape), a header
// without the name that it needs, and lines that start with no keyword of
// HAProxy.
//
// client-native on its own keeps a line that it does not understand and says
// nothing. A finding is made of such a line only when its first word is no
// keyword of any HAProxy either: where HAProxy knows more than client-native,
// or where a keyword has arguments that client-native cannot read, HAProxy is
// the judge.
func Parse(s Section) []Finding {
	lines := make([]string, 0, strings.Count(s.Text, "\n")+1)
	for line := range strings.Lines(s.Text) {
		lines = append(lines, line)
	}
	var findings []Finding
	add := func(i int, format string, args ...any) {
		findings = append(findings, Finding{Line: s.Line + i, Text: strings.TrimSpace(lines[i]), Message: fmt.Sprintf(format, args...)})
	}
	var skipped []string
	if anyUnknown(lines) {
		skipped = unprocessed(s)
	}
	for i, line := range lines {
		words, err := Fields(line)
		taken := true
		if len(skipped) > 0 && skipped[0] == strings.TrimSpace(line) {
			taken, skipped = false, skipped[1:]
		}
		switch {
		case err != nil:
			add(i, "%v", err)
		case len(words) == 0:
		case s.Line+i == s.Header && s.Kind != "":
			if needsName(s.Kind) && s.Name == "" {
				add(i, "a %s section needs a name", s.Kind)
			}
		case !taken && !known(words):
			add(i, "unknown keyword %q%s", keyword(words), where(s))
		}
	}
	return findings
}

// anyUnknown reports whether client-native has to be asked at all: where
// HAProxy knows the first word of every line, its answer would change nothing,
// and it takes a hundred times as long as the question.
func anyUnknown(lines []string) bool {
	for _, line := range lines {
		if words, err := Fields(line); err == nil && len(words) > 0 && !known(words) && !isSection(words[0]) {
			return true
		}
	}
	return false
}

// known reports whether a line may be one of HAProxy's.
func known(words []string) bool { return knownKeyword(keyword(words)) }

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

// needsName reports the sections that HAProxy refuses without a name.
func needsName(kind string) bool {
	switch kind {
	case "global", "defaults", "traces", "":
		return false
	}
	return true
}

// unprocessed returns the lines, without surrounding space, of which
// client-native's parser made nothing.
func unprocessed(s Section) []string {
	parserMu.Lock()
	defer parserMu.Unlock()
	p, err := parser.New(options.String(s.Text), options.NoNamedDefaultsFrom)
	if err != nil {
		return nil // only options fail
	}
	var lines []string
	collect := func(kind parser.Section, name string) {
		results, err := p.GetResult(kind, name, "")
		if err != nil {
			return // none
		}
		for _, r := range results {
			lines = append(lines, r.Data)
		}
	}
	collect(parser.Comments, parser.CommentsSectionName) // in front of a header, or without one
	if kind := parser.Section(s.Kind); kind != "" {
		if kind == parser.Global {
			collect(kind, parser.GlobalSectionName)
			return lines
		}
		names, err := p.SectionsGet(kind)
		if err != nil {
			return lines
		}
		for _, name := range names {
			collect(kind, name)
		}
	}
	return lines
}
