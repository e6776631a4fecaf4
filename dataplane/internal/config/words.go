package config

import (
	"hash/maphash"
	"math/bits"
	"strings"
)

// wordSet holds words such as the names of backends. It may say that it has one that
// it has not, never the reverse. It is small: 16 bits for a word.
type wordSet []uint64

var wordSeed = maphash.MakeSeed()

func isWordPart(c byte) bool { return c == '.' || c == ':' || IsNameRune(rune(c)) }

// Word is a word to look for in many places.
type Word struct {
	Text  string
	sum   uint64
	parts bool // it is more than one word
}

// NewWord returns a word, such as the name of a backend.
func NewWord(text string) Word {
	w := Word{Text: text, sum: maphash.String(wordSeed, text), parts: text == ""}
	for i := range len(text) {
		w.parts = w.parts || !isWordPart(text[i])
	}
	return w
}

// wordsIn returns the words of a text, of which part gives what counts of each line.
func wordsIn(text string, part func(line string) string) wordSet {
	sums := make([]uint64, 0, len(text)/16+8)
	for line := range strings.Lines(text) {
		line = part(line)
		for i := 0; i < len(line); i++ {
			start := i
			for i < len(line) && isWordPart(line[i]) {
				i++
			}
			if i > start {
				sums = append(sums, maphash.String(wordSeed, line[start:i]))
			}
		}
	}
	set := make(wordSet, len(sums)/4+1)
	for _, sum := range sums {
		for range 3 {
			at, _ := bits.Mul64(sum, uint64(len(set)))
			set[at] |= 1 << (sum & 63)
			sum = bits.RotateLeft64(sum, 21)
		}
	}
	return set
}

func (set wordSet) has(w Word) bool {
	if w.parts {
		return true
	}
	sum := w.sum
	for range 3 {
		at, _ := bits.Mul64(sum, uint64(len(set)))
		if set[at]&(1<<(sum&63)) == 0 {
			return false
		}
		sum = bits.RotateLeft64(sum, 21)
	}
	return true
}

// MayName reports whether a line of the section may have a word. It does not look at
// servers that track no other one.
func (s *Section) MayName(w Word) bool {
	set := s.learnt.words.Load()
	if set == nil {
		words := wordsIn(s.Text, func(line string) string {
			line = strings.TrimLeft(line, " \t")
			if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "server ") && !strings.Contains(line, "track") {
				return ""
			}
			return line
		})
		set = &words
		s.learnt.words.Store(set)
	}
	return set.has(w)
}

// MayName reports whether a file, the one at that place, may have a word. Of a map it
// looks only at the values.
func (c *Config) MayName(file int, w Word) bool {
	set := c.facts[file].words.Load()
	if set == nil {
		isMap := c.Files[file].Kind == Map
		words := wordsIn(string(c.Files[file].Content), func(line string) string {
			if isMap {
				line = strings.TrimLeft(line, " \t")
				line = line[max(0, strings.IndexAny(line, " \t")):]
			}
			return line
		})
		set = &words
		c.facts[file].words.Store(set)
	}
	return set.has(w)
}
