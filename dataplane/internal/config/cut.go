package config

import (
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// cutter cuts a text in parts into sections. It reuses sections of the text before if it can.
type cutter struct {
	cursor
	old  []*Section
	list []*Section
	held []string // parts that form one text and are not cut yet
}

// cut cuts a text in parts into sections, as if all parts were joined.
func cut(old []*Section, parts []string) []*Section {
	c := &cutter{old: old, list: make([]*Section, 0, max(len(old), len(parts))+8)}
	for _, part := range parts {
		switch {
		case c.at < len(old) && old[c.at].Text == part && old[c.at].Kind != "" && len(c.held) == 0 && c.closed(): // the usual case
			c.list = append(c.list, old[c.at])
			c.at, c.misses = c.at+1, 0
		case part != "":
			c.add(part)
		}
	}
	c.flush()
	return c.list
}

// add takes one part. If the border before it may lie within a section, it joins both sides.
func (c *cutter) add(part string) {
	first := len(c.list)+len(c.held) == 0
	from, to := -1, -1
	if len(c.held) == 0 {
		from, to = c.run(part)
	}
	opens := first || from >= 0 && c.old[from].Kind != "" || from < 0 && haproxycfg.Opens(part)
	if !opens || !c.closed() {
		if len(c.held) == 0 { // the section before continues
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

// hold adds a part to the held text. The last held part begins with a whole line.
func (c *cutter) hold(part string) {
	if last := &c.held[len(c.held)-1]; !strings.HasSuffix(*last, "\n") {
		*last += part
		return
	}
	c.held = append(c.held, part)
}

// run finds the old sections that make up a part.
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

// closed reports whether a section may begin after the parts so far.
func (c *cutter) closed() bool {
	switch {
	case len(c.held) > 0:
		return endsSection(c.held[len(c.held)-1])
	case len(c.list) > 0:
		return c.list[len(c.list)-1].ends
	}
	return true
}

// endsSection reports whether no line of a text belongs to the section after it: the last
// line is complete and not a comment.
func endsSection(text string) bool {
	if !strings.HasSuffix(text, "\n") {
		return false
	}
	last := strings.TrimLeft(text[strings.LastIndexByte(text[:len(text)-1], '\n')+1:], " \t")
	return !strings.HasPrefix(last, "#")
}

// flush cuts the held parts into sections.
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
		if len(sections) < len(raws) { // otherwise a few lines would keep the whole text in memory
			raw = haproxycfg.Split(strings.Clone(raw.Text))[0]
		}
		fresh--
		c.list[start+i] = newSection(&sections[fresh], raw)
	}
}
