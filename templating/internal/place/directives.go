package place

import (
	_ "embed"
	"strings"
)

// what tells how HAProxy reads a word of a line, or a part of a word.
type what byte

const (
	asText     what = 't' // as it is
	asWord     what = 'w' // unknown: the strictest rule; in the table, a keyword of HAProxy that a value may choose
	asOption   what = 'o' // the name of an option, which a value may not choose
	asKeyword  what = 'k' // the first word of a line
	asUnknown  what = 'u' // the first word of a macro, which may stand anywhere
	asName     what = 'n' // of a section, server, ACL
	asMethod   what = 'm' // how patterns match: the word behind -m
	asVariable what = 'v' // of HAProxy: txn.host
	asHeader   what = 'h' // name of a header
	asAddress  what = 'a' // address and port that HAProxy connects to
	asListen   what = 'B' // address and port to listen on
	asFile     what = 'f' // path of a file
	asFormat   what = 'l' // log-format string (section 8.2.6 of the manual of 3.2)
	asReplace  what = 'R' // log-format string in which \1 is a group of a regular expression
	asSubst    what = 'S' // the same without the log-format
	asNameOf   what = 'N' // a name that may be a log-format string
	asSample   what = 'e' // sample expression (section 7.1)
	asRegexp   what = 'r'
	asPattern  what = 'p' // first pattern of an ACL, where flags may stand
	asLater    what = 'P' // further patterns
	asFetch    what = 'x' // name of a sample fetch, a converter or a service
	asEnv      what = 'E' // name of a variable of the environment
	asStrict   what = 's' // behind a parenthesis or a %[ of an unknown word
	asComment  what = '#'

	asNumber     what = 'D' // a number, a size or a time, or a sample expression in its place
	asValue      what = 'W' // text; options may stand before it, so it must not be one
	asURI        what = 'U' // URI, method or version of a request: spaces separate them
	asURIFormat  what = 'L' // the same in a log-format string
	asURIReplace what = 'Y' // the same in a replacement
	asPathFormat what = 'H' // the same without a query
	asPathRepl   what = 'J'
	asCookie     what = 'c' // name or value of a cookie
	asCookieFmt  what = 'C' // the same in a log-format string
	asQuoted     what = 'Q' // HAProxy puts it between double quotes of HTTP (RFC 9110, section 5.6.4)
	asAuth       what = 'b' // user:password
	asSocket     what = 'q' // path of a UNIX socket to listen on
	asAbstract   what = 'z' // name of an abstract socket to listen on
	asTarget     what = 'Z' // socket that HAProxy connects to
	asList       what = 'i' // words between commas; a word may have parentheses
	asHTML       what = 'T' // HAProxy writes it into the page of statistics as it is
	asLink       what = 'A' // the same inside of the address of a link
	asSNI        what = '*' // a server name in a crt-list
	asCRTOption  what = '[' // the start of an option of a crt-list
	asOperand    what = 'd' // a number, or the name of a variable
	asConstant   what = 'K' // a constant or a key in base64, or the name of a variable
)

// reading says which values may stand where HAProxy reads a word in one way.
type reading struct {
	name   string    // of the place, in messages
	choice string    // the kind of keyword there, which a value cannot choose
	chars  *asciiSet // the allowed characters, nil for all
	wanted string    // the description of such a value
	ends   string    // characters that would end the word or its part
	why    string    // the reason, in the message about ends
	text   bool      // words of conditions have no meaning there
	format bool      // it is a log-format string: % is doubled
	slash  bool      // backslashes are doubled
}

