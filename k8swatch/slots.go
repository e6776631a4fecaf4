package k8swatch

import "slices"

// place is where an object stands in the order of names and, by its slot, where
// its newest version is. It stays for as long as there is an object of the name,
// so that the ordered trees do not change when an object does.
type place struct {
	objectName
	slot int
}

type objectName struct{ namespace, name string }

func lessPlace(a, b *place) bool {
	if a.namespace != b.namespace {
		return a.namespace < b.namespace
	}
	return a.name < b.name
}

// slots is a persistent array of entries in three levels: a change copies one
// page, one chapter and the list of chapters, unless no snapshot has them.
type slots struct {
	owner    *owner // of the list of chapters
	chapters []*chapter
}

const (
	pageBits = 5
	pageMask = 1<<pageBits - 1
)

type chapter struct {
	owner *owner
	pages [1 << pageBits]*page
}

type page struct {
	owner   *owner
	entries [1 << pageBits]*entry
}

// get returns the entry of a slot that was set.
func (s *slots) get(slot int) *entry {
	return s.chapters[slot>>(2*pageBits)].pages[slot>>pageBits&pageMask].entries[slot&pageMask]
}

// set changes a slot, for o. Slots come one after the other.
func (s *slots) set(o *owner, slot int, e *entry) {
	if s.owner != o {
		s.owner, s.chapters = o, slices.Clone(s.chapters)
	}
	at := slot >> (2 * pageBits)
	if at == len(s.chapters) {
		s.chapters = append(s.chapters, &chapter{owner: o})
	}
	c := s.chapters[at]
	if c.owner != o {
		c = &chapter{owner: o, pages: c.pages}
		s.chapters[at] = c
	}
	p := c.pages[slot>>pageBits&pageMask]
	switch {
	case p == nil:
		p = &page{owner: o}
	case p.owner != o:
		p = &page{owner: o, entries: p.entries}
	}
	c.pages[slot>>pageBits&pageMask] = p
	p.entries[slot&pageMask] = e
}
