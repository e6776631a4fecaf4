package diff

import "slices"

// maxAlign bounds the table for the alignment of lines. Beyond it, all lines
// between the common beginning and the common end count as changed.
const maxAlign = 1 << 20

// kept returns the items that both lists have, in the order of each list.
func kept[T comparable](old, now []T) (before, after []T) {
	without := func(list, other []T) []T {
		known := make(map[T]bool, len(other))
		for _, v := range other {
			known[v] = true
		}
		return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !known[v] })
	}
	return without(old, now), without(now, old)
}

// hunk is a stretch where two lists differ.
type hunk struct{ oldFrom, oldTo, newFrom, newTo int }

// align aligns two lists by their longest common subsequence, and returns the stretches that
// differ.
func align[T any](old, now []T, equal func(a, b T) bool) []hunk {
	i, j, m, n := 0, 0, len(old), len(now)
	for i < m && j < n && equal(old[i], now[j]) {
		i, j = i+1, j+1
	}
	for i < m && j < n && equal(old[m-1], now[n-1]) {
		m, n = m-1, n-1
	}
	if i == m && j == n {
		return nil
	}
	if i == m || j == n || (m-i)*(n-j) > maxAlign {
		return []hunk{{i, m, j, n}}
	}
	best := commonLengths(old[i:m], now[j:n], equal)
	width, top, left := n-j+1, i, j
	var hunks []hunk
	for i < m || j < n {
		h := hunk{oldFrom: i, newFrom: j}
		for i < m || j < n {
			at := (i-top)*width + j - left
			if i < m && j < n && equal(old[i], now[j]) {
				break
			}
			if j == n || i < m && best[at+width] >= best[at+1] {
				i++
			} else {
				j++
			}
		}
		h.oldTo, h.newTo = i, j
		if h.oldFrom < i || h.newFrom < j {
			hunks = append(hunks, h)
		}
		i, j = i+1, j+1
	}
	return hunks
}

// commonLengths returns, at i*(len(now)+1)+j, the length of the longest common
// subsequence of old[i:] and now[j:].
func commonLengths[T any](old, now []T, equal func(a, b T) bool) []int32 {
	w := len(now) + 1
	best := make([]int32, (len(old)+1)*w)
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if equal(old[i], now[j]) {
				best[i*w+j] = best[(i+1)*w+j+1] + 1
			} else {
				best[i*w+j] = max(best[(i+1)*w+j], best[i*w+j+1])
			}
		}
	}
	return best
}
