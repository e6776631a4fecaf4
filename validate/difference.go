package validate

import "github.com/hapticsdk/haptic/dataplane"

// difference is a section that differs, with its indexes in two configurations. An index of
// -1 says that the section is new or gone.
type difference struct {
	i, j          int
	section       dataplane.Section // the new section, or the new text of the section
	before, after *digest
}

// differencesOf returns the sections that differ between two configurations, in the order
// of the text.
func differencesOf(before, after *dataplane.Config) []difference {
	var all []difference
	for _, s := range dataplane.Stretches(before, after) {
		align(s.Before, s.After, func(i, j int) {
			c := difference{i: -1, j: -1}
			if i >= 0 {
				c.i = s.OldIndex + i
			}
			if j >= 0 {
				c.j, c.section = s.NewIndex+j, s.After[j]
			}
			all = append(all, c)
		})
	}
	return all
}

// align pairs the sections of two lists: it calls pair with the indexes of each section in
// both, -1 for none.
func align(before, after []dataplane.Section, pair func(i, j int)) {
	i, j := 0, 0
	left := len(before) + len(after) // bounds looking ahead to the cost of one pass
	for i < len(before) && j < len(after) {
		gone, come := 1, 1
		if isOf(&before[i], &after[j]) {
			pair(i, j)
			i, j = i+1, j+1
			continue
		}
		for d := 1; left > 0 && (i+d < len(before) || j+d < len(after)); d++ {
			left--
			if i+d < len(before) && isOf(&before[i+d], &after[j]) {
				gone, come = d, 0
				break
			}
			if j+d < len(after) && isOf(&before[i], &after[j+d]) {
				gone, come = 0, d
				break
			}
		}
		for range gone {
			pair(i, -1)
			i++
		}
		for range come {
			pair(-1, j)
			j++
		}
	}
	for ; i < len(before); i++ {
		pair(i, -1)
	}
	for ; j < len(after); j++ {
		pair(-1, j)
	}
}

func isOf(a, b *dataplane.Section) bool { return a.Name == b.Name && a.Kind == b.Kind }

// splice returns the digests after all differences.
func splice(digests []*digest, size int, all []difference) []*digest {
	next := make([]*digest, 0, size)
	i := 0
	for _, c := range all {
		end := c.i
		if c.i < 0 {
			end = i + c.j - len(next)
		}
		next = append(next, digests[i:end]...)
		if i = end; c.i >= 0 {
			i++
		}
		if c.j >= 0 {
			next = append(next, c.after)
		}
	}
	return append(next, digests[i:]...)
}

// shift moves the places of unchanged sections.
func shift(places []int, all []difference) {
	by := 0
	for n, place := range places {
		for len(all) > 0 && (all[0].i >= 0 && all[0].i < place || all[0].i < 0 && all[0].j <= place+by) {
			by += one(all[0].i < 0) - one(all[0].j < 0)
			all = all[1:]
		}
		places[n] = place + by
	}
}