// readings is the table of allowed values. Constant in effect.
var readings = [128]reading{
	asText: {text: true}, asKeyword: {text: true}, asComment: {text: true}, asValue: {text: true}, asList: {text: true},
	asAuth: {text: true}, asQuoted: {text: true},
	asHTML: {name: "the page of statistics", text: true, ends: "<>&", why: "HAProxy writes it into a page of HTML, where <, > and & mean something"},
	asLink: {name: "a link", text: true, ends: `<>&"' `, why: "HAProxy writes it into a page of HTML, as the address of a link"},

	asOption: {name: "the place of an option", choice: "an option: use if or switch, or raw"},
	asFetch:  {name: "a sample expression", choice: "a sample fetch, a converter or a service: use if or switch, or raw; in str(...) it is text"},
	asEnv:    {name: "the name of an environment variable", choice: "an environment variable: use if or switch, or raw"},
	asMethod: {choice: "how patterns match: use if or switch, or raw"},

	asName:      {name: "a name", chars: &nameSet, wanted: "a name: letters, digits and -_.: only"},
	asNameOf:    {name: "a name", chars: &nameSet, wanted: "a name: letters, digits and -_.: only", format: true},
	asVariable:  {name: "the name of a variable", chars: &variableSet, wanted: "the name of a variable: letters, digits, _ and . only"},
	asHeader:    {name: "the name of a header", chars: &headerSet, wanted: "the name of a header"},
	asWord:      {chars: &nameSet, wanted: notPlain},
	asStrict:    {chars: &nameSet, wanted: notPlain},
	asSNI:       {chars: &sniSet, wanted: "the name of a server, letters, digits and -_.:* only: white space and brackets end the word"},
	asCRTOption: {chars: &nameSet, wanted: notPlain},
	asOperand:   {name: "a number", chars: &variableSet, wanted: "the name of a variable: letters, digits, _ and . only"},
	asConstant: {
		name:   "a constant",
		chars:  &base64Set,
		wanted: "a constant: letters, digits and +/= only, since with a dot it would be the name of a variable",
	},

	asAddress: {name: "an address"}, asListen: {name: "an address"}, asFile: {name: "the path of a file"},
	asSocket:   {name: "the path of a socket", chars: &socketSet, wanted: "the path of a socket: letters, digits and -_./ only"},
	asAbstract: {name: "the name of a socket", chars: &nameSet, wanted: "a name: letters, digits and -_.: only"},
	asTarget:   {name: "a socket that HAProxy connects to", chars: &nameSet, wanted: "a name: letters, digits and -_.: only"},
	asNumber:   {name: "the place of a number"}, asRegexp: {name: "a regular expression"}, asPattern: {name: "a pattern"}, asLater: {name: "a pattern"},

	asFormat:     {name: "a log-format string", text: true, format: true},
	asReplace:    {name: "a log-format string", text: true, format: true, slash: true}, // exp_replace of HAProxy takes a doubled backslash for one
	asSubst:      {slash: true},
	asURI:        {name: "a line of a request", text: true, ends: " ", why: "a space would end it in the line of the request"},
	asURIFormat:  {name: "a line of a request", text: true, ends: " ", why: "a space would end it in the line of the request", format: true},
	asURIReplace: {name: "a line of a request", text: true, ends: " ", why: "a space would end it in the line of the request", format: true, slash: true},
	asPathFormat: {name: "a path", text: true, ends: " ?", why: "a space or a question mark would end the path", format: true},
	asPathRepl:   {name: "a path", text: true, ends: " ?", why: "a space or a question mark would end the path", format: true, slash: true},
	asCookie:     {name: "a cookie", text: true, chars: &cookieSet, wanted: "the name or the value of a cookie"},
	asCookieFmt:  {name: "a cookie", text: true, chars: &cookieSet, wanted: "the name or the value of a cookie", format: true},
}

// families are the prefixes of an address that is a socket, and how HAProxy reads what stands behind
// them where it listens (section 11.1 of the manual of 3.2). Constant in effect.
var families = map[string]what{"/": asSocket, "unix@": asSocket, "uxst@": asSocket, "uxdg@": asSocket, "abns@": asAbstract, "abnsz@": asAbstract}

// notPlain names the strictest rule, for all places that the tables do not know.
const notPlain = "plain enough for a place that HAProxy reads in an unknown way: use only letters, digits and -_.:, or use raw, text of the template, or a row for the place in directives.txt"

// form describes the words behind a keyword.
type form struct {
	args    string           // how HAProxy reads the next words, one letter each
	options map[string]*form // the later words, nil if unknown
	names   map[string]bool  // of the options
	inside  what             // how HAProxy reads the parentheses of the keyword: set-var(...)
	acl     bool             // a sample expression and patterns follow the arguments
}

// directives is the table of HAProxy's lines. Its sources are sections 3 to 5, 7 and 10 to
// 13 of the configuration manuals of HAProxy 2.6 and 3.2. A line of the table has a keyword
// and the letters of its arguments, then options with their letters. "+" behind the last
// letter allows more such words; "@" before a word adds the options of a list. Options may
// stand before an argument that is asWord. An unknown word is asWord if the line, or the
// option before the word, is unknown too: the word may be its value. An omission here
// therefore gets the strictest rule. [TestKeywords] finds words that HAProxy knows and the
// table does not.
var directives = parseDirectives(directivesTable)

//go:embed directives.txt
var directivesTable string

func parseDirectives(table string) map[string]*form {
	known := map[string]map[string]*form{}
	forms := map[string]*form{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if list, ok := strings.CutPrefix(words[0], "@"); ok {
			known[list] = parseOptions(words[1:], known)
			continue
		}
		f := &form{args: strings.Trim(words[1], ".")}
		f.acl = len(words) > 2 && words[2] == "acl"
		if !f.acl {
			f.options = parseOptions(words[2:], known)
		}
		f.name()
		forms[words[0]] = f
	}
	return forms
}

func (f *form) name() {
	f.names = map[string]bool{}
	for word := range f.options {
		f.names[word] = true
	}
}

// parseOptions reads "word:args", "word(inside:args", "word:@list" and "@list".
func parseOptions(words []string, known map[string]map[string]*form) map[string]*form {
	options := map[string]*form{}
	for _, word := range words {
		if list, ok := strings.CutPrefix(word, "@"); ok {
			for name, f := range known[list] {
				options[name] = f
			}
			continue
		}
		name, args, _ := strings.Cut(word, ":")
		args, list, ok := strings.Cut(args, "@")
		f := &form{args: args}
		if ok {
			f.options = known[list]
		}
		f.name()
		if i := strings.IndexByte(name, '('); i >= 0 {
			f.inside, name = what(name[i+1]), name[:i+1]
		}
		options[name] = f
	}
	return options
}
