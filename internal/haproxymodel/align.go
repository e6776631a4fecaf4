package haproxymodel

import "slices"

// match is an element that two lists have in common, by its positions.
type match struct{ old, new int }

// maxMatches bounds the work on lists with many equal elements. Beyond it the
// alignment is still right, but maybe not the longest.
const maxMatches = 1 << 20

// align returns a longest common subsequence of two lists (Hunt and Szymanski,
// 1977): fast where elements are mostly different, as rules are.
func align(old, new []string) []match {
	start := 0
	for start < len(old) && start < len(new) && old[start] == new[start] {
		start++
	}
	end := 0
	for end < len(old)-start && end < len(new)-start && old[len(old)-1-end] == new[len(new)-1-end] {
		end++
	}
	matches := make([]match, 0, max(len(old), len(new)))
	for i := range start {
		matches = append(matches, match{i, i})
	}
	for _, m := range alignMiddle(old[start:len(old)-end], new[start:len(new)-end]) {
		matches = append(matches, match{m.old + start, m.new + start})
	}
	for i := range end {
		matches = append(matches, match{len(old) - end + i, len(new) - end + i})
	}
	return matches
}

func alignMiddle(old, new []string) []match {
	if len(old) == 0 || len(new) == 0 {
		return nil
	}
	positions := make(map[string][]int, len(new))
	for j := len(new) - 1; j >= 0; j-- { // descending: one of each may be taken
		positions[new[j]] = append(positions[new[j]], j)
	}
	type node struct {
		match
		before int // index into nodes, -1 for none
	}
	var nodes []node
	var ends []int // ends[k] is the node that ends the best sequence of k+1
	for i, key := range old {
		if len(nodes) > maxMatches {
			break
		}
		for _, j := range positions[key] {
			k, _ := slices.BinarySearchFunc(ends, j, func(n, j int) int { return nodes[n].new - j })
			before := -1
			if k > 0 {
				before = ends[k-1]
			}
			nodes = append(nodes, node{match{i, j}, before})
			if k == len(ends) {
				ends = append(ends, len(nodes)-1)
			} else {
				ends[k] = len(nodes) - 1
			}
		}
	}
	if len(ends) == 0 {
		return nil
	}
	var matches []match
	for n := ends[len(ends)-1]; n >= 0; n = nodes[n].before {
		matches = append(matches, nodes[n].match)
	}
	slices.Reverse(matches)
	return matches
}

// maxPairs bounds the search for the most similar pairs.
const maxPairs = 64 * 64

// pair pairs elements of two lists of which none are equal, as many as can be
// and in order, such that they are as similar as possible.
func pair(old, new int, similar func(i, j int) int) []match {
	n := min(old, new)
	matches := make([]match, 0, n)
	if old == new || old*new > maxPairs {
		for i := range n {
			matches = append(matches, match{i, i})
		}
		return matches
	}
	// best[i][j] is the value of the best pairing of what comes from i and j on;
	// a pair counts more than any similarity.
	const aPair = 1 << 20
	best := make([][]int, old+1)
	for i := range best {
		best[i] = make([]int, new+1)
	}
	value := make([][]int, old)
	for i := old - 1; i >= 0; i-- {
		value[i] = make([]int, new)
		for j := new - 1; j >= 0; j-- {
			value[i][j] = aPair + similar(i, j)
			best[i][j] = max(best[i+1][j], best[i][j+1], best[i+1][j+1]+value[i][j])
		}
	}
	for i, j := 0, 0; i < old && j < new; {
		switch best[i][j] {
		case best[i+1][j+1] + value[i][j]:
			matches = append(matches, match{i, j})
			i, j = i+1, j+1
		case best[i+1][j]:
			i++
		default:
			j++
		}
	}
	return matches
}
