package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// groupSize is how many sections have one hash together. A change takes the hashes of
// its group and those of all groups anew.
const groupSize = 128

// groupSums are the hashes of the groups of a list of sections.
type groupSums struct {
	list []*Section
	sums [][sha256.Size]byte
}

// sums takes from known the hashes of groups with the same sections.
func (x *Index) sums(known *groupSums) *groupSums {
	g := &groupSums{list: x.List}
	buffer := make([]byte, 0, groupSize*sha256.Size)
	for from := 0; from < len(x.List); from += groupSize {
		group := x.List[from:min(from+groupSize, len(x.List))]
		if known != nil && from < len(known.list) && slices.Equal(group, known.list[from:min(from+groupSize, len(known.list))]) {
			g.sums = append(g.sums, known.sums[from/groupSize])
			continue
		}
		buffer = buffer[:0]
		for _, s := range group {
			buffer = append(buffer, sum(s.learnt, s.Text)[:]...)
		}
		g.sums = append(g.sums, sha256.Sum256(buffer))
	}
	return g
}

// computeHash follows from the texts of the sections, in their order, and from the
// files.
func (c *Config) computeHash(groups *groupSums) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", len(c.index.List))
	for i := range groups.sums {
		h.Write(groups.sums[i][:])
	}
	for i, f := range c.Files {
		fmt.Fprintf(h, "%s\n%s\n", f.Kind, f.Name)
		h.Write(sum(c.facts[i], f.Content)[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}
