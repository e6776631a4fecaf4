package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/printable"
)

// hasAlert reports whether the output has an alert.
func hasAlert(output string) bool {
	return slices.ContainsFunc(haproxyctl.Messages(output), func(m haproxyctl.Message) bool { return m.Level == "ALERT" })
}

// summaries are parts of the messages that haproxy adds after the actual errors.
var summaries = []string{"rror(s) found in configuration file", "atal errors found in configuration", "Failed to initialize server(s) addr"}

// readOutput makes the verdict from the output of haproxy -c. An alert refuses the configuration,
// whatever the exit code is: HAProxy 3.4 alerts of "backend a/b", and ends with 0.
func readOutput(output string, code int, layout dataplane.Layout, cfg *dataplane.Config, box *sandbox) *verdict {
	l := newLocator(layout, cfg)
	found := &verdict{}
	var summary []Finding
	var other []string
	for _, m := range haproxyctl.Messages(output) {
		text := box.back.Replace(m.Text)
		switch {
		case m.Level == "":
			other = append(other, text)
		case m.Level == "WARNING":
			found.warnings = append(found.warnings, l.finding(text))
		case m.Level == "NOTICE", m.Level == "INFO", m.Level == "DIAG":
		case slices.ContainsFunc(summaries, func(s string) bool { return strings.Contains(text, s) }):
			summary = append(summary, Finding{File: layout.ConfigPath(), Message: oneLine(text)})
		default:
			found.findings = append(found.findings, l.finding(text))
		}
	}
	switch {
	case code == 0 && len(found.findings) == 0:
		return found
	case len(found.findings) > 0:
	case len(summary) > 0: // haproxy refuses some things with a warning alone
		found.findings = append(found.warnings, summary...)
	default: // no listener, for example
		text := cmp.Or(oneLine(strings.Join(other, " ")), fmt.Sprintf("haproxy -c ended with code %d", code))
		found.findings = []Finding{{File: layout.ConfigPath(), Message: text}}
	}
	slices.SortStableFunc(found.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(uint(a.Line)-1, uint(b.Line)-1)) // without a line: last
	})
	return found
}

// oneLine replaces bytes that are no text. HAProxy cuts characters in two. If an argument
// is missing, HAProxy may quote bytes of its memory.
func oneLine(text string) string {
	if len(text) > printable.MaxSaid {
		text = text[:printable.MaxSaid] + " ..."
	}
	return strings.Map(func(r rune) rune {
		if !printable.Is(r) && r != '\t' {
			return utf8.RuneError
		}
		return r // U+FFFD for invalid UTF-8
	}, text)
}
