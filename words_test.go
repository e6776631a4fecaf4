package haptic

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// retired are the words that CONTRIBUTING.md replaces by others, and those that leave open
// who acts. One that has an ordinary meaning, too, has a pattern that leaves that alone.
var retired = []struct {
	word, instead string
	pages         bool // in pages alone: Go uses it for something else
}{
	{word: `HAProx(?:ys|ies)`, instead: "instances"},
	{word: `accus\w+|acquit\w*|forgiv\w+|laggards?|vigil\w*|fatigue\w*|weary`, instead: "quarantined, released"},
	{word: `trials?`, instead: "a try, tried again", pages: true},
	{word: `culprits?|offenders?|(?:is|are) to blame`, instead: "at fault", pages: true},
	{word: `targets?`, instead: "instance", pages: true},
	{word: `slots?`, instead: "server", pages: true},
	{word: `somebody|nobody|whoever`, instead: "the actor: a tenant, the controller, HAProxy", pages: true},
	{word: `(?m)(?:^(?:[-*] )?|[.:;] |\| )(?:Who|Whoever|Of) `, instead: "a sentence that begins with its subject", pages: true},
	{word: `(?m)^(?:[-*] )?What `, instead: "a sentence that begins with its subject", pages: true},
}

// TestWords keeps retired words out of the pages, and out of Go code and its comments.
func TestWords(t *testing.T) {
	texts := map[string]string{}
	for name, text := range pages(t) {
		if name == "CONTRIBUTING.md" {
			text, _, _ = strings.Cut(text, "\n## Words\n") // which lists them
		}
		texts[name] = prose(text)
	}
	err := filepath.WalkDir(".", func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".go") && name != "words_test.go" {
			var text []byte
			text, err = os.ReadFile(name)
			texts[filepath.ToSlash(name)] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range retired {
		pattern := r.word
		if !strings.HasPrefix(pattern, "(?m)") {
			pattern = `(?i)\b(?:` + pattern + `)\b`
		}
		word := regexp.MustCompile(pattern)
		for name, text := range texts {
			if r.pages && !strings.HasSuffix(name, ".md") {
				continue
			}
			for _, at := range word.FindAllStringIndex(text, -1) {
				line := 1 + strings.Count(text[:at[0]], "\n")
				t.Errorf("%s:%d: %q is retired: write %s", name, line, strings.TrimSpace(text[at[0]:at[1]]), r.instead)
			}
		}
	}
}

// TestRetired: the table finds what it is for, and not what looks like it.
func TestRetired(t *testing.T) {
	for text, want := range map[string]int{
		"two HAProxys and three HAProxies": 2, "HAProxy's own": 0, "the accused was acquitted": 2, "accuracy": 0,
	} {
		found := 0
		for _, r := range retired {
			if !r.pages {
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
