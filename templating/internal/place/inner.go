package place

import "strings"

// inner is HAProxy's position inside a word: in a log-format string, a sample expression or
// a regular expression.
type inner struct {
	format formatState
	sample sampleState
	name   string // of the fetch or converter, or of a keyword with parentheses
	arg    uint8  // argument of it, from 0
	inside what   // how HAProxy reads the parentheses of a keyword
	begun  bool   // the word, or the argument, is not empty
	text   bool   // it has text of the template
	class  classState
	slash  bool // behind a backslash of a regular expression
	alone  rune // the value that is the only content of the argument
	socket what // how HAProxy reads the address behind its prefix, 0 if it has none of a socket
}

// formatState follows parse_logformat_string and its successor of 3.0,
// lf_expr_compile.
type formatState uint8

const (
	formatText    formatState = iota
	formatPercent             // behind %, and behind %(name)
	formatTyped               // inside %(
	formatFlags               // inside %{
	formatName                // in the name of a variable: %ci
	formatSample              // inside %[
)

// sampleState follows make_arg_list. The zero value is the name of a fetch or converter.
type sampleState uint8

const (
	sampleName   sampleState = iota
	sampleArg                // between parentheses
	sampleDouble             // in double quotes there
	sampleSingle             // in single quotes there
	sampleSlash              // behind a backslash
	sampleQuoted             // behind a backslash in double quotes
	sampleEnd                // behind the parentheses
)

const (
	maxInnerName = 32 // bounds the length of names in the rules
	unknownName  = "\x00"
)

// step reads one byte of a word; w is the reading of the word. The byte 0 stands for
// unknown text.
func (in *inner) step(w what, c byte) {
	in.begun = true
	if readings[w].format {
		in.stepFormat(c)
		return
	}
	switch w {
	case asSample, asNumber:
		in.stepSample(c)
	case asRegexp:
		in.stepRegexp(c)
	case asAddress, asListen, asSocket:
		in.stepAddress(w, c)
	case asWord, asOption, asKeyword, asUnknown, asFetch, asList:
		in.text = true
		in.stepWord(c)
	}
}

// stepAddress finds the prefix of an address, as str2sa_range does. In a list each address has
// one of its own.
func (in *inner) stepAddress(w what, c byte) {
	switch {
	case c == ',':
		in.name, in.socket = "", 0
	case in.socket != 0:
	case c == '+': // stream+ and dgram+ stand before the prefix
		in.name = ""
	default:
		in.name = familyName(in.name + string(rune(c)))
		in.socket = families[in.name]
		if in.socket != 0 && c == '@' {
			in.begun = false
		}
		if in.socket != 0 && w == asAddress {
			in.socket = asTarget
		}
	}
}

// familyName returns a text that may become a prefix of an address, and unknownName for another one.
func familyName(text string) string {
	for prefix := range families {
		if strings.HasPrefix(prefix, text) {
			return text
		}
	}
	return unknownName
}

func (in *inner) stepFormat(c byte) {
	letter := isWord(c) && c != '_'
	switch in.format {
	case formatText:
		if c == '%' {
			in.format = formatPercent
		}
	case formatPercent:
		switch {
		case c == '(':
			in.format = formatTyped
		case c == '{':
			in.format = formatFlags
		case c == '[':
			*in = inner{format: formatSample}
		case letter:
			in.format = formatName
		default:
			in.format = formatText
		}
	case formatTyped:
		if c == ')' {
			in.format = formatPercent
		}
	case formatFlags:
		if c == '}' {
			in.format = formatPercent
		}
	case formatName:
		in.format = formatText
		if letter {
			in.format = formatName
		} else if c == '%' {
			in.format = formatPercent
		}
	case formatSample:
		if c == ']' && (in.sample == sampleName || in.sample == sampleEnd) {
			*in = inner{}
			return
		}
		in.stepSample(c)
	}
}

