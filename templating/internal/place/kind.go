package place

import (
	"path"
	"strings"
)

// Kind is the syntax of an entry's output. The name of the entry tells it.
type Kind uint8

const (
	Config  Kind = iota // *.cfg, *.conf
	Map                 // *.map: "key value" lines, neither quotes nor escapes
	RegMap              // *_reg.map: the keys are regular expressions
	CRTList             // *.txt: crt-list lines, neither quotes nor escapes
	List                // *.lst, *.acl: a pattern on each line (section 7.1, "-f"), neither quotes nor escapes
	RegList             // *_reg.lst, *_reg.acl: of regular expressions
	Format              // *_lf.*: a log-format string (lf-file)
	Plain               // error pages, Lua, PEM: values stay as they are
	Unknown             // all others: the strictest rule
)

// KindOf tells the kind of a file by its name.
func KindOf(entry string) Kind {
	ext := strings.ToLower(path.Ext(entry))
	stem := strings.TrimSuffix(strings.ToLower(path.Base(entry)), ext)
	regular := strings.HasSuffix(stem, "_reg")
	switch {
	case strings.HasSuffix(stem, "_lf"):
		return Format
	case ext == ".map" && regular:
		return RegMap
	case (ext == ".lst" || ext == ".acl") && regular:
		return RegList
	}
	switch ext {
	case ".cfg", ".conf":
		return Config
	case ".map":
		return Map
	case ".txt":
		return CRTList
	case ".lst", ".acl":
		return List
	case ".http", ".html", ".htm", ".json", ".lua", ".pem", ".crt", ".key", ".crl", ".ocsp", ".sctl", ".issuer":
		return Plain
	}
	return Unknown
}

func (k Kind) String() string {
	return [...]string{"a configuration", "a map", "a map of regular expressions", "a crt-list", "a list of patterns",
		"a list of regular expressions", "a log-format string", "text without rules", "of no known use"}[k]
}

// places is a set of places where the output may be at one point of a template.
type places uint32

const (
	argument  places = 1 << iota // unquoted (configuration manual, section 2.2)
	argEscape                    // behind a backslash, unquoted
	argHex                       // behind \x
	argHexEnd                    // and one digit
	double                       // inside double quotes
	dblEscape                    // behind a backslash inside double quotes
	dblHex
	dblHexEnd
	dblDollar // behind a "$" inside double quotes
	dblName   // in the name of an environment variable: "$A"
	dblBrace  // inside its braces: "${A"
	single    // inside single quotes
	comment   // behind an unquoted "#"
	mapStart  // a line of a map, with white space at most so far
	mapKey
	mapValue
	crtStart      // the start of a line of a crt-list
	crtPath       // in its first word, the path of a certificate
	crtOption     // in brackets, before an option or the value of one
	crtOptionText // in one
	crtWord       // behind them
	listStart     // a line of a list of patterns, with white space at most so far
	listText
	plain
)

// start returns the place where a file or a macro begins.
func (k Kind) start() places {
	switch k {
	case Map, RegMap:
		return mapStart
	case CRTList:
		return crtStart
	case List, RegList:
		return listStart
	case Plain, Format, Unknown:
		return plain
	}
	return argument
}

// after returns the places behind a text that starts at p.
func (k Kind) after(p places, text string) places {
	if k.start() == plain || text == "" {
		return p
	}
	// Only the text behind the last line feed counts.
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		p, text = k.start(), text[i+1:]
	}
	for i := 0; i < len(text); i++ {
		p = step(p, text[i])
	}
	return p
}

// step follows HAProxy for one byte of a line: parse_line in a configuration, and the
// readers of maps and lists elsewhere.
func step(p places, c byte) places {
	switch p {
	case argument:
		return stepUnquoted(c)
	case double, dblDollar, dblName, dblBrace:
		return stepDouble(p, c)
	case argEscape, argHex, argHexEnd:
		return stepEscape(p, c, argument)
	case dblEscape, dblHex, dblHexEnd:
		return stepEscape(p, c, double)
	case single:
		if c == '\'' {
			return argument
		}
	case mapStart, mapKey, listStart:
		return stepEntry(p, c)
	case crtStart, crtPath, crtOption, crtOptionText, crtWord:
		return stepCRT(p, c)
	}
	return p
}

