package place

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// shape is a word of the output: the characters of the template's text, and a rune from
// firstHole for each value. It becomes noShape as soon as the word cannot be one that
// HAProxy knows.
type shape string

const (
	noShape   = shape("\U0010ffff")
	firstHole = 0x10000  // the value with the number 0
	endOfName = '\ufffe' // behind the name of a converter
)

func hole(id int) rune      { return firstHole + rune(id) }
func isHole(c rune) bool    { return c >= firstHole }
func (s shape) whole() bool { return s != noShape && utf8.RuneCountInString(string(s)) == 1 }

// joined reports whether the word consists of several values.
func (s shape) joined() bool {
	return s != noShape && !s.whole() && !strings.ContainsFunc(string(s), func(c rune) bool { return !isHole(c) })
}

// madeWords are all words that a value must not make with its neighbours.
var madeWords = func() []string { // constant in effect
	all := map[string]bool{}
	for _, words := range []map[string]bool{reserved, flags, operators, converters} {
		for word := range words {
			all[word] = true
		}
	}
	for _, f := range directives {
		for word := range f.names {
			all[word] = true
		}
	}
	var list []string
	for word := range all {
		list = append(list, word)
	}
	return list
}()

// begins has all prefixes of these words.
var begins = func() map[shape]bool { // constant in effect
	all := map[shape]bool{}
	for _, word := range madeWords {
		for i := range len(word) {
			all[shape(word[:i+1])] = true
		}
	}
	return all
}()

// with returns the shape with one more rune behind it. It keeps a repeated value of a loop
// at most twice in a row: more would add nothing.
func (s shape) with(c rune) shape {
	if s == noShape || strings.HasSuffix(string(s), string(endOfName)) {
		return s
	}
	if c == endOfName {
		return s + shape(c)
	}
	if isHole(c) {
		runes := []rune(s)
		same := 0
		for i := len(runes) - 1; i >= 0 && isHole(runes[i]); i-- {
			if runes[i] == c {
				same++
			}
		}
		if same == 2 {
			return s
		}
		return s + shape(c)
	}
	longer := s + shape(c)
	if begins[longer] {
		return longer
	}
	if !strings.ContainsFunc(string(s), isHole) {
		return noShape
	}
	open := append(longer.pattern(-1, "", true, true), anyText)
	if slices.ContainsFunc(madeWords, func(word string) bool { return glob(open, word) }) {
		return longer
	}
	return noShape
}

// anyText stands for any text in a pattern.
const anyText rune = -1

// pattern returns the shape with a value in place of the hole at index, and any text in
// place of the others. before and behind say which sides count.
func (s shape) pattern(index int, value string, before, behind bool) []rune {
	var list []rune
	runes := []rune(s)
	for i, c := range runes {
		switch {
		case i == index && isRepeated(runes, i):
			list = append(append(append(list, anyText), []rune(value)...), anyText)
		case i == index:
			list = append(list, []rune(value)...)
		case i < index && !before || i > index && !behind:
		case c == endOfName:
		case isHole(c):
			list = append(list, anyText)
		default:
			list = append(list, c)
		}
	}
	return list
}

// isRepeated reports whether a value occurs more than once with only values between: a loop
// decides how often.
func isRepeated(runes []rune, i int) bool {
	for _, way := range []int{-1, 1} {
		for j := i + way; j >= 0 && j < len(runes) && isHole(runes[j]); j += way {
			if runes[j] == runes[i] {
				return true
			}
		}
	}
	return false
}

// makes reports whether the shape may become one of the words with a value in hole id.
func (s shape) makes(id int, value string, words map[string]bool, before, behind bool) bool {
	if s.whole() {
		return words[value]
	}
	if value == "" && s.joined() { // the check of the other values covers this
		return false
	}
	for i, c := range []rune(s) {
		if c != hole(id) {
			continue
		}
		pattern := s.pattern(i, value, before, behind)
		for word := range words {
			if glob(pattern, word) {
				return true
			}
		}
	}
	return false
}

// glob reports whether a word matches the pattern. Only the last anyText backtracks: for
// earlier ones a retry would find nothing more.
func glob(pattern []rune, word string) bool {
	p, w, behind, taken := 0, 0, -1, 0
	for w < len(word) {
		switch {
		case p < len(pattern) && pattern[p] == anyText:
			p++
			behind, taken = p, w
		case p < len(pattern) && pattern[p] == rune(word[w]):
			p++
			w++
		case behind >= 0:
			taken++
			p, w = behind, taken
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == anyText {
		p++
	}
	return p == len(pattern)
}
