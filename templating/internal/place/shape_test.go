package place

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestManyValuesInOneWord: what a word may become is found in a time that does not double
// with each value in it.
func TestManyValuesInOneWord(t *testing.T) {
	begin := time.Now()
	s := shape("")
	for id := range 200 {
		s = s.with(hole(id)).with(hole(id))
		if id%50 == 49 {
			s = s.with('z').with('q')
		}
	}
	require.LessOrEqual(t, time.Since(begin), 10*time.Second, "it took")
	require.Equal(t, noShape, s, "no word has zq twice")
}

// TestGlob compares it with the plain definition.
func TestGlob(t *testing.T) {
	var plain func(pattern, word string) bool
	plain = func(pattern, word string) bool {
		switch {
		case pattern == "":
			return word == ""
		case pattern[0] == '*':
			return plain(pattern[1:], word) || word != "" && plain(pattern, word[1:])
		}
		return word != "" && word[0] == pattern[0] && plain(pattern[1:], word[1:])
	}
	var all func(letters string, n int, yield func(s string))
	all = func(letters string, n int, yield func(s string)) {
		yield("")
		if n > 0 {
			for _, c := range letters {
				all(letters, n-1, func(s string) { yield(string(c) + s) })
			}
		}
	}
	all("ab*", 5, func(pattern string) {
		runes := []rune(pattern)
		for i, c := range runes {
			if c == '*' {
				runes[i] = anyText
			}
		}
		all("ab", 5, func(word string) {
			if got := glob(runes, word); got != plain(pattern, word) {
				t.Fatalf("%q %q: %v", pattern, word, got)
			}
		})
	})
}