// stepUnquoted is step outside of quotes.
func stepUnquoted(c byte) places {
	switch c {
	case '\\':
		return argEscape
	case '"':
		return double
	case '\'':
		return single
	case '#':
		return comment
	}
	return argument
}

// stepEscape is step behind a backslash: \x has two digits.
func stepEscape(p places, c byte, end places) places {
	switch {
	case p&(argEscape|dblEscape) != 0 && c == 'x', p&(argHex|dblHex) != 0:
		return p << 1
	}
	return end
}

// stepDouble is step inside double quotes, where environment variables have names.
func stepDouble(p places, c byte) places {
	switch {
	case p == dblBrace && c != '}':
		return dblBrace
	case p == dblBrace:
		return double
	case p == dblDollar && c == '{':
		return dblBrace
	case p == dblDollar && c == '.', p != double && isWord(c):
		return dblName
	}
	switch c {
	case '\\':
		return dblEscape
	case '"':
		return argument
	case '$':
		return dblDollar
	}
	return double
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// stepCRT is step in a line of a crt-list.
func stepCRT(p places, c byte) places {
	inside := p == crtOption || p == crtOptionText
	space := c == ' ' || c == '\t' || c == '\r'
	switch {
	case p == crtStart && c == '#':
		return comment
	case !inside && c == '[', inside && space:
		return crtOption
	case inside && c == ']':
		return crtWord
	case inside:
		return crtOptionText
	case p != crtWord && !space:
		return crtPath
	}
	return crtWord // also behind white space at the start: that counts as a word
}

// stepEntry is step in a line of a map or a list of patterns.
func stepEntry(p places, c byte) places {
	space := c == ' ' || c == '\t' || c == '\r'
	switch {
	case p == mapKey && space:
		return mapValue
	case p == mapKey:
		return mapKey
	case c == '#':
		return comment
	case space:
		return p
	case p == mapStart:
		return mapKey
	}
	return listText
}

// afterValue returns the place behind a shown value.
func afterValue(p places) places {
	switch p {
	case mapStart:
		return mapKey
	case crtStart:
		return crtPath
	case crtOption:
		return crtOptionText
	case listStart:
		return listText
	}
	return p
}

// placeFor picks the place of the set whose rules make a value safe in all of them, or says
// why there is none.
func placeFor(p places) (place places, problem string) {
	if p&(argEscape|dblEscape) != 0 {
		return 0, `a value cannot stand right behind a backslash: write \\ for a backslash`
	}
	if p&(argHex|argHexEnd|dblHex|dblHexEnd) != 0 {
		return 0, `a value cannot stand behind \x: its first characters would be digits of a character`
	}
	if p&(dblDollar|dblName|dblBrace) != 0 {
		return 0, `a value cannot stand in the name of an environment variable: write \$ for a dollar sign`
	}
	for _, quote := range []places{double, single} {
		if p&quote != 0 && p != quote {
			return 0, "the value stands inside quotes in one branch, loop or use of this file and outside in another"
		}
	}
	// From strict to lax. A value that is safe unquoted is safe in a comment too.
	for _, strict := range []places{mapStart, mapKey, mapValue, crtStart, crtPath, crtOption, crtOptionText, crtWord, listStart, listText, argument, double, single, comment, plain} {
		if p&strict != 0 {
			return strict, ""
		}
	}
	return 0, "no place known"
}

func (p places) String() string {
	switch p {
	case argument:
		return "an argument"
	case double:
		return "double quotes"
	case single:
		return "single quotes"
	case comment:
		return "a comment"
	case mapStart, mapKey:
		return "the key of a map entry"
	case mapValue:
		return "the value of a map entry"
	case crtStart, crtPath:
		return "the path of a crt-list"
	case crtOption, crtOptionText:
		return "an option of a crt-list"
	case crtWord:
		return "a word of a crt-list"
	case listStart, listText:
		return "a line of a list"
	}
	return "text"
}
