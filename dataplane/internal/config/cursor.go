package config

// cursor finds the items of one list in another, where both have most of them in
// common and in one order. It goes forward only.
type cursor struct {
	at     int // where the next item is expected
	misses int // items in a row that were not found
}

// reach is how far ahead an item is looked for. Items that go in one place may be
// more: after 4 misses, and after each doubling, the whole rest is searched.
const reach = 8

// find returns the index of an item in a list of n, or -1.
func (c *cursor) find(n int, is func(i int) bool) int {
	end := n
	if c.misses < 4 || c.misses&(c.misses-1) != 0 {
		end = min(n, c.at+reach)
	}
	for i := c.at; i < end; i++ {
		if is(i) {
			c.at, c.misses = i+1, 0
			return i
		}
	}
	c.misses++
	return -1
}

// Stretch is a place where two lists of sections differ: Old[OldFrom:OldTo] stands
// where New[NewFrom:NewTo] does in the other.
type Stretch struct{ OldFrom, OldTo, NewFrom, NewTo int }

// Stretches returns where two texts differ. Sections are the same if they have one
// text, one name, and one defaults section above them. The cost follows the
// stretches where the texts share their sections.
func Stretches(old, now *Index) []Stretch {
	var all []Stretch
	var c cursor
	i, from := 0, 0 // the first of the stretch under way
	for j, s := range now.List {
		before := i
		if i < len(old.List) && old.List[i] == s { // nearly always
			c.at, c.misses = i+1, 0
		} else if i = c.find(len(old.List), func(k int) bool { return s.same(old.List[k]) }); i < 0 {
			i = before
			continue
		}
		if before < i || from < j {
			all = append(all, Stretch{before, i, from, j})
		}
		i, from = i+1, j+1
	}
	if i < len(old.List) || from < len(now.List) {
		all = append(all, Stretch{i, len(old.List), from, len(now.List)})
	}
	return all
}

// same reports whether two sections stand for the same.
func (s *Section) same(other *Section) bool {
	return s == other || s.Text == other.Text && s.Name == other.Name && s.Above == other.Above && s.Nth == other.Nth && s.Unnamed == other.Unnamed
}

// Alone reports whether no section outside of the stretches has one of the keys. The
// stretches are those to this text.
func (x *Index) Alone(keys map[Key]bool, stretches []Stretch) bool {
	var tells [256]bool // by what most names differ in
	for key := range keys {
		tells[tell(key.Name)] = true
	}
	from := 0
	for _, s := range append(stretches, Stretch{NewFrom: len(x.List)}) {
		for _, other := range x.List[from:s.NewFrom] {
			if tells[tell(other.Name)] && keys[other.Key()] {
				return false
			}
		}
		from = s.NewTo
	}
	return true
}

func tell(name string) byte {
	if name == "" {
		return 0
	}
	return name[len(name)-1]*31 + name[len(name)/2]*7 + byte(len(name))
}
