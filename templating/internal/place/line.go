package place

import "strings"

// mode is the kind of the next words of a line.
type mode uint8

const (
	modeKeyword   mode = iota // nothing yet
	modeUnknown               // nothing yet, in text that another line may show
	modeWords                 // behind the keyword
	modeCondition             // behind if and unless, between ACLs
	modeSample                // where the sample expression of an ACL stands
	modeFlags                 // behind it
	modePatterns              // behind "--" or the first pattern
)

// line is HAProxy's position in a line of a configuration. It is comparable, and one
// template has few different values.
type line struct {
	mode    mode
	form    *form  // the words of the line, nil if unknown
	pending string // how HAProxy reads the next words, by the form and its options
	braces  bool   // of an anonymous ACL
	regexp  bool   // the patterns are regular expressions
	numeric bool   // they may be numbers
	cast    bool   // the next word may be a converter
	fetched bool   // the name of the sample fetch of an ACL is complete
	loose   bool   // behind an unknown option, which may have a value
	lost    bool   // too many ways lead here to follow them all

	apart bool // the text of a macro began here, and no line of it has ended

	begun bool   // a word has begun
	text  bool   // it has text of the template already
	value bool   // it has unknown text
	word  string // the known part of the word, if it may be a keyword
	reads what   // how HAProxy reads the word
	in    inner
	lone  string // values that are a whole argument of a sample expression, a rune each
	shape shape  // the word, as long as it may be one that HAProxy knows
	key   string // the keyword, or the option before the word, that the table does not know
}

// maxWord bounds the length of a keyword.
const maxWord = 48

// more stands behind the letter of a word that may repeat.
const more = "+"

// expected says how HAProxy reads the word that begins now.
func (l *line) expected() what {
	if l.lost {
		return asStrict
	}
	if l.pending != "" {
		if next := what(l.pending[0]); next != asValue || !l.regexp {
			return next
		}
		return asRegexp
	}
	switch l.mode {
	case modeKeyword:
		return asKeyword
	case modeUnknown:
		return asUnknown
	case modeCondition:
		return asName
	case modeSample:
		return asSample
	case modeFlags, modePatterns:
		switch {
		case l.regexp:
			return asRegexp
		case l.mode == modeFlags:
			return asPattern
		}
		return asLater
	}
	switch {
	case l.regexp: // behind -m reg
		return asRegexp
	case l.form != nil && !l.loose:
		return asOption
	}
	return asWord
}

// begin starts a word, before its first byte, quote or value.
func (l *line) begin() {
	if !l.begun {
		l.reads, l.begun, l.in = l.expected(), true, inner{}
	}
}

// content reads one byte of a word, without quotes and escapes. 0 stands for an unknown
// byte.
func (l *line) content(c byte) {
	l.begin()
	if l.mode == modeCondition && c == '!' && l.word == "" && l.pending == "" {
		return
	}
	l.text = true
	switch {
	case c == 0:
		l.shape = l.shape.with(hole(0))
	case l.cast && l.shape != "" && !nameSet.has(c): // the name of a converter ends
		l.shape = l.shape.with(endOfName)
	default:
		l.shape = l.shape.with(rune(c))
	}
	if l.mayBeKeyword() {
		if c == 0 || len(l.word) >= maxWord {
			l.unknown()
		} else {
			l.word += string(rune(c))
		}
	}
	if l.mode == modeSample && !l.fetched && (c == '(' || c == ',') {
		l.fetched, l.regexp, l.cast = true, strings.HasSuffix(l.in.name, "_reg"), !aclKeywords[l.in.name]
	}
	before := l.in
	l.in.step(l.reads, c)
	if before.alone != 0 && (l.in.arg != before.arg || l.in.sample == sampleEnd) && !strings.ContainsRune(l.lone, before.alone) {
		l.lone += string(before.alone)
	}
	if c == '(' && l.word != "" {
		if f := l.option(l.word); f != nil && f.inside != 0 {
			l.in.inside, l.in.begun, l.in.text = f.inside, false, false
		}
	}
}

// mayBeKeyword reports whether the word may be a keyword or an option.
func (l *line) mayBeKeyword() bool {
	return !l.value && l.mode != modeSample && (l.pending == "" || l.reads == asMethod || l.reads == asWord || l.reads == asValue)
}

