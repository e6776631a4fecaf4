package annotation

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
)

// MaxPattern and MaxRepeats bound a regular expression: HAProxy tries it on each request.
// With three repeats without a bound it takes 0.1 s at most for a path of 8,000 bytes.
const MaxPattern, MaxRepeats, maxProgram = 512, 3, 2000

// CheckPattern says what is wrong with a regular expression, and how many groups it has.
// It has what Go, PCRE and POSIX understand in the same way: look-around, back-references
// and nested repeats are refused.
func CheckPattern(s string) (groups int, problem string) {
	if len(s) > MaxPattern {
		return 0, fmt.Sprintf("the pattern has %d bytes, more than the %d that are taken", len(s), MaxPattern)
	}
	for i, r := range s {
		switch {
		case r <= ' ' || r >= 0x7f || r == '\'' || r == '"' || r == '#':
			return 0, fmt.Sprintf("pattern %q holds %q, which no path can hold", short(s), r)
		case strings.HasPrefix(s[i:], "(?") && !strings.HasPrefix(s[i:], "(?:"):
			return 0, fmt.Sprintf("pattern %q has %q: flags and look-around are not taken", short(s), s[i:min(i+3, len(s))])
		case strings.HasPrefix(s[i:], "[[") || strings.HasPrefix(s[i:], "[."):
			return 0, fmt.Sprintf("pattern %q has a class in a class: write its letters", short(s))
		}
	}
	if problem := checkEscapes(s); problem != "" {
		return 0, problem
	}
	re, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0, fmt.Sprintf("pattern %q: %v", short(s), err)
	}
	repeats := 0
	if nests(re, false, &repeats) {
		return 0, fmt.Sprintf("pattern %q repeats what repeats itself, which can take HAProxy seconds: write it without a repeat in a repeat", short(s))
	}
	if repeats > MaxRepeats {
		return 0, fmt.Sprintf("pattern %q has %d repeats without a bound, more than the %d that are taken", short(s), repeats, MaxRepeats)
	}
	if prog, err := syntax.Compile(re.Simplify()); err != nil || len(prog.Inst) > maxProgram {
		return 0, fmt.Sprintf("pattern %q is too large when its repeats are written out", short(s))
	}
	return re.MaxCap(), ""
}

// checkEscapes lets pass what means the same to all: a sign that stands for itself.
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
		}
	}
	return ""
}

// nests reports whether something is repeated that repeats itself, and counts repeats
// without a bound.
func nests(re *syntax.Regexp, inside bool, repeats *int) bool {
	is := re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0
	many := is || re.Op == syntax.OpRepeat && re.Max > 1
	if is {
		*repeats++
	}
	if is && inside {
		return true
	}
	for _, sub := range re.Sub {
		if nests(sub, inside || many, repeats) {
			return true
		}
	}
	return false
}

// toReplacement reads what takes the place of what a pattern matches, with $1 or \1 for
// its first group.
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
