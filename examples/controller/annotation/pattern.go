package annotation

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// MaxPattern and MaxSteps bound a regular expression: HAProxy tries it on each request.
// With two unbounded repeats it takes 30 ms for a path of 8,000 bytes, and 0.5 s at
// most. With three it takes seconds, and then HAProxy's watchdog ends the process.
const MaxPattern, MaxSteps, maxProgram = 512, 16 * subject * subject, 2000

// subject is the longest text that is matched, and costly is the number of steps in 2 ms.
const subject, costly = 8000, 4_000_000

// CheckPattern checks a regular expression for the beginning of a path, and counts its
// groups. It takes only what Go, PCRE and POSIX understand in the same way. It refuses
// look-around, back-references and nested repeats.
func CheckPattern(s string) (groups int, problem string) {
	groups, _, problem = checkPattern(s, 1)
	return groups, problem
}

// Weight is how many plain patterns a checked one counts for, by its highest cost.
func Weight(s string) int {
	_, steps, _ := checkPattern(s, 1)
	return 1 + steps/costly
}

// Alternates reports whether a checked pattern has a "|" outside of parentheses. Text
// before the pattern would belong only to the first alternative.
func Alternates(s string) bool {
	top, _, _ := scan(s)
	return top
}

// placesOf returns at how many places of a path HAProxy tries a pattern.
func placesOf(s string) int {
	if strings.HasPrefix(s, "^") && !Alternates(s) {
		return 1
	}
	return subject
}

// checkPattern is CheckPattern for a pattern that HAProxy tries at this many places.
func checkPattern(s string, places int) (groups, steps int, problem string) {
	if len(s) > MaxPattern {
		return 0, 0, fmt.Sprintf("the pattern has %d bytes, more than the %d that are taken", len(s), MaxPattern)
	}
	for i, r := range s {
		switch {
		case r <= ' ' || r >= 0x7f || r == '\'' || r == '"' || r == '#':
			return 0, 0, fmt.Sprintf("pattern %q holds %q, which no path can hold", short(s), r)
		case strings.HasPrefix(s[i:], "(?") && !strings.HasPrefix(s[i:], "(?:"):
			return 0, 0, fmt.Sprintf("pattern %q has %q: flags and look-around are not taken", short(s), s[i:min(i+3, len(s))])
		case len(s) > i+1 && r == '[' && strings.IndexByte("[.:=", s[i+1]) >= 0:
			return 0, 0, fmt.Sprintf("pattern %q has a class in a class: write its letters", short(s))
		}
	}
	if problem := checkEscapes(s); problem != "" {
		return 0, 0, problem
	}
	re, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0, 0, fmt.Sprintf("pattern %q: %v", short(s), err)
	}
	_, choices, varies := scan(s)
	if steps = places * choices; varies || nests(re, false, &steps) {
		return 0, 0, fmt.Sprintf("pattern %q has a repeat, a ? or a | inside a repeat, which can take HAProxy seconds: write it without", short(s))
	}
	if steps > MaxSteps {
		return 0, 0, fmt.Sprintf("pattern %q has too many repeats, which can take HAProxy seconds: use at most two without a bound, or one if it does not begin with a path", short(s))
	}
	if prog, err := syntax.Compile(re.Simplify()); err != nil || len(prog.Inst) > maxProgram {
		return 0, 0, fmt.Sprintf("pattern %q is too large when its repeats are written out", short(s))
	}
	return re.MaxCap(), steps, ""
}

// checkEscapes allows a backslash only where it means the same to all three.
func checkEscapes(s string) (problem string) {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		if i++; i == len(s) {
			return fmt.Sprintf("pattern %q ends in a backslash", short(s))
		}
		if c := s[i]; c >= 'a' && c <= 'z' && !strings.ContainsRune("dsw", rune(c)) || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return fmt.Sprintf(`pattern %q has \%c: only \d, \s, \w and signs are taken behind a backslash`, short(s), c)
		} else if c == ']' { // POSIX ends a class there
			return fmt.Sprintf(`pattern %q has \]: write ] alone, and first in a class`, short(s))
		}
	}
	return ""
}

// nests reports whether a repeat contains a repeat. It multiplies the steps by the
// possible number of repeats.
func nests(re *syntax.Regexp, inside bool, steps *int) bool {
	is := re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0
	many := is || re.Op == syntax.OpRepeat && re.Max > 1
	switch {
	case is:
		*steps = multiply(*steps, subject)
	case re.Op == syntax.OpRepeat:
		*steps = multiply(*steps, re.Max-re.Min+1)
	}
	if is && inside {
		return true
	}
	for _, sub := range re.Sub {
		if nests(sub, inside || many, steps) {
			return true
		}
	}
	return false
}

func multiply(steps, by int) int { return min(steps*by, MaxSteps+1) }

// scan reads the text of a pattern that Go has parsed. It cannot use Go's tree, which
// merges equal alternatives; other engines try them all. top: there is a "|" outside of
// parentheses. choices is the number of ways through "?" and "|". varies: a repeated
// group has such a choice or a repeat.
func scan(s string) (top bool, choices int, varies bool) {
	type group struct {
		ways int
		is   bool // it has a choice or a repeat
	}
	choices = 1
	open := []group{{ways: 1}}
	for i := 0; i < len(s); i++ {
		last := &open[len(open)-1]
		switch s[i] {
		case '\\':
			i++
		case '[':
			for i += len(classHead.FindString(s[i:])); i < len(s) && s[i] != ']'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '(':
			if strings.HasPrefix(s[i:], "(?:") {
				i += 2
			}
			open = append(open, group{ways: 1})
		case ')':
			if len(open) == 1 {
				return top, choices, true // Go refuses it
			}
			is := *last
			open, choices = open[:len(open)-1], multiply(choices, is.ways)
			varies = varies || is.is && i+1 < len(s) && strings.IndexByte("*+{", s[i+1]) >= 0
			open[len(open)-1].is = open[len(open)-1].is || is.is
		case '|':
			last.ways, last.is, top = last.ways+1, true, top || len(open) == 1
		case '?':
			choices, last.is = multiply(choices, 2), true
		case '*', '+', '{':
			last.is = true
		}
	}
	return top, multiply(choices, open[0].ways), varies
}

// classHead begins a class. A "]" that comes first belongs to the class.
var classHead = regexp.MustCompile(`^\[\^?\]?`)

// toReplacement reads the replacement of a match, with $1 or \1 for its first group.
func toReplacement(s string, sign byte) (r Replacement, groups int, problem string) {
	if problem := toText(s); problem != "" {
		return "", 0, problem
	}
	if i := strings.IndexAny(s, "?# '\""); i >= 0 {
		return "", 0, fmt.Sprintf("%q holds %q: only a path can be rewritten", short(s), s[i])
	}
	if !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, string(sign)) {
		return "", 0, wrong(s, "a path: write "+strconv.Quote(short("/"+s)))
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == sign && i+1 < len(s) && s[i+1] >= '1' && s[i+1] <= '9' && (i+2 == len(s) || s[i+2] < '0' || s[i+2] > '9'):
			i++
			groups = max(groups, int(s[i]-'0'))
			out.WriteString(`\` + s[i:i+1])
		case c == '$' || c == '\\':
			return "", 0, fmt.Sprintf("%q has a %q that is not in front of the number of a group, %c1 to %c9", short(s), c, sign, sign)
		default:
			out.WriteByte(c)
		}
	}
	return Replacement(out.String()), groups, ""
}
