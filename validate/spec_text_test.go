package validate_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// unusual are texts that no archive shows well. Each line stands in a frontend,
// as line 3.
var unusual = []struct {
	name, line string
	refused    bool   // by [dataplane.NewConfig], so that nothing goes on
	syntax     string // what phase 1 says of the line
	semantics  string
	fixed      string
}{
	{name: "NUL", line: "acl a path /a\x00b", refused: true, fixed: "acl a path /ab"},
	{name: "carriage return, at which HAProxy ends the line", line: "acl a path /a\rb", refused: true, fixed: "acl a path /a\r"},
	{name: "form feed, which parts words for HAProxy", line: "acl a path /a\fb", refused: true, fixed: "acl a path /ab"},
	{name: "vertical tab", line: "\vbackend b", refused: true, fixed: "acl a path /a"},
	{name: "escape", line: "acl a path \x1b[1m", refused: true, fixed: "acl a path [1m"},
	{name: "tabs", line: "\tacl\ta\tpath\t/a\t"},
	{name: "text that is not ASCII", line: "acl a path /bücher/日本"},
	{name: "bytes that are no UTF-8", line: "acl a path /\xff\xfe"},
	{name: "bytes that are no UTF-8, in a keyword", line: "\xff\xfeacl a path /", syntax: "unknown keyword", semantics: "unknown keyword '\ufffd\ufffdacl'", fixed: "acl a path /"},
	{name: "a blank that is none", line: "acl\u00a0a path /", syntax: "unknown keyword", semantics: "unknown keyword 'acl\u00a0a'", fixed: "acl a path /"},
	{name: "letters that look like others", line: "\u0430cl a path /", syntax: "unknown keyword", semantics: "unknown keyword", fixed: "acl a path /"},
	{name: "64 words", line: "acl a path" + strings.Repeat(" /a", 61)},
	{name: "65 words", line: "acl a path" + strings.Repeat(" /a", 62), semantics: "too many words", fixed: "acl a path" + strings.Repeat(" /a", 61)},
	{name: "2,049 bytes", line: "acl a path /" + strings.Repeat("a", 2037)},
	{name: "60,000 bytes", line: "acl a path /" + strings.Repeat("a", 60000)},
	{name: "60,000 bytes of something else", line: "acl a path_reg (" + strings.Repeat("a", 60000), semantics: "regex", fixed: "acl a path_reg " + strings.Repeat("a", 6000)},
	{name: "a megabyte", line: "acl a path /" + strings.Repeat("a", 1<<20), refused: true, fixed: "acl a path /a"},
	{name: "words of nothing", line: "acl a path '' \"\""},
	{name: "a comment of anything", line: "# \"'\\ ${ \xff"},
	{name: "a regular expression of much work", line: "acl a path_reg ^(((a{1,50}){1,50}){1,50}){1,50}$", semantics: "regex", fixed: "acl a path_reg ^(a{1,50}){1,50}$"},
}

func TestUnusualTexts(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	v := &validate.Validator{Binary: os.Getenv("HAPROXY_BIN"), NoInherit: true, Timeout: patience}
	of := func(line string) string {
		return "frontend f\n  mode http\n" + line + "\n  bind 127.0.0.1:9998\n" + listener
	}
	for _, c := range unusual {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := dataplane.NewConfig(of(c.line)); errors.Is(err, dataplane.ErrInvalidConfig) != c.refused {
				t.Fatalf("refused at once: %v", err)
			}
			if !c.refused {
				cfg := text(t, of(c.line))
				_, err := v.Semantics(t.Context(), cfg)
				says(t, validate.Syntax(cfg), c.syntax)
				says(t, err, c.semantics)
			}
			if c.fixed != "" {
				if _, err := v.Check(t.Context(), text(t, of(c.fixed))); err != nil {
					t.Errorf("the fixed one: %v", err)
				}
			}
		})
	}
}

// says wants one finding, of line 3; none when message is empty.
func says(t *testing.T, err error, message string) {
	t.Helper()
	found := foundIn(t, err)
	if message == "" && len(found) == 0 {
		return
	}
	if message == "" || len(found) != 1 || found[0].Line != 3 || found[0].Section != "frontend f" || !strings.Contains(found[0].Message, message) {
		t.Errorf("got %v, want %q in line 3", err, message)
	}
}

// Very many sections and entries are no reason to hang.
func TestLargeText(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	main := large(20000, 0)
	v := &validate.Validator{Binary: os.Getenv("HAPROXY_BIN"), NoInherit: true, Timeout: 2 * time.Minute}
	line := strings.Count(main, "\n") + 2
	_, err := v.Semantics(t.Context(), text(t, main+"backend last\n  balance nonsense\n"))
	found := foundIn(t, err)
	if len(found) != 1 || found[0].Line != line || found[0].Section != "backend last" {
		t.Errorf("got %v, want a finding in line %d", err, line)
	}
}