// unknown notes that the word is unknown, except for a part before a parenthesis, as in
// set-map({{ path }}).
func (l *line) unknown() {
	name, _, inside := strings.Cut(l.word, "(")
	l.word, l.value = "", true
	if inside {
		l.word = name + "("
	}
}

// shown reads a value.
func (l *line) shown(id int) {
	l.begin()
	l.shape = l.shape.with(hole(id))
	l.unknown()
	if l.in.sample == sampleName {
		l.in.name = unknownName
	}
	l.in.alone = 0
	if !l.in.begun {
		l.in.alone = rune(id)
	}
	l.in.begun = true
}

func (l *line) option(word string) *form {
	if l.mode != modeWords || l.form == nil {
		return nil
	}
	return l.form.options[word]
}

// end ends a word.
func (l *line) end() {
	if !l.begun {
		return
	}
	word, reads, fetch := l.word, l.reads, l.in.name
	l.begun, l.text, l.value, l.word, l.in, l.shape, l.lone, l.reads = false, false, false, "", inner{}, "", "", 0
	if (reads == asWord || reads == asValue) && l.pending != "" && l.endChoice(word) {
		return
	}
	if l.pending != "" {
		of := what(l.pending[0])
		if l.pending[1:] != more {
			l.pending = l.pending[1:]
		}
		switch {
		case of == asValue:
			l.regexp = false
		case reads == asMethod:
			l.regexp, l.numeric = word == "reg", word == "int" || word == ""
		case l.pending == "" && l.form != nil && l.form.acl && l.mode == modeWords:
			l.mode, l.form = modeSample, nil
		}
		return
	}
	switch l.mode {
	case modeKeyword, modeUnknown:
		l.endKeyword(word)
	case modeWords:
		l.endWord(word)
	case modeCondition:
		if word == "{" {
			l.mode, l.braces = modeSample, true
		}
	case modeSample:
		if !l.fetched {
			l.regexp, l.cast = strings.HasSuffix(fetch, "_reg"), !aclKeywords[fetch]
		}
		l.mode, l.fetched, l.numeric = modeFlags, false, !givesString(fetch)
	case modeFlags, modePatterns:
		l.cast = l.cast && isConverter(word)
		if !l.cast {
			l.endPattern(word)
		}
	}
}

func (l *line) endKeyword(word string) {
	switch word {
	case "no", "default":
		l.apart = false
		return
	case "if", "unless", "{":
		if l.mode == modeUnknown {
			l.mode = modeWords
			l.endWord(word)
			return
		}
	}
	l.mode, l.key = modeWords, word
	if f := directives[word]; f != nil {
		l.form, l.pending, l.key = f, f.args, ""
	}
}

// endChoice ends a word for which the table has asWord. It reports whether the word was an
// option or began a condition, which may stand there too.
func (l *line) endChoice(word string) bool {
	rest := l.pending
	f := l.find(word)
	if f == nil && word != "if" && word != "unless" {
		return false
	}
	l.pending = ""
	if l.endWord(word); f != nil {
		l.pending += rest
	}
	return true
}

// luaAction begins the names of actions that are written in Lua.
const luaAction = "lua."

// find returns the option of a word, also one with parentheses.
func (l *line) find(word string) *form {
	f := l.option(word)
	if i := strings.IndexByte(word, '('); f == nil && i >= 0 {
		f = l.option(word[:i+1])
	}
	if f == nil && strings.HasPrefix(word, luaAction) {
		f = l.option(luaAction)
	}
	return f
}

func (l *line) endWord(word string) {
	switch word {
	case "if", "unless":
		l.mode, l.form, l.regexp = modeCondition, nil, false
		return
	case "{":
		l.mode, l.form, l.regexp, l.braces = modeSample, nil, false, true
		return
	}
	f := l.find(word)
	l.loose = f == nil
	if l.loose {
		if l.form != nil {
			l.key = word
		}
		return
	}
	l.pending, l.key = f.args, ""
	if f.options != nil {
		l.form = f
	}
}

func (l *line) endPattern(word string) {
	if word == "}" && l.braces {
		l.mode, l.braces, l.regexp, l.numeric = modeCondition, false, false, false
		return
	}
	if l.mode == modePatterns {
		return
	}
	switch word {
	case "-f":
		l.pending = string(asFile)
	case "-m":
		l.pending = string(asMethod)
	case "-u":
		l.pending = string(asText)
	case "-i", "-n", "-M":
	default:
		l.mode = modePatterns
	}
}
