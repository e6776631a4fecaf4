package place

import (
	"fmt"
	"strings"
)

// Values that are the first word of a line each, or a part of it, are refused
// where one of them makes a keyword by itself. What several make together, a loop
// over letters for example, is known once the line is written: marks say where such
// values stand, and the words there are read when the run has ended.

// Mark is where a value, or the text of a macro, was written at a site of which
// [Site.First] says that its first word is read later.
type Mark struct {
	At, End int // in the output
	Site    int // its number
	Macro   bool
}

// EndOfItem stands between the texts of several items. No value that is escaped can
// have it, nor can a configuration.
const EndOfItem = "\x00"

// Fault is what is wrong with an output as a whole.
type Fault struct {
	Line    int   // of the output, from 1
	Site    *Site // nil where it is not known
	Message string
}

// Check finds what HAProxy would read otherwise than the template says: values that
// together make the keyword of a line, a line of a map or a list that HAProxy would
// read as two, and a rule whose condition is missing.
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
				return &Fault{Line: n, Message: fmt.Sprintf("line %d of the output, %s, has %d bytes: HAProxy takes what is beyond %d for another line",
					n, Shorten(part), len(part), maxMapLine)}
			}
		}
	}
	return nil
}

// maxMapLine is the longest line of a map with its line feed, in bytes. HAProxy
// reads a map into a buffer of tune.bufsize, 16384 bytes with the NUL at its end
// unless set otherwise, and takes what does not fit for the next line: a long
// value would become an entry with a key of its own. So it does with a list.
const maxMapLine = 16383

// BeginsLine says why a text that begins with a value cannot stand where a line
// begins: its first word is a keyword, and not a name by itself.
func BeginsLine(text string) (why string) {
	word, _ := firstWord(text, 0, 0)
	if line := strings.TrimSpace(text); line != word && isKeyword(word) {
		return Shorten(word) + ": " + chosenLine
	}
	return ""
}

// firstWord reads the first word of a line as HAProxy does, or the second one
// behind "no" and "default", and reports whether what was written from a place
// of the line to another is a part of it.
func firstWord(line string, from, to int) (word string, part bool) {
	var b strings.Builder
	place, begun, start := argument, false, 0
	for i := 0; ; i++ {
		end := i == len(line)
		if end || place == argument && strings.IndexByte(" \t\r#", line[i]) >= 0 {
			if begun {
				word = b.String()
				if part = from < i && to > start; part || end || word != "no" && word != "default" {
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

// conditional are the lines that HAProxy carries out always where "if" or "unless"
// is their last word.
var conditional = wordSet(`force-persist http-after-response http-request http-response ignore-persist redirect stick tcp-request tcp-response use-server use_backend`)

// lacksCondition reports whether a line is a rule with nothing behind "if" or
// "unless", as a macro or a branch that writes nothing there leaves one.
func lacksCondition(line string) bool {
	line = strings.TrimRight(withoutComment(line), " \t\r\n")
	if !strings.HasSuffix(line, "if") && !strings.HasSuffix(line, "unless") {
		return false
	}
	word, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	if !conditional[word] {
		return false
	}
	// What the rule has read before its last word says whether that begins a
	// condition: in "set-header X if" it is the value.
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
		if p = step(p, line[i]); p == comment {
			return line[:i]
		}
	}
	return line
}
