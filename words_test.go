package haptic

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// retired are the words that CONTRIBUTING.md replaces by others, and those that leave open
// who acts. One that has an ordinary meaning, too, has a pattern that leaves that alone.
var retired = []struct {
	word, instead string
	in            string // "pages" or "comments", of Go code but for its tests; empty: everywhere
}{
	{word: `HAProx(?:ys|ies)`, instead: "instances"},
	{word: `accus\w+|acquit\w*|forgiv\w+|laggards?|vigil\w*|fatigue\w*|weary`, instead: "quarantined, released"},
	{word: `trials?`, instead: "a try, tried again", in: "pages"},
	{word: `culprits?|offenders?|(?:is|are) to blame`, instead: "at fault", in: "pages"},
	{word: `targets?`, instead: "instance", in: "pages"},
	{word: `slots?`, instead: "server", in: "pages"},
	{word: `somebody|nobody|whoever`, instead: "the actor: a tenant, the controller, HAProxy", in: "pages"},
	{word: `somebody|whoever`, instead: "the actor: a tenant, the controller, HAProxy", in: "comments"},
	{word: `(?m)(?:^(?:[-*] )?|[.:;] |\| )(?:Who|Whoever|Of) `, instead: "a sentence that begins with its subject", in: "pages"},
	{word: `(?m)^(?:[-*] )?What `, instead: "a sentence that begins with its subject", in: "pages"},
	{word: `(?m)(?:^|\. )(?:What|Who|Whoever|Whatever|Nobody|Somebody) |\. Of `, instead: "a sentence that begins with its subject", in: "comments"},
}

// TestWords keeps retired words out of the pages, and out of Go code and its comments.
func TestWords(t *testing.T) {
	texts := map[string]map[string]string{"pages": {}, "comments": {}, "": {}}
	for name, text := range pages(t) {
		if name == "CONTRIBUTING.md" {
			text, _, _ = strings.Cut(text, "\n## Words\n") // which lists them
		}
		texts["pages"][name], texts[""][name] = prose(text), prose(text)
	}
	err := filepath.WalkDir(".", func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".go") && name != "words_test.go" {
			var text []byte
			text, err = os.ReadFile(name)
			texts[""][name] = string(text)
			if !strings.HasSuffix(name, "_test.go") {
				texts["comments"][name] = comments(t, text)
			}
		}
		return err
	})
	require.NoError(t, err)
	for _, r := range retired {
		pattern := r.word
		if !strings.HasPrefix(pattern, "(?m)") {
			pattern = `(?i)\b(?:` + pattern + `)\b`
		}
		word := regexp.MustCompile(pattern)
		for name, text := range texts[r.in] {
			for _, at := range word.FindAllStringIndex(text, -1) {
				line := 1 + strings.Count(text[:at[0]], "\n")
				t.Errorf("%s:%d: %q is retired: write %s", name, line, strings.TrimSpace(text[at[0]:at[1]]), r.instead)
			}
		}
	}
}

// comments is Go code with all but its comments taken out. A line of a sentence that goes
// on begins with a blank.
func comments(t *testing.T, code []byte) string {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", code, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	lines := make([]string, 1+strings.Count(string(code), "\n"))
	for _, g := range f.Comments {
		begins := true
		for _, c := range g.List {
			line := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
			if begins = begins || strings.HasPrefix(line, "- "); !begins {
				lines[fset.Position(c.Pos()).Line-1] = " "
			}
			lines[fset.Position(c.Pos()).Line-1] += strings.TrimPrefix(line, "- ")
			begins = line == ""
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), ".\n ", ".\n. ")
}

// TestRetired: the table finds what it is for, and not what looks like it.
func TestRetired(t *testing.T) {
	for text, want := range map[string]int{
		"two HAProxys and three HAProxies": 2, "HAProxy's own": 0, "the accused was acquitted": 2, "accuracy": 0,
	} {
		found := 0
		for _, r := range retired {
			if r.in == "" {
				found += len(regexp.MustCompile(`(?i)\b(?:`+r.word+`)\b`).FindAllString(text, -1))
			}
		}
		if found != want {
			t.Errorf("%q: found %d, want %d", text, found, want)
		}
	}
}

// maxWords is how long a sentence of a page may be. A colon or a semicolon ends one.
const maxWords = 25

// TestSentences: the sentences of the pages are short.
func TestSentences(t *testing.T) {
	var (
		parts = regexp.MustCompile(`\n\n|\n\s*[-*\d]|[|]|[.:;?!]["')*]*\s`)
		word  = regexp.MustCompile(`\w`)
	)
	for name, text := range pages(t) {
		if name == "docs/annotations.md" || name == "docs/flags.md" || name == "docs/settings.md" || name == "docs/metrics.md" {
			continue // made of code
		}
		for _, sentence := range parts.Split(prose(text), -1) {
			words := 0
			for w := range strings.FieldsSeq(strings.ReplaceAll(sentence, "``", "code")) {
				if word.MatchString(w) {
					words++
				}
			}
			if words > maxWords {
				t.Errorf("%s: a sentence of %d words: %s", name, words, strings.TrimSpace(sentence))
			}
		}
	}
}
