package templating

import (
	"fmt"
	"strings"
)

// conditional are the lines that HAProxy carries out always where "if" or "unless"
// is their last word.
var conditional = wordSet(`force-persist http-after-response http-request http-response ignore-persist redirect stick tcp-request tcp-response use-server use_backend`)

// checkConditions refuses a rule with nothing behind "if" or "unless": HAProxy
// would take it in silence for one without a condition. A macro or a branch that
// writes nothing there leaves one.
func checkConditions(entry, text string) (err error, number int) {
	n := 0
	for line := range strings.Lines(text) {
		if n++; lacksCondition(line) {
			return &Error{Entry: entry, File: entry, Message: fmt.Sprintf("line %d of the output, %s, has no condition: HAProxy would take it for a rule without one",
				n, shorten(strings.TrimSpace(line)))}, n
		}
	}
	return nil, 0
}

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
	t := newPointTable(kindConfig)
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
