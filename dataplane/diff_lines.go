package dataplane

import (
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// line is a line of configuration that means something.
type line struct {
	meaning string   // equal for lines that HAProxy reads the same way
	words   []string // nil where the line cannot be cut into words
	raw     string   // without surrounding blanks
	flush   bool     // stands at the margin, as headers do
}

func (l line) equal(other line) bool { return l.meaning == other.meaning }

// keyword returns the first word.
func (l line) keyword() string {
	if len(l.words) == 0 {
		return ""
	}
	return l.words[0]
}

// show returns the line for people, without secrets.
func (l line) show() string {
	if l.words == nil {
		return redactRaw(l.raw)
	}
	shown := redactWords(l.words)
	if strings.ContainsRune(l.raw, '$') { // the quotes tell something
		quoted, _ := haproxycfg.RawFields(l.raw)
		for i, w := range shown {
			if w != l.words[i] {
				quoted[i] = w
			}
		}
		shown = quoted[:len(shown)]
	}
	return strings.Join(shown, " ")
}

// meaningfulLines returns the lines of a section but for empty ones and
// comments.
func meaningfulLines(text string) []line {
	var lines []line
	for raw := range strings.Lines(text) {
		trimmed := trimBlanks(raw)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		l := newLine(trimmed)
		l.flush = raw[0] == trimmed[0]
		lines = append(lines, l)
	}
	return lines
}

// trimBlanks removes the blanks around a line, but not one at its end that a
// backslash makes part of the last word.
func trimBlanks(raw string) string {
	raw = strings.Trim(raw, "\r\n")
	text := strings.Trim(raw, " \t")
	if strings.HasSuffix(text, `\`) {
		return strings.TrimLeft(raw, " \t")
	}
	return text
}

// rawMark starts the meaning of lines that are compared as they are written. No
// word starts with it.
const rawMark = "\x00\n"

func newLine(raw string) line {
	l := line{raw: raw}
	words, err := haproxycfg.Fields(raw)
	switch {
	case err != nil:
		l.meaning = rawMark + raw
	case strings.ContainsRune(raw, '$') || strings.Contains(raw, `\x00`):
		// Whether a variable is expanded depends on the quotes, which the words
		// no longer show. A zero byte ends the word in HAProxy.
		quoted, _ := haproxycfg.RawFields(raw) // without error, as the words are
		l.words, l.meaning = words, rawMark+strings.Join(quoted, "\x00")
	default:
		l.words, l.meaning = words, strings.Join(words, "\x00")
	}
	return l
}

// bodyOf returns the lines below the header of a section of that kind. Lines
// with the same arguments in another order are equal where the order means
// nothing.
func bodyOf(kind, text string) []line {
	lines := meaningfulLines(text)
	body := lines[:0]
	for _, l := range lines {
		if kind != "" && l.keyword() == kind {
			continue // a header: no line below one starts with that word
		}
		if len(l.words) > 0 && !strings.HasPrefix(l.meaning, rawMark) {
			if sorted := sortedArguments(kind, l.words); &sorted[0] != &l.words[0] {
				l.meaning = strings.Join(sorted, "\x00")
			}
		}
		body = append(body, l)
	}
	return body
}

// lineChanges lists the lines in which two sections differ.
func lineChanges(old, now []line) []Change {
	var changes []Change
	for _, h := range align(old, now, line.equal) {
		gone, come := old[h.oldFrom:h.oldTo], now[h.newFrom:h.newTo]
		for len(gone) > 0 || len(come) > 0 {
			c := Change{Field: fieldLine}
			switch {
			case len(gone) > 0 && len(come) > 0 && gone[0].keyword() == come[0].keyword():
				c.Old, c.New = gone[0].show(), come[0].show()
				gone, come = gone[1:], come[1:]
			case len(gone) > 0:
				c.Old = gone[0].show()
				gone = gone[1:]
			default:
				c.New = come[0].show()
				come = come[1:]
			}
			changes = append(changes, c)
		}
	}
	return changes
}

// maxAlign bounds the table for the alignment of lines. Beyond it, all lines
// between the common beginning and the common end count as changed.
const maxAlign = 1 << 20

// hunk is a stretch in which two lists differ.
type hunk struct{ oldFrom, oldTo, newFrom, newTo int }

// align aligns two lists by their longest common subsequence and returns the
// stretches that differ.
func align[T any](old, now []T, equal func(a, b T) bool) []hunk {
	i, j, m, n := 0, 0, len(old), len(now)
	for i < m && j < n && equal(old[i], now[j]) {
		i, j = i+1, j+1
	}
	for i < m && j < n && equal(old[m-1], now[n-1]) {
		m, n = m-1, n-1
	}
	if i == m && j == n {
		return nil
	}
	if i == m || j == n || (m-i)*(n-j) > maxAlign {
		return []hunk{{i, m, j, n}}
	}
	best := commonLengths(old[i:m], now[j:n], equal)
	var hunks []hunk
	h := hunk{oldFrom: i, newFrom: j}
	width, top, left := n-j+1, i, j
	for i < m || j < n {
		at := (i-top)*width + j - left
		switch {
		case i < m && j < n && equal(old[i], now[j]):
			if h.oldFrom < i || h.newFrom < j {
				h.oldTo, h.newTo = i, j
				hunks = append(hunks, h)
			}
			i, j = i+1, j+1
			h = hunk{oldFrom: i, newFrom: j}
		case j == n || i < m && best[at+width] >= best[at+1]:
			i++
		default:
			j++
		}
	}
	if h.oldFrom < m || h.newFrom < n {
		h.oldTo, h.newTo = m, n
		hunks = append(hunks, h)
	}
	return hunks
}

// commonLengths returns, at i*(len(now)+1)+j, the length of the longest common
// subsequence of old[i:] and now[j:].
func commonLengths[T any](old, now []T, equal func(a, b T) bool) []int32 {
	w := len(now) + 1
	best := make([]int32, (len(old)+1)*w)
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if equal(old[i], now[j]) {
				best[i*w+j] = best[(i+1)*w+j+1] + 1
			} else {
				best[i*w+j] = max(best[(i+1)*w+j], best[i*w+j+1])
			}
		}
	}
	return best
}
