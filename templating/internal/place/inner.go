package place

import "strings"

// inner is how far HAProxy has read inside a word: a log-format string, a
// sample expression, a regular expression.
type inner struct {
	format formatState
	sample sampleState
	name   string // of the fetch or converter, and of a keyword with parentheses
	arg    uint8  // argument of it, from 0
	inside what   // what the parentheses of a keyword hold
	begun  bool   // the word, or the argument, has text already
	text   bool   // text of the template
	class  classState
	slash  bool // behind a backslash of a regular expression
	alone  rune // the value that the argument begins with, if nothing else is in it
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

// sampleState follows make_arg_list. The zero value is for the name of a fetch
// or converter.
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
	maxInnerName = 32 // a longer name is none that the rules know
	unknownName  = "\x00"
)

// step goes over one byte of the content of a word that is read as w. The byte
// 0 stands for text that is not known.
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
	case asWord, asOption, asKeyword, asUnknown, asFetch, asList:
		in.text = true
		in.stepWord(c)
	}
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
		if in.format = formatText; letter {
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

// stepArgument is the table of quotes in arguments of section 2.2.
func (in *inner) stepArgument(c byte) {
	switch was := in.sample; {
	case was == sampleSlash || was == sampleQuoted:
		if !strings.ContainsRune(`\ "'rnt`, rune(c)) { // a lone backslash
			in.content('\\')
		}
		if in.sample = sampleArg; was == sampleQuoted {
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

// content goes over one byte of an argument without its quotes.
func (in *inner) content(c byte) {
	if in.reads() == asRegexp {
		in.stepRegexp(c)
	}
	in.begun, in.text, in.alone = true, true, 0
}

// reads says how the argument of a fetch or converter is read (section 7.3).
func (in *inner) reads() what {
	if letters := samples.of(in.name); int(in.arg) < len(letters) {
		return what(letters[in.arg])
	}
	return asWord
}

// takesEmpty reports whether an empty argument is a text like another. Most names
// that are empty stand for all that there are, req.hdr() for example, or for
// another one.
func (in *inner) takesEmpty() bool {
	switch in.name {
	case "str", "concat", "iif", "regsub", "strcmp", "secure_memcmp", "map", "jwt_verify", unknownName:
		return true
	}
	return strings.HasPrefix(in.name, "map_") || strings.HasPrefix(in.name, "lua.")
}

// classState is where a regular expression is read by rules of its own.
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

// stepWord goes over a word of which nothing is known: a parenthesis or %[ may
// open anything.
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
