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
	if l.words == nil || strings.ContainsRune(l.raw, '$') {
		return redactRaw(l.raw) // the quotes tell something
	}
	return strings.Join(redactWords(l.words), " ")
}

// meaningfulLines returns the lines of a section but for empty ones and
// comments.
func meaningfulLines(text string) []line {
	var lines []line
	for raw := range strings.Lines(text) {
		raw = strings.TrimSpace(raw)
		if raw == "" || raw[0] == '#' {
			continue
		}
		l := line{raw: raw}
		words, err := haproxycfg.Fields(raw)
		switch {
		case err != nil:
			l.meaning = "raw\x00" + raw
		case strings.ContainsRune(raw, '$'):
			// Whether a variable is expanded depends on the quotes, which
			// the words no longer show.
			l.words, l.meaning = words, "raw\x00"+raw
		default:
			l.words, l.meaning = words, strings.Join(words, "\x00")
		}
		lines = append(lines, l)
	}
	return lines
}

// lineChanges lists the lines in which two sections differ.
func lineChanges(old, now []line) []Change {
	var changes []Change
	walkHunks(old, now, func(gone, come []line) {
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
	})
	return changes
}

// maxAlign bounds the table for the alignment of lines. Beyond it, all lines
// between the common beginning and the common end count as changed.
const maxAlign = 1 << 20

// walkHunks aligns two lists of lines by their longest common subsequence and
// calls emit for each stretch that differs.
func walkHunks(old, now []line, emit func(gone, come []line)) {
	for len(old) > 0 && len(now) > 0 && old[0].equal(now[0]) {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1].equal(now[len(now)-1]) {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	if len(old) == 0 || len(now) == 0 || len(old)*len(now) > maxAlign {
		if len(old) > 0 || len(now) > 0 {
			emit(old, now)
		}
		return
	}
	// best[i*w+j] is the length of the longest common subsequence of old[i:]
	// and now[j:].
	w := len(now) + 1
	best := make([]int32, (len(old)+1)*w)
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if old[i].equal(now[j]) {
				best[i*w+j] = best[(i+1)*w+j+1] + 1
			} else {
				best[i*w+j] = max(best[(i+1)*w+j], best[i*w+j+1])
			}
		}
	}
	i, j, goneFrom, comeFrom := 0, 0, 0, 0
	for i < len(old) && j < len(now) {
		switch {
		case old[i].equal(now[j]):
			if i > goneFrom || j > comeFrom {
				emit(old[goneFrom:i], now[comeFrom:j])
			}
			i, j = i+1, j+1
			goneFrom, comeFrom = i, j
		case best[(i+1)*w+j] >= best[i*w+j+1]:
			i++
		default:
			j++
		}
	}
	if goneFrom < len(old) || comeFrom < len(now) {
		emit(old[goneFrom:], now[comeFrom:])
	}
}
