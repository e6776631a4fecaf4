package annotation

import "strings"

// Near reports whether one word may be the other, misspelled: at most two letters
// differ, and at most half of them.
func Near(a, b string) bool {
	return within(strings.ToLower(a), strings.ToLower(b), min(2, len(b)/2))
}

func within(a, b string, off int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if off == 0 || a == "" || b == "" {
		return max(len(a), len(b)) <= off
	}
	return within(a[1:], b, off-1) || within(a, b[1:], off-1) || within(a[1:], b[1:], off-1)
}
