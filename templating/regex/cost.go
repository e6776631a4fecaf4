package regex

import (
	"slices"
	"sort"
)

// The cost of an expression is the number of steps that an engine takes which goes back and
// tries the next way, as PCRE does: the product of the ways through pieces that follow one
// another. Engines know shortcuts, so it is never more.
const (
	ofGroup = 16 // steps to enter and leave a group
	ofRun   = 16 // characters of a repeat that are read in one step
)

// times multiplies steps. Beyond the ceiling they are too many anyway.
func times(a, b float64) float64 { return min(a*b, 1e15) }

// bound returns the longest text that an expression can be tried on, and its steps there.
func (a alternatives) bound(atStart bool) (longest, steps int) {
	atStart = atStart || a.startsWith(isDotStar)
	at := func(n int) (total float64) {
		for i, s := range a {
			fails, matches := s.whole(float64(n))
			if !atStart && !a[i:i+1].startsWith(isBegin) {
				fails = times(fails, float64(n+1))
			}
			total += fails + matches
		}
		return total
	}
	longest = sort.Search(Subject, func(n int) bool { return at(n+1) > MaxSteps })
	return longest, int(at(longest))
}

func isBegin(p *piece) bool { return p.kind == begin }

// isDotStar reports whether a piece matches all that is left. If each alternative begins so,
// PCRE tries the expression at the beginning alone.
func isDotStar(p *piece) bool {
	return p.kind == character && p.set == set{}.not() && p.min == 0 && p.max == without
}

// startsWith reports whether each alternative begins with such a piece.
func (a alternatives) startsWith(is func(*piece) bool) bool {
	for _, s := range a {
		if len(s) == 0 || !is(&s[0]) && !(s[0].kind == group && s[0].min == 1 && s[0].max == 1 && s[0].group.startsWith(is)) {
			return false
		}
	}
	return true
}

// whole is the cost of a whole alternative: of what may fail, and of pieces that match all that
// is left. These never fail, so none before them is tried again for them. All else is counted
// with a "$" behind it, which a template may write there.
func (s sequence) whole(n float64) (fails, matches float64) {
	last := len(s)
	if last > 0 && s[last-1].takesAll() {
		for last > 0 && s[last-1].isOptional() {
			last--
		}
	}
	for i := last; i < len(s); i++ {
		one, _ := s[i].cost(n, follow{fail: 1})
		matches += one
	}
	fails, _ = s[:last].cost(n, follow{fail: 1})
	return fails + 1, matches
}

// takesAll reports whether a piece matches all that is left, as ".*" and "(/.*|.*)" do.
func (p *piece) takesAll() bool {
	return isDotStar(p) || p.kind == group && p.max == 1 && slices.ContainsFunc(p.group, func(s sequence) bool {
		return len(s) == 1 && s[0].takesAll()
	})
}

// isOptional reports whether a piece matches where it stands, if only an empty text.
func (p *piece) isOptional() bool {
	return p.min == 0 || p.kind == group && slices.ContainsFunc(p.group, func(s sequence) bool {
		return !slices.ContainsFunc(s, func(p piece) bool { return !p.isOptional() })
	})
}

// follow is what may come behind a piece: which characters, and how many steps it takes to
// find that another one has come.
type follow struct {
	set  set
	fail float64
}

// cost is how many steps all ways through a sequence take in a text of n bytes, and how many of
// them reach its end.
func (s sequence) cost(n float64, behind follow) (steps, ways float64) {
	ways = 1
	for i := len(s) - 1; i >= 0; i-- {
		one, through := s[i].cost(n, behind)
		steps, ways = one+times(through, steps), times(through, ways)
		behind = s[i].before(behind)
	}
	return steps, ways
}

// before is what may come before what follows a piece.
func (p *piece) before(behind follow) follow {
	is := follow{fail: 1}
	switch p.kind {
	case begin: // it takes no character
		return follow{behind.set, behind.fail + 1}
	case end:
		return is
	case character:
		is.set = p.set
	case group:
		is.fail = ofGroup
		for _, s := range p.group {
			first := behind
			for i := len(s) - 1; i >= 0; i-- {
				first = s[i].before(first)
			}
			is = follow{is.set.or(first.set), is.fail + first.fail}
		}
	}
	if p.min == 0 {
		is = follow{is.set.or(behind.set), is.fail + behind.fail}
	}
	return is
}

// cost is that of a piece with all its repeats.
func (p *piece) cost(n float64, behind follow) (steps, ways float64) {
	if p.kind != group {
		return p.costOfCharacter(n, behind)
	}
	steps, ways = ofGroup, 0
	for _, s := range p.group {
		one, through := s.cost(n, behind)
		steps, ways = steps+one, ways+through
	}
	if !p.repeats() {
		return steps + 1, ways + float64(1-p.min)
	}
	most := max(min(float64(p.max), n+1), float64(p.min)) // its content is one way alone
	return times(most, steps) + 1, most - float64(p.min) + 1
}

func (p *piece) costOfCharacter(n float64, behind follow) (steps, ways float64) {
	most := min(float64(p.max), n)
	ways = max(most-float64(p.min), 0) + 1
	steps = 1 + most/ofRun
	if ways > 1 && !p.set.meets(behind.set) { // where one of these stands, what follows fails at once
		return steps + ways*behind.fail, 1
	}
	return steps + ways - 1, ways
}
