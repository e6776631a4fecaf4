package config

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// wordSet is a set of words such as the names of backends. It may wrongly report that it has
// a word, but never that it lacks one. It is small: 16 bits per word.
type wordSet []uint64

var wordSeed = maphash.MakeSeed()

func isWordPart(c byte) bool { return c == '.' || c == ':' || IsNameRune(rune(c)) }

// Word is a word to look for in many places.
type Word struct {
	Text  string
	sum   uint64
	parts bool // the text is more than one word
}

// NewWord returns a word to look for, such as the name of a backend.
func NewWord(text string) Word {
	w := Word{Text: text, sum: maphash.String(wordSeed, text), parts: text == ""}
	for i := range len(text) {
		w.parts = w.parts || !isWordPart(text[i])
	}
	return w
}

// wordsIn returns the words of a text. The function part returns the relevant part of each
// line.
func wordsIn(text []byte, part func(line []byte) []byte) wordSet {
	var sums []uint64
	eachWord(text, part, func(sum uint64) { sums = append(sums, sum) })
	set := make(wordSet, len(sums)/4+1)
	for _, sum := range sums {
		set.add(sum)
	}
	return set
}

func eachWord(text []byte, part func(line []byte) []byte, yield func(sum uint64)) {
	for line := range bytes.Lines(text) {
		line = part(line)
		for i := 0; i < len(line); i++ {
			start := i
			for i < len(line) && isWordPart(line[i]) {
				i++
			}
			if i > start {
				yield(maphash.Bytes(wordSeed, line[start:i]))
			}
		}
	}
}

func (set wordSet) add(sum uint64) {
	for range 3 {
		at, _ := bits.Mul64(sum, uint64(len(set)))
		set[at] |= 1 << (sum & 63)
		sum = bits.RotateLeft64(sum, 21)
	}
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

// sums returns short hashes of the words of the section, except of its name and of the names of
// its servers. It skips servers that name no other server.
func (s *Section) sums() []uint32 {
	sums := s.learnt.sums.Load()
	if sums == nil {
		sums = new([]uint32)
		n := -1
		for line := range strings.Lines(s.Text) {
			n++
			eachName(strings.TrimLeft(line, " \t"), n == s.comments && s.Kind != "", func(sum uint64) { *sums = append(*sums, uint32(sum)) })
		}
		*sums = slices.Clip(*sums)
		s.learnt.sums.Store(sums)
	}
	return *sums
}

// eachName yields the words of a line that may name something: the parts of words with
// colons, and what quotes and backslashes hide, too.
func eachName(line string, header bool, yield func(sum uint64)) {
	quoted, server := strings.ContainsAny(line, "\"'\\"), isServer(line)
	if strings.HasPrefix(line, "#") || server && !quoted && !strings.Contains(line, "track") && strings.IndexByte(line, '(') < 0 {
		return
	}
	all := func(text string) {
		eachWord([]byte(text), wholeLine, yield)
		if strings.IndexByte(text, ':') >= 0 {
			eachWord([]byte(strings.ReplaceAll(text, ":", " ")), wholeLine, yield)
		}
	}
	words, err := []string(nil), error(nil)
	if quoted || server || header {
		words, err = haproxycfg.Fields(line)
	}
	if (server || header) && err == nil && len(words) > 1 {
		words = slices.Delete(words, 1, 2)
	} else {
		all(line)
	}
	if decoded := strings.Join(words, " "); decoded != "" {
		all(decoded)
		all(Unquoted(decoded)) // an argument of a sample fetch may have quotes of its own
	}
}

func wholeLine(line []byte) []byte { return line }

// quotes removes quotes and backslashes.
var quotes = strings.NewReplacer(`"`, "", "'", "", `\`, "")

// Unquoted returns a line without quotes and backslashes: m'.map' is m.map.
func Unquoted(line string) string {
	if !strings.ContainsAny(line, "\"'\\") {
		return line
	}
	return quotes.Replace(line)
}

// MayName reports whether a line of the section may have a word. It skips servers that name
// no other server.
func (s *Section) MayName(w Word) bool { return w.parts || slices.Contains(s.sums(), uint32(w.sum)) }

// Naming returns the sections that may have one of the words, apart from their own names. It
// reads each section once.
func (x *Index) Naming(words []Word) (naming []*Section) {
	wanted := make(map[uint32]bool, len(words))
	var buckets [1 << 14]bool // a cheap filter: most words differ in it
	for _, w := range words {
		if w.parts {
			return x.List
		}
		wanted[uint32(w.sum)], buckets[w.sum%uint64(len(buckets))] = true, true
	}
	for _, s := range x.List {
		for _, sum := range s.sums() {
			if buckets[sum%uint32(len(buckets))] && wanted[sum] {
				naming = append(naming, s)
				break
			}
		}
	}
	return naming
}

// MayName reports whether the file with that index may have a word. In a map it looks only at
// the values.
func (c *Config) MayName(file int, w Word) bool {
	set := c.facts[file].words.Load()
	if set == nil {
		content := c.Files[file].Content
		var words wordSet
		if c.Files[file].Kind == Map { // about one word in a line
			words = make(wordSet, bytes.Count(content, []byte("\n"))/3+1)
			eachWord(content, mapValue, words.add)
		} else {
			words = wordsIn(content, wholeLine)
		}
		set = &words
		c.facts[file].words.Store(set)
	}
	return set.has(w)
}

// Several returns the values of a map that consist of several words.
func (c *Config) Several(file int) []string {
	several := c.facts[file].several.Load()
	if several == nil {
		several = new([]string)
		for line := range bytes.Lines(c.Files[file].Content) {
			if slices.ContainsFunc(bytes.TrimSpace(mapValue(line)), func(c byte) bool { return !isWordPart(c) }) {
				for _, e := range ParseMap(line) {
					*several = append(*several, e.Value)
				}
			}
		}
		c.facts[file].several.Store(several)
	}
	return *several
}

func mapValue(line []byte) []byte {
	line = bytes.TrimLeft(line, " \t")
	return line[max(0, bytes.IndexAny(line, " \t")):]
}
