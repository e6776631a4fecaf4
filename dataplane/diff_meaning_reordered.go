package dataplane

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// reordered reports whether two lines are the same words in another order, and
// the Dataplane API writes both the same way without losing a word: the order
// then means nothing. Lines that [sortedArguments] knows it has judged already.
func (e *edit) reordered() bool {
	if e.old == nil || e.now == nil || strings.ContainsRune(e.old.raw+e.now.raw, '$') {
		return false
	}
	if len(e.old.words) == 0 || !slices.Equal(sortedWords(e.old.words), sortedWords(e.now.words)) {
		return false
	}
	if _, judged := freeArguments(e.section.Kind, e.now.words); judged {
		return false
	}
	old, ok := rewritten(e.section.Kind, *e.old)
	if !ok {
		return false
	}
	now, ok := rewritten(e.section.Kind, *e.now)
	return ok && old == now
}

func sortedWords(words []string) []string { return slices.Sorted(slices.Values(words)) }

// rewritten returns a line as the Dataplane API writes it, in its own form, and
// whether it keeps all words.
func rewritten(kind string, l line) (string, bool) {
	header := kind + " x"
	if kind == "global" || kind == "traces" {
		header = kind
	}
	out, err := haproxycfg.RoundTrip(header + "\n  " + l.raw + "\n")
	if err != nil {
		return "", false
	}
	for _, s := range haproxycfg.Split(out) {
		if body := bodyOf(s.Kind, s.Text); s.Kind == kind && len(body) == 1 {
			return body[0].raw, slices.Equal(sortedWords(body[0].words), sortedWords(l.words))
		}
	}
	return "", false
}
