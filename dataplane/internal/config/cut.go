package config

import (
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// cutter makes the sections of a text in parts. It takes those of the text before
// where it can.
type cutter struct {
	cursor
	old  []*Section
	list []*Section
	held []string // parts that are one text, of which no section was made yet
}

// cut makes the sections of a text in parts. The result is that of all parts joined.
func cut(old []*Section, parts []string) []*Section {
	c := &cutter{old: old, list: make([]*Section, 0, max(len(old), len(parts))+8)}
	for _, part := range parts {
		switch {
		case c.at < len(old) && old[c.at].Text == part && old[c.at].Kind != "" && len(c.held) == 0 && c.closed(): // as most
			c.list = append(c.list, old[c.at])
			c.at, c.misses = c.at+1, 0
		case part != "":
			c.add(part)
		}
	}
	c.flush()
	return c.list
}

// add takes one part. Where the border before it may lie within a section, both
// sides are one text.
func (c *cutter) add(part string) {
	first := len(c.list)+len(c.held) == 0
	from, to := -1, -1
	if len(c.held) == 0 {
		from, to = c.run(part)
	}
	opens := first || from >= 0 && c.old[from].Kind != "" || from < 0 && haproxycfg.Opens(part)
	if !opens || !c.closed() {
		if len(c.held) == 0 { // the section before goes on
			end := len(c.list) - 1
			c.held, c.list = append(c.held, c.list[end].Text), c.list[:end]
		}
		c.hold(part)
		return
	}
	if len(c.held) > 0 {
		c.flush()
		from, to = c.run(part)
	}
	if from < 0 {
		c.held = append(c.held, part)
		return
	}
	c.list = append(c.list, c.old[from:to]...)
}

// hold adds a part to those that are one text. The last one begins with a line.
func (c *cutter) hold(part string) {
	if last := &c.held[len(c.held)-1]; !strings.HasSuffix(*last, "\n") {
		*last += part
		return
	}
	c.held = append(c.held, part)
}

// run finds the sections of before that make up a part.
func (c *cutter) run(part string) (from, to int) {
	from = c.find(len(c.old), func(i int) bool {
		rest := part
		for to = i; to < len(c.old) && rest != "" && strings.HasPrefix(rest, c.old[to].Text); to++ {
			rest = rest[len(c.old[to].Text):]
		}
		return rest == ""
	})
	if from >= 0 {
		c.at = to
	}
	return from, to
}

// closed reports whether a section may begin after what was added so far.
func (c *cutter) closed() bool {
	switch {
	case len(c.held) > 0:
		return endsSection(c.held[len(c.held)-1])
	case len(c.list) > 0:
		return c.list[len(c.list)-1].ends
	}
	return true
}

// endsSection reports whether the section after a text gets none of its lines: the
// last one is whole, and no comment.
func endsSection(text string) bool {
	if !strings.HasSuffix(text, "\n") {
		return false
	}
	last := strings.TrimLeft(text[strings.LastIndexByte(text[:len(text)-1], '\n')+1:], " \t")
	return !strings.HasPrefix(last, "#")
}

// flush makes the sections of the parts that are held.
func (c *cutter) flush() {
	text := strings.Join(c.held, "")
	c.held = c.held[:0]
	raws := haproxycfg.Split(text)
	start, fresh := len(c.list), 0
	for _, raw := range raws {
		var s *Section
		if i := c.find(len(c.old), func(i int) bool { return c.old[i].Text == raw.Text }); i >= 0 {
			s = c.old[i]
		} else {
			fresh++
		}
		c.list = append(c.list, s)
	}
	sections := make([]Section, fresh)
	for i, raw := range raws {
		if c.list[start+i] != nil {
			continue
		}
		if len(sections) < len(raws) { // or a few lines would hold the whole text
			raw = haproxycfg.Split(strings.Clone(raw.Text))[0]
		}
		fresh--
		c.list[start+i] = newSection(&sections[fresh], raw)
	}
}
