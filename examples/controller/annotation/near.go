package annotation

import "strings"

// Near reports whether one word may be the other, misspelled: at most two letters are
// off, and no more than half.
func Near(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if max(len(a)-len(b), len(b)-len(a)) > 2 || len(b) > 253 {
		return false
	}
	last := make([]int, len(b)+1) // for the bytes of a before this one
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		diagonal := last[0]
		last[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = last[j+1]
			last[j+1] = min(change, last[j]+1, diagonal+1)
		}
	}
	return last[len(b)] <= 2 && 2*last[len(b)] <= len(b)
}
