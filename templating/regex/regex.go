// Package regex checks regular expressions of tenants, before HAProxy tries
// them on each request. Go (RE2), PCRE and POSIX read a checked expression in the same way, and
// its cost is bounded.
//
// The template function regex(s) calls [Check] and writes the expression where HAProxy reads
// one; a controller calls it to refuse a resource by name.
package regex

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// The bounds of an expression. With two unbounded repeats HAProxy takes 30 ms for a text of
// 8,000 bytes, and 0.5 s at most. With three it takes seconds, and then HAProxy's watchdog
// ends the process.
const (
	MaxLength = 512                    // bytes of an expression
	MaxSteps  = 16 * Subject * Subject // of [Expression.Steps]
	Subject   = 8000                   // bytes of the longest text that is matched

	maxProgram = 2000      // instructions, with all repeats written out
	costly     = 4_000_000 // steps in 2 ms
)

// Expression is what [Check] knows of a checked expression.
type Expression struct {
	Groups     int  // that a replacement can name
	Steps      int  // at most, for a text of [Subject] bytes
	Alternates bool // it has a "|" outside of parentheses: text before it belongs to the first alternative alone
}

// Weight is how many plain expressions this one counts for, by its highest cost: 1 or more.
func (e Expression) Weight() int { return 1 + e.Steps/costly }

// Check checks an expression that HAProxy tries at each place of a text, or at its beginning
// if it begins with "^". It takes printable ASCII, and only what Go, PCRE and POSIX understand
// in the same way. It refuses look-around, back-references, flags, nested repeats, and what
// would take more than [MaxSteps]. The error says what to write instead.
func Check(s string) (Expression, error) {
	places := Subject
	if top, _, _ := scan(s); strings.HasPrefix(s, "^") && !top {
		places = 1
	}
	return check(s, places)
}

// CheckStart is [Check] for an expression that will stand behind a "^".
func CheckStart(s string) (Expression, error) { return check(s, 1) }

func check(s string, places int) (Expression, error) {
	if problem := characters(s); problem != "" {
		return Expression{}, errors.New(problem)
	}
	fail := func(format string, args ...any) (Expression, error) {
		return Expression{}, fmt.Errorf("pattern %q "+format, append([]any{short(s)}, args...)...)
	}
	re, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return Expression{}, fmt.Errorf("pattern %q: %w", short(s), err)
	}
	top, choices, varies := scan(s)
	steps := multiply(choices, places)
	if varies || nests(re, false, &steps) {
		return fail("has a repeat, a ? or a | inside a repeat, which can take HAProxy seconds: write it without")
	}
	if steps > MaxSteps {
		most := "two"
		if places > 1 {
			most = "one, or two behind a ^"
		}
		return fail("has too many repeats without a bound, which can take HAProxy seconds: use at most %s", most)
	}
	if prog, err := syntax.Compile(re.Simplify()); err != nil || len(prog.Inst) > maxProgram {
		return fail("is too large when its repeats are written out")
	}
	return Expression{Groups: re.MaxCap(), Steps: steps, Alternates: top}, nil
}

// characters refuses what the engines do not read in the same way.
func characters(s string) (problem string) {
	if len(s) > MaxLength {
		return fmt.Sprintf("the pattern has %d bytes, more than the %d that are taken", len(s), MaxLength)
	}
	for i, r := range s {
		switch {
		case r < ' ' || r >= 0x7f:
			return fmt.Sprintf("pattern %q holds %q: only printable ASCII is taken", short(s), r)
		case strings.HasPrefix(s[i:], "(?") && !strings.HasPrefix(s[i:], "(?:"):
			return fmt.Sprintf("pattern %q has %q: flags and look-around are not taken", short(s), s[i:min(i+3, len(s))])
		case len(s) > i+1 && r == '[' && strings.IndexByte("[.:=", s[i+1]) >= 0:
			return fmt.Sprintf("pattern %q has a class in a class: write its letters", short(s))
		}
	}
	return escapes(s)
}

// escapes allows a backslash only where it means the same to all three.
func escapes(s string) (problem string) {
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
		*steps = multiply(*steps, Subject)
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

// short shortens an expression for a message.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
