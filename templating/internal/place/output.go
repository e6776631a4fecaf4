package place

import (
	"fmt"
	"strings"
)

// A value can be the first word of a line, or a part of it. Escape refuses one that makes a
// keyword by itself. Several values, for example of a loop over letters, may make a keyword
// together. Marks note these values, and Check reads their words after the run.

// Mark is the position of a value, or of the text of a macro, from a site with
// [Site.First].
type Mark struct {
	At, End int // in the output
	Site    int // the index of its site
	Macro   bool
}

// EndOfItem separates the texts of several items. Neither an escaped value nor a
// configuration can contain it.
const EndOfItem = "\x00"

// Fault is an error of the output as a whole.
type Fault struct {
	Line    int   // of the output, from 1
	Site    *Site // nil if unknown
	Message string
}

// Check finds text that HAProxy would read differently from the template. It finds a
// keyword made of several values, a line of a map or a list that HAProxy would split, and a
// rule without condition.
func Check(k Kind, text string, marks []Mark, sites []Site) *Fault {
	for _, m := range marks {
		if m.Site >= len(sites) || m.Macro && !sites[m.Site].Chosen {
			continue
		}
		start := strings.LastIndexAny(text[:m.At], "\n"+EndOfItem) + 1
		line := text[start:]
		if i := strings.IndexAny(line, "\n"+EndOfItem); i >= 0 {
			line = line[:i]
		}
		if word, ok := firstWord(line, m.At-start, m.End-start); ok && isKeyword(word) {
			n := 1 + strings.Count(text[:start], "\n")
			return &Fault{n, &sites[m.Site], fmt.Sprintf("line %d of the output begins with %s: %s", n, Shorten(word), chosenLine)}
		}
	}
	n := 0
	if k != Config && (k != Map && k != RegMap && k != List && k != RegList || len(text) <= maxMapLine) {
		return nil
	}
	for line := range strings.Lines(text) {
		n++
		for part := range strings.SplitSeq(line, EndOfItem) {
			switch {
			case k == Config && lacksCondition(part):
				return &Fault{Line: n, Message: fmt.Sprintf("line %d of the output, %s, has no condition: HAProxy would take it for a rule without one",
					n, Shorten(strings.TrimSpace(part)))}
			case k != Config && len(part) > maxMapLine:
				return &Fault{Line: n, Message: fmt.Sprintf("line %d of the output, %s, has %d bytes: HAProxy reads at most %d as one line, make it shorter",
					n, Shorten(part), len(part), maxMapLine)}
			}
		}
	}
	return nil
}

// maxMapLine is the longest line of a map or a list with its line feed, in bytes. HAProxy
// reads lines into a buffer of tune.bufsize, by default 16384 bytes with the NUL. It reads
// the rest of a longer line as the next line: the end of a long value would become an entry
// of its own.
const maxMapLine = 16383

// BeginsLine says why a text that begins with a value cannot begin a line: its first word
// is a keyword, and more words follow.
func BeginsLine(text string) (why string) {
	word, _ := firstWord(text, 0, 0)
	if line := strings.TrimSpace(text); line != word && isKeyword(word) {
		return Shorten(word) + ": " + chosenLine
	}
	return ""
}

// firstWord reads the first word of a line as HAProxy does, or the second one behind "no"
// and "default". part reports whether the bytes between from and to are in the word.
func firstWord(line string, from, to int) (word string, part bool) {
	var b strings.Builder
	place, begun, start := argument, false, 0
	for i := 0; ; i++ {
		end := i == len(line)
		if end || place == argument && strings.IndexByte(" \t\r#", line[i]) >= 0 {
			if begun {
				word = b.String()
				part = from < i && to > start
				if part || end || word != "no" && word != "default" {
					return word, part
				}
			}
			if end || line[i] == '#' {
				return "", false
			}
			b.Reset()
			begun = false
			continue
		}
		if !begun {
			begun, start = true, i
		}
		before := place
		place = step(before, line[i])
		if place == before && place != argEscape || before == argEscape || before == dblEscape || before&(dblDollar|dblName) != 0 {
			b.WriteByte(line[i])
		}
	}
}

// conditional has the rules that HAProxy always executes if "if" or "unless" is their last
// word.
var conditional = wordSet(
	`force-persist http-after-response http-request http-response ignore-persist redirect stick tcp-request tcp-response use-server use_backend`,
)

// lacksCondition reports whether a line is a rule that ends with "if" or "unless". A macro
// or a branch that writes nothing leaves such a rule.
func lacksCondition(line string) bool {
	line = strings.TrimRight(withoutComment(line), " \t\r\n")
	if !strings.HasSuffix(line, "if") && !strings.HasSuffix(line, "unless") {
		return false
	}
	word, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	if !conditional[word] {
		return false
	}
	// The words before the last one say whether it begins a condition: in "set-header X if"
	// it is the value.
	t := NewTable(Config)
	s := t.afterOne(point{place: argument}, line)
	if s.place != argument || s.line.mode == modeCondition {
		return false
	}
	t.finish(&s)
	return s.line.mode == modeCondition
}

func withoutComment(line string) string {
	if strings.IndexByte(line, '#') < 0 {
		return line
	}
	p := argument
	for i := range len(line) {
		p = step(p, line[i])
		if p == comment {
			return line[:i]
		}
	}
	return line
}
