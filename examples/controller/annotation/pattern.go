package annotation

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/templating/regex"
)

// CheckPattern checks a regular expression that an annotation has.
func CheckPattern(s string) (regex.Expression, string) { return checked(s, regex.Check) }

// CheckPath checks a regular expression for the beginning of a path.
func CheckPath(s string) (regex.Expression, string) { return checked(s, regex.CheckStart) }

func checked(s string, check func(string) (regex.Expression, error)) (regex.Expression, string) {
	if i := strings.IndexAny(s, ` '"#`); i >= 0 {
		return regex.Expression{}, fmt.Sprintf("pattern %q holds %q, which no path can hold", short(s), s[i])
	}
	is, err := check(s)
	if err != nil {
		return regex.Expression{}, err.Error()
	}
	return is, ""
}

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
