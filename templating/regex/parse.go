package regex

import (
	"regexp"
	"strconv"
	"strings"
)

// alternatives are what stands between "|". Go's own tree does not do: it merges equal ones,
// while other engines try them all.
type alternatives []sequence

// sequence are pieces one after the other.
type sequence []piece

// piece is a character, a group or an anchor, and how often it may come.
type piece struct {
	kind     kind
	set      set          // of a character
	group    alternatives // of a group
	min, max int          // max is without when there is no bound
}

type kind byte

const (
	character kind = iota
	group
	begin // ^
	end   // $
)

// without is the highest number of a repeat that has no bound.
const without = 1 << 30

// repeats reports whether the piece may come more than once.
func (p *piece) repeats() bool { return p.max > 1 }

// varies reports whether there is a choice or a repeat in it.
func (a alternatives) varies() bool {
	for _, s := range a {
		for i := range s {
			if p := &s[i]; p.min != 1 || p.max != 1 || p.group.varies() {
				return true
			}
		}
	}
	return len(a) > 1
}

// nests reports whether a repeated group has a choice or a repeat.
func (a alternatives) nests() bool {
	for _, s := range a {
		for i := range s {
			if p := &s[i]; p.repeats() && p.group.varies() || p.group.nests() {
				return true
			}
		}
	}
	return false
}

// parser reads an expression that Go has parsed.
type parser struct {
	s       string
	at      int
	problem string // the first thing that other engines read in another way
}

// parse reads an expression, or says what engines do not read in the same way.
func parse(s string) (all alternatives, problem string) {
	p := &parser{s: s}
	all = p.alternatives()
	if p.at < len(s) && p.problem == "" {
		p.problem = "has a parenthesis that closes none"
	}
	return all, p.problem
}

func (p *parser) alternatives() (all alternatives) {
	for {
		all = append(all, p.sequence())
		if !p.take("|") {
			return all
		}
	}
}

func (p *parser) take(sign string) bool {
	is := strings.HasPrefix(p.s[p.at:], sign)
	if is {
		p.at += len(sign)
	}
	return is
}

func (p *parser) sequence() (all sequence) {
	for p.at < len(p.s) && p.s[p.at] != '|' && p.s[p.at] != ')' {
		all = append(all, p.piece())
	}
	return all
}

// asRepeat matches a repeat; looksLikeRepeat also what is one for newer engines alone, as {,3}.
var asRepeat, looksLikeRepeat = regexp.MustCompile(`^\{([0-9]+)(,([0-9]*))?\}`), regexp.MustCompile(`^\{[0-9, ]*\}`)

func (p *parser) piece() piece {
	one := piece{min: 1, max: 1}
	switch c := p.s[p.at]; {
	case p.take("^"):
		one.kind = begin
	case p.take("$"):
		one.kind = end
	case p.take("("):
		p.take("?:")
		one.kind, one.group = group, p.alternatives()
		p.take(")")
	case c == '[':
		one.set = p.class()
	default:
		if c == '{' && looksLikeRepeat.MatchString(p.s[p.at:]) {
			p.problem = `has a { that only some read as a repeat: write \{`
		}
		one.set = p.character()
	}
	p.repeat(&one)
	if one.min != 1 && (one.kind == begin || one.kind == end) || one.max > 1 && one.kind != character && one.kind != group {
		p.problem = "repeats a ^ or a $: write it without"
	}
	return one
}

// repeat reads how often a piece may come.
func (p *parser) repeat(one *piece) {
	switch m := asRepeat.FindStringSubmatch(p.s[p.at:]); {
	case p.take("*"):
		one.min, one.max = 0, without
	case p.take("+"):
		one.max = without
	case p.take("?"):
		one.min = 0
	case m != nil:
		p.at += len(m[0])
		one.min, _ = strconv.Atoi(m[1])
		one.max = without
		if m[2] == "" {
			one.max = one.min
		} else if m[3] != "" {
			one.max, _ = strconv.Atoi(m[3])
		}
	default:
		return
	}
	p.take("?") // a lazy one takes as many steps
}

// character reads one, with or without a backslash.
func (p *parser) character() (of set) {
	c := p.s[p.at]
	p.at++
	switch {
	case c == '.':
		of.addRange(0, 0xff)
	case c == '\\':
		c = p.s[p.at]
		p.at++
		of.addEscape(c)
	default:
		of.addRange(c, c)
	}
	return of
}

// class reads the characters between "[" and "]". A "]" that comes first belongs to them.
func (p *parser) class() (of set) {
	p.take("[")
	not := p.take("^")
	for first := true; p.at < len(p.s) && (first || p.s[p.at] != ']'); first = false {
		c := p.s[p.at]
		p.at++
		if c == '\\' && p.at < len(p.s) {
			c = p.s[p.at]
			p.at++
			if strings.IndexByte("dsw", c) >= 0 {
				of.addEscape(c)
				continue
			}
		}
		to := c
		if p.at+1 < len(p.s) && p.s[p.at] == '-' && p.s[p.at+1] != ']' {
			to = p.s[p.at+1]
			p.at += 2
			if to == '\\' && p.at < len(p.s) {
				to = p.s[p.at]
				p.at++
			}
		}
		of.addRange(c, to)
	}
	p.take("]")
	if not {
		of = of.not()
	}
	return of
}

// set has a bit for each byte.
type set [4]uint64

func (s *set) addRange(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s[c/64] |= 1 << (c % 64)
	}
}

// addEscape adds what an escaped character stands for.
func (s *set) addEscape(c byte) {
	switch c {
	case 'd':
		s.addRange('0', '9')
	case 'w':
		s.addRange('0', '9')
		s.addRange('a', 'z')
		s.addRange('A', 'Z')
		s.addRange('_', '_')
	case 's':
		s.addRange('\t', '\r')
		s.addRange(' ', ' ')
	default:
		s.addRange(c, c)
	}
}

func (s set) not() set { return set{^s[0], ^s[1], ^s[2], ^s[3]} }

func (s set) or(t set) set { return set{s[0] | t[0], s[1] | t[1], s[2] | t[2], s[3] | t[3]} }

func (s set) meets(t set) bool { return s[0]&t[0]|s[1]&t[1]|s[2]&t[2]|s[3]&t[3] != 0 }
