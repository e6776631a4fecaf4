package templating

import (
	"regexp"
	"strings"

	"github.com/hapticsdk/haptic/templating/internal/origin"
)

// idiom is a pattern of Jinja and its replacement; $1 is the first group of the pattern.
type idiom struct{ jinja, write string }

// jinjaIdioms is the table of Jinja's idioms that Scriggo lacks. If several rows match at
// one place, the first one counts.
func jinjaIdioms() []idiom {
	const v = `("[^"]*"|'[^']*'|[\w.]+(?:\([^()]*\)|\[[^\]]*\])*)`  // a value
	const where = `(?:\{\{|\bif|\band|\bor|\bnot|&&|\|\||[(=!])\s*` // before a condition
	const pipe, end = v + `\s*\|\s*`, `\s*-?%\}`
	return []idiom{
		{`\{[{%]-\s*\w*|-[%}]\}`, `{% and {{ without "-": a line with statements alone leaves no line`},
		{`\b` + jinjaEnd + `\b`, `{% end %}`},
		{`\belif\s+(.*?)` + end, `{% else if $1 %}`},
		{`\bset\s+(\w+)\s*=\s*(.*?)` + end, `{% $1 := $2 %}, or {% $1 = $2 %} where $1 exists`},
		{`\bfor\s+(\w+)\s*,\s*(\w+)\s+in\s+([\w.]+?)(?:\.items\(\)|\s*\|\s*(?:dictsort|items))?` + end, `{% for $1, $2 := range $3 %}; the order of a map is that of sortedKeys($3)`},
		{v + `\s+is\s+(?:not\s+none|defined)\b`, `$1 != nil; a field: has(object, "path"); a variable is always defined`},
		{v + `\s+is\s+(?:none|not\s+defined|undefined)\b`, `$1 == nil; a field: !has(object, "path"); a variable is always defined`},
		{v + `\s+if\s+(.+?)\s+else\s+(.+?)\s*-?\}\}`, `{% if $2 %}{{ $1 }}{% else %}{{ $3 }}{% end %}`},
		{where + v + `\s+not\s+in\s+` + v, `$2 not contains $1`},
		{where + v + `\s+in\s+` + v, `$2 contains $1`},
		{`\bloop\.\w+`, `{% for i, x := range list %}, in which i counts from 0`},
		{`\b(?:None|none|null)\b`, `nil`},
		{`\bTrue\b`, `true`},
		{`\bFalse\b`, `false`},
		{v + `\s*~\s*` + v, `$1 + $2 of texts; tostring(x) is the text of others`},
		{pipe + `(?:length|count)\b`, `len($1)`},
		{pipe + `(?:default|d)\(([^()]*)\)`, `coalesce($1, $2), which also takes the place of an empty value`},
		{pipe + `(?:safe|raw|e|escape)\b`, `$1 as it is, or raw($1): a value is escaped for where it stands`},
		{pipe + `(\w+)\(([^()]+)\)`, `$2($1, $3)`},
		{pipe + `join\b`, `join($1, "")`},
		{pipe + `(\w+)`, `$2($1)`},
		{`\binclude\s+"([^".]+)"`, `{{ include("$1") }}`},
		{`\binclude\s+("[^"]+")`, `{{ render $1 }}`},
		{`\bmacro\s+(\w+)\((?:[^)]*[,(]\s*)?(\w+)\s*(?:=[^)]*)?\)`, `{% macro $1($2 string) %}: parameters have types and no default values`},
		{`'([^'\\]*)'`, `"$1" with double quotes`},
	}
}

// jinjaEnd are the ends of blocks.
const jinjaEnd = `end(?:for|if|macro|raw|set|block|call|filter|with|autoescape)`

// hints adds the replacement of Jinja to errors of syntax and types. Scriggo's message
// stays. If Scriggo misses the end of a block, it names only the end of the file. hints
// reports each end in Jinja's style instead.
func (e *Engine) hints(found []*origin.Problem) (all []*origin.Problem) {
	for _, p := range found {
		text := e.src.Text(p.File)
		ofNumbers := strings.Contains(p.Message, "mismatched types") && !strings.Contains(p.Message, "func(") // no filter
		if p.Line < 1 || text == "" || ofNumbers {
			all = append(all, p)
			continue
		}
		if strings.HasPrefix(p.Message, "unexpected EOF, expecting {% end") {
			ends := e.jinjaEnds(p.File, text)
			if all = append(all, ends...); len(ends) > 0 && !strings.Contains(text, "raw") { // a raw block has such an end as text
				continue
			}
		} else if write := jinjaAt(text, e.src.Offset(p.File, p.Line, p.Column)); write != "" {
			if name, is := strings.CutPrefix(p.Message, "undefined: "); is && strings.HasPrefix(write, name+"(") {
				write += ", and a macro " + name + ": there is no such function"
			}
			p.Message += "; " + comingFromJinja + write
		}
		all = append(all, p)
	}
	return all
}

const (
	comingFromJinja = "coming from Jinja, write "
	maxHints        = 20   // errors of ends in one file
	maxEnds         = 200  // ends in a file that jinjaEnds checks
	maxAround       = 4096 // bytes of code on each side of an error
)

// jinjaEnds finds {% endfor %} and the like in a file, outside comments.
func (e *Engine) jinjaEnds(file, text string) (all []*origin.Problem) {
	for _, at := range regexp.MustCompile(`\{%-?\s*(`+jinjaEnd+`)\s*-?%\}`).FindAllStringSubmatchIndex(text, maxEnds) {
		before, word := text[:at[0]], text[at[2]:at[3]]
		if strings.LastIndex(before, "{#") > strings.LastIndex(before, "#}") || len(all) == maxHints {
			continue
		}
		line, column := e.src.Position(file, at[2])
		all = append(all, &origin.Problem{File: file, Line: line, Column: column, Message: word + " ends nothing; " + comingFromJinja + "{% end %}"})
	}
	return all
}

// jinjaAt returns the replacement of the Jinja around a byte of a template, "" for none.
func jinjaAt(text string, at int) string {
	at = min(at, len(text))
	from := max(strings.LastIndex(text[:at], "{{"), strings.LastIndex(text[:at], "{%"), 0)
	to := len(text)
	for _, delimiter := range []string{"}}", "%}"} {
		if i := strings.Index(text[at:], delimiter); i >= 0 {
			to = min(to, at+i+len(delimiter))
		}
	}
	from, to = max(from, at-maxAround), min(to, at+maxAround)
	code, write, leftmost := text[from:to], "", to
	masked := maskStrings(code)
	for _, row := range jinjaIdioms() {
		pattern := regexp.MustCompile(row.jinja)
		for _, m := range pattern.FindAllStringSubmatchIndex(masked, -1) {
			const near = 3 // bytes: Scriggo names the operator, or the word behind it
			if from+m[0]-near <= at && at <= from+m[1]+1 && m[0] < leftmost {
				leftmost = m[0]
				write = strings.ReplaceAll(string(pattern.ExpandString(nil, row.write, code, m)), "'", `"`)
			}
		}
	}
	return write
}

// maskStrings returns code of the same length with an x for each byte in its strings. The
// dots of file names stay.
func maskStrings(code string) string {
	return regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`).ReplaceAllStringFunc(code, func(text string) string {
		masked := []byte(text)
		for i := 1; i < len(text)-1; i++ {
			if text[i] != '.' {
				masked[i] = 'x'
			}
		}
		return string(masked)
	})
}
