package templating

import (
	"regexp"
	"strings"

	"github.com/hapticsdk/haptic/templating/internal/origin"
)

// Signs of Jinja in code that does not compile. Scriggo takes the end of a block for code, and
// misses the end at the end of the file. Constant in effect.
var (
	jinjaEnd = regexp.MustCompile(`\{%-?\s*end(?:for|if|macro|raw|set|block|call|filter|with|autoescape)\s*-?%\}`)
	jinja    = regexp.MustCompile(`\{[{%]-|-[%}]\}|\{%\s*(?:end[a-z]+|elif|set|include)\b|\{%\s*for\s+\w+\s*,\s*\w+\s+in\b|\{%\s*if\b[^%]*\bin\b|` +
		`\{[{%][^}%]*(?:[^|]\|\s*[a-z]|\bis\s+(?:not\s+)?(?:none|defined|undefined)\b|\sif\b.*\belse\b|\bloop\.|\b(?:None|True|False)\b|\s~\s|\[')`)
)

const jinjaHint = "; coming from Jinja? docs/functions.md lists what to write"

// hints says where an error of syntax or types may come from Jinja.
func (e *Engine) hints(found []*origin.Problem) []*origin.Problem {
	for _, p := range found {
		if at := jinjaEnd.FindStringIndex(e.src.Text(p.File)); at != nil && strings.Contains(p.Message, "unexpected EOF") {
			p.Line, p.Column = e.src.Position(p.File, at[0])
		}
		if jinja.MatchString(e.src.Line(p.File, p.Line)) {
			p.Message += jinjaHint
		}
	}
	return found
}
