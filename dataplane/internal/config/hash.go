package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// groupSize is the number of sections that share one hash. After a change, only the hash of
// its group and the hash of all groups are computed again.
const groupSize = 128

// groupSums are the hashes of the groups of a list of sections.
type groupSums struct {
	list []*Section
	sums [][sha256.Size]byte
}

// sums returns the hashes of all groups. It takes those of unchanged groups from known.
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

// computeHash combines the texts of the sections, in their order, and the files.
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
