// Package regex checks regular expressions of tenants, before HAProxy tries
// them on each request. Go (RE2), PCRE and POSIX read a checked expression in the same way, and
// its cost is bounded.
//
// The template function regex(s) calls [Check] and writes the expression where HAProxy reads
// one; a controller calls it to refuse a resource by name. [Expression.Longest] says on which
// texts it may be tried, and [Bounded] is a net for what the check does not foresee.
package regex

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
)

// The bounds of an expression. PCRE takes 60 ns for a step at most, without its compiler
// (JIT), and 10 ns with it.
const (
	MaxLength = 512     // bytes of an expression
	MaxSteps  = 500_000 // of [Expression.Steps]
	Subject   = 16_384  // bytes of the longest text that HAProxy holds

	least      = 100    // bytes of a text that each expression can be tried on
	maxProgram = 2000   // instructions, with all repeats written out
	costly     = 40_000 // steps that count for one plain expression
)

// Expression is what [Check] knows of a checked expression.
type Expression struct {
	Groups     int  // that a replacement can name
	Longest    int  // bytes of a text that it may be tried on, [Subject] for most
	Steps      int  // at most, for a text of Longest bytes
	Alternates bool // it has a "|" outside of parentheses: text before it belongs to the first alternative alone
}

// Weight is how many plain expressions this one counts for, by its highest cost: 1 or more.
func (e Expression) Weight() int { return 1 + e.Steps/costly }

// Limit begins an expression for PCRE: beyond so many steps from one place it matches nothing.
// A checked expression takes fewer on a text of up to [Expression.Longest] bytes.
var Limit = "(*LIMIT_MATCH=" + strconv.Itoa(MaxSteps) + ")" // constant in effect

// Bounded puts [Limit] before an expression. Only the beginning of a whole expression may have
// it. HAProxy must be built with PCRE or PCRE2: POSIX refuses it.
func Bounded(s string) string { return Limit + s }

// Check checks an expression that HAProxy tries at each place of a text, or at its beginning
// if it begins with "^". It takes printable ASCII, and only what Go, PCRE and POSIX understand
// in the same way. It refuses look-around, back-references, flags, nested repeats, and what
// would take more than [MaxSteps] on a short text. The error says what to write instead.
func Check(s string) (Expression, error) { return check(s, false) }

// CheckStart is [Check] for an expression that will stand behind a "^".
func CheckStart(s string) (Expression, error) { return check(s, true) }

func check(s string, atStart bool) (Expression, error) {
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
	all, problem := parse(s)
	switch {
	case problem != "":
		return fail("%s", problem)
	case all.nests():
		return fail("has a repeat, a ? or a | inside a repeat, which can take HAProxy seconds: write it without")
	}
	if prog, err := syntax.Compile(re.Simplify()); err != nil || len(prog.Inst) > maxProgram {
		return fail("is too large when its repeats are written out")
	}
	longest, steps := all.bound(atStart)
	if longest < least {
		return fail("has too many repeats that can share a text, which can take HAProxy seconds: use fewer, or [^/]* in place of .*")
	}
	return Expression{Groups: re.MaxCap(), Longest: longest, Steps: steps, Alternates: len(all) > 1}, nil
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
		i++
		if i == len(s) {
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

// short shortens an expression for a message.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
