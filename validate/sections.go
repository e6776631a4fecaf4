package validate

import (
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// sectionCache holds what is known of the sections and crt-lists of the last
// configuration, so that the next one costs what changed in it.
type sectionCache struct {
	mu    sync.Mutex             // held for the whole of phase 1
	all   []*parsed              // in the order of the text
	known map[string]*parsed     // by the text of the section, of equal ones one
	names declared               // of all
	lists map[string]*parsedList // by the name of the crt-list
	count int                    // sections parsed so far
	round int                    // configurations seen so far
}

// take makes the cache that of a text. What follows on a section most often is
// what followed on it in the last text, so that comparing with that is enough.
func (c *sectionCache) take(text string) {
	c.round++
	before := c.all
	next := make([]*parsed, 0, len(before)+8)
	guess := 0
	for at := 0; at < len(text); {
		run := len(next)
		for guess < len(before) && before[guess].round < c.round && strings.HasPrefix(text[at:], before[guess].section.Text) {
			p := before[guess]
			c.place(p, len(next))
			next, guess, at = append(next, p), guess+1, at+len(p.section.Text)
		}
		if at == len(text) {
			break
		}
		if len(next) > run { // where the last of them ends, the header behind it must tell
			p := next[len(next)-1]
			p.round, p.at = c.round-1, guess-1
			next, guess, at = next[:len(next)-1], guess-1, at-len(p.section.Text)
		}
		for s := range haproxycfg.Sections(text[at:]) {
			p := c.section(s)
			guess++
			if p.round > 0 {
				guess = p.at + 1
			}
			c.place(p, len(next))
			next, at = append(next, p), at+len(s.Text)
			break
		}
	}
	c.all = next
	c.change(before)
}

// section returns what is known of a section that is not placed yet.
func (c *sectionCache) section(s haproxycfg.Section) *parsed {
	p := c.known[s.Text]
	switch {
	case p == nil:
		p = parseSection(s)
		c.count++
	case p.round == c.round: // two sections of one text
		again := *p
		again.round, again.twin = 0, nil
		p = &again
	}
	return p
}

// place notes where a section stands.
func (c *sectionCache) place(p *parsed, at int) {
	p.isNew = p.round == 0
	p.round, p.at = c.round, at
}

// change brings what is known by name and by text from the sections before to
// those of this round.
func (c *sectionCache) change(before []*parsed) {
	if c.known == nil {
		c.known = make(map[string]*parsed, len(c.all))
		c.names = declared{sections: make(map[string]*parsed, len(c.all)), tables: map[string]int{}}
	}
	for _, p := range before {
		if p.round < c.round {
			c.names.remove(p)
			if c.known[p.section.Text] == p {
				delete(c.known, p.section.Text)
			}
		}
	}
	for _, p := range c.all {
		if p.isNew {
			c.names.add(p)
			c.known[p.section.Text] = p
		}
	}
}

// declared is what can be referred to.
type declared struct {
	sections map[string]*parsed // those with a name by kind and name, one of those that share them
	tables   map[string]int     // how many declare it
	twice    int                // sections whose kind and name another one has
}

func (d *declared) add(p *parsed) {
	if p.section.Name != "" {
		p.twin = d.sections[p.key]
		d.sections[p.key] = p
		if p.twin != nil {
			d.twice++
		}
	}
	for _, table := range p.tables {
		d.tables[table]++
	}
}

func (d *declared) remove(p *parsed) {
	switch twin := d.sections[p.key]; {
	case p.section.Name == "":
	case twin == p && p.twin == nil:
		delete(d.sections, p.key)
	case twin == p:
		d.sections[p.key] = p.twin
		d.twice--
	default:
		for twin.twin != p {
			twin = twin.twin
		}
		twin.twin = p.twin
		d.twice--
	}
	for _, table := range p.tables {
		if d.tables[table]--; d.tables[table] == 0 {
			delete(d.tables, table)
		}
	}
}

// find returns the first section in the text of the first of these kinds that
// has one of that name, or nil.
func (d *declared) find(name string, kinds ...string) *parsed {
	for _, kind := range kinds {
		if p := d.sections[kind+" "+name]; p != nil {
			for twin := p.twin; twin != nil; twin = twin.twin {
				if twin.at < p.at {
					p = twin
				}
			}
			return p
		}
	}
	return nil
}