func (in *inner) stepSample(c byte) {
	switch in.sample {
	case sampleName:
		switch {
		case c == '(':
			in.sample, in.arg = sampleArg, 0
			in.startArg()
		case c == ',':
			in.name = ""
		case in.name != unknownName && len(in.name) < maxInnerName:
			in.name += string(rune(c))
		}
	case sampleEnd:
		if c == ',' {
			in.sample, in.name = sampleName, ""
		}
	default:
		in.stepArgument(c)
	}
}

func (in *inner) startArg() {
	in.begun, in.text, in.class, in.slash, in.alone = false, false, classNone, false, 0
}

// stepArgument implements the table of quotes in arguments in section 2.2.
func (in *inner) stepArgument(c byte) {
	switch was := in.sample; {
	case was == sampleSlash || was == sampleQuoted:
		if !strings.ContainsRune(`\ "'rnt`, rune(c)) { // a lone backslash
			in.content('\\')
		}
		in.sample = sampleArg
		if was == sampleQuoted {
			in.sample = sampleDouble
		}
		in.content(c)
	case was == sampleDouble && c == '\\':
		in.sample = sampleQuoted
	case was == sampleDouble && c == '"', was == sampleSingle && c == '\'':
		in.sample = sampleArg
	case was != sampleArg:
		in.content(c)
	case c == ',':
		in.arg = min(in.arg+1, 7)
		in.startArg()
	case c == ')':
		in.sample = sampleEnd
	case c == '\\':
		in.sample = sampleSlash
	case c == '"':
		in.sample = sampleDouble
	case c == '\'':
		in.sample = sampleSingle
	default:
		in.content(c)
	}
}

// content reads one byte of an argument without its quotes.
func (in *inner) content(c byte) {
	if in.reads() == asRegexp {
		in.stepRegexp(c)
	}
	in.begun, in.text, in.alone = true, true, 0
}

// reads says how HAProxy reads the argument of a fetch or converter (section 7.3).
func (in *inner) reads() what {
	if letters := samples.of(in.name); int(in.arg) < len(letters) {
		return what(letters[in.arg])
	}
	return asWord
}

// takesEmpty reports whether an empty argument is an ordinary text. In most fetches an
// empty name means all names, as in req.hdr(), or another one.
func (in *inner) takesEmpty() bool {
	switch in.name {
	case "str", "concat", "iif", "regsub", "strcmp", "secure_memcmp", "map", "jwt_verify", unknownName:
		return true
	}
	return strings.HasPrefix(in.name, "map_") || strings.HasPrefix(in.name, "lua.")
}

// classState is a part of a regular expression with rules of its own.
type classState uint8

const (
	classNone   classState = iota
	classStart             // behind "[" and "[^", where "]" is a character
	classInside            // in a character class
	classNamed             // in [:alpha:], or behind a "[" of the class
	classQuote             // behind \Q
)

func (in *inner) stepRegexp(c byte) {
	slash := in.slash
	in.slash = !slash && c == '\\'
	switch {
	case slash && c == 'Q' && in.class == classNone:
		in.class = classQuote
	case slash && c == 'E' && in.class == classQuote:
		in.class = classNone
	case in.class == classQuote || slash && in.class == classNone:
	case in.class == classNone && c == '[':
		in.class = classStart
	case in.class == classStart && c == '^':
	case in.class == classStart, in.class == classInside && slash:
		in.class = classInside
	case in.class == classInside && c == '[':
		in.class = classNamed
	case c == ']' && in.class == classNamed:
		in.class = classInside
	case c == ']' && in.class == classInside:
		in.class = classNone
	}
}

// stepWord reads an unknown word: a parenthesis or %[ may open anything.
func (in *inner) stepWord(c byte) {
	switch {
	case in.inside != 0:
		if c == ')' {
			in.inside = 0
		}
	case c == '(' || c == '%':
		in.inside = asStrict
	}
}
