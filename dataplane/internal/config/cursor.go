package config

// cursor finds the items of one list in another list. It is fast if both have most items in
// common and in the same order. It only goes forward.
type cursor struct {
	at     int // where the next item is expected
	misses int // number of items in a row that were not found
}

// reach is how far ahead the cursor looks for an item. More items may have been removed in
// one place. So after 4 misses, and after each doubling of that, the cursor searches the
// whole rest.
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

// Stretch is a place where two lists of sections differ: the old list has Old[OldFrom:OldTo]
// there, and the new one New[NewFrom:NewTo].
type Stretch struct{ OldFrom, OldTo, NewFrom, NewTo int }

// Stretches returns where two texts differ. Two sections are the same if they have the same
// text, the same name, and the same defaults section above them. If the texts share their
// sections, the cost follows the stretches.
func Stretches(old, now *Index) []Stretch {
	var all []Stretch
	var c cursor
	i, from := 0, 0 // start of the current stretch
	for j, s := range now.List {
		before := i
		if i < len(old.List) && old.List[i] == s { // the usual case
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

// same reports whether two sections have the same meaning in their places.
func (s *Section) same(other *Section) bool {
	return s == other || s.Text == other.Text && s.Name == other.Name && s.Above == other.Above && s.Nth == other.Nth && s.Unnamed == other.Unnamed
}

// Pair is a section that differs between two texts, with its place in both lists. A place of
// -1 says that the section is new, or gone.
type Pair struct{ Old, New int }

// Pairs pairs the sections in the stretches where two texts differ by kind and name, in the
// order of the texts.
func Pairs(old, now *Index, stretches []Stretch) []Pair {
	var all []Pair
	for _, s := range stretches {
		before, after := old.List[s.OldFrom:s.OldTo], now.List[s.NewFrom:s.NewTo]
		alike := func(i, j int) bool {
			return i < len(before) && j < len(after) && before[i].Name == after[j].Name && before[i].Kind == after[j].Kind
		}
		left := len(before) + len(after) // bounds looking ahead to the cost of one pass
		for i, j := 0, 0; i < len(before) || j < len(after); {
			gone, come := len(before)-i, len(after)-j
			if alike(i, j) {
				all = append(all, Pair{s.OldFrom + i, s.NewFrom + j})
				i, j = i+1, j+1
				continue
			}
			if gone > 0 && come > 0 {
				gone, come = 1, 1
				for d := 1; left > 0 && (i+d < len(before) || j+d < len(after)); d++ {
					left--
					if alike(i+d, j) {
						gone, come = d, 0
						break
					}
					if alike(i, j+d) {
						gone, come = 0, d
						break
					}
				}
			}
			for range gone {
				all = append(all, Pair{s.OldFrom + i, -1})
				i++
			}
			for range come {
				all = append(all, Pair{-1, s.NewFrom + j})
				j++
			}
		}
	}
	return all
}

// Alone reports whether no section outside of the stretches has one of the keys. The New side
// of the stretches refers to this text.
func (x *Index) Alone(keys map[Key]bool, stretches []Stretch) bool {
	var buckets [256]bool // a cheap filter: most names differ in it
	for key := range keys {
		buckets[bucketOf(key.Name)] = true
	}
	from := 0
	for _, s := range append(stretches, Stretch{NewFrom: len(x.List)}) {
		for _, other := range x.List[from:s.NewFrom] {
			if buckets[bucketOf(other.Name)] && keys[other.Key()] {
				return false
			}
		}
		from = s.NewTo
	}
	return true
}

func bucketOf(name string) byte {
	if name == "" {
		return 0
	}
	return name[len(name)-1]*31 + name[len(name)/2]*7 + byte(len(name))
}

// Times returns how many sections, of any kind, have one of the names.
func (x *Index) Times(names map[string]bool) (n int) {
	if len(names) == 0 {
		return 0
	}
	var buckets [256]bool
	for name := range names {
		buckets[bucketOf(name)] = true
	}
	for _, s := range x.List {
		if buckets[bucketOf(s.Name)] && names[s.Name] {
			n++
		}
	}
	return n
}
