package place

import (
	_ "embed"
	"strings"
)

// what says how HAProxy reads a word of a line, or a part of one.
type what byte

const (
	asText     what = 't' // as it is
	asWord     what = 'w' // not known: the strictest rule; in the table, a word of HAProxy's that a value may choose
	asOption   what = 'o' // the name of an option, which a value may not choose
	asKeyword  what = 'k' // the first word of a line
	asUnknown  what = 'u' // the first word of a macro, which may stand anywhere
	asName     what = 'n' // of a section, server, ACL
	asMethod   what = 'm' // how patterns match: what follows -m
	asVariable what = 'v' // of HAProxy: txn.host
	asHeader   what = 'h' // name of a header
	asAddress  what = 'a' // address and port
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
	asStrict   what = 's' // behind a parenthesis or a %[ of a word that is not known
	asComment  what = '#'

	asNumber     what = 'D' // a number, a size or a time, or a sample expression in its place
	asValue      what = 'W' // text before which options may stand, so that it cannot be one
	asURI        what = 'U' // URI, method or version of a request: its line has spaces between them
	asURIFormat  what = 'L' // the same in a log-format string
	asURIReplace what = 'Y' // the same in a replacement
	asPathFormat what = 'H' // the same for what cannot have a query
	asPathRepl   what = 'J'
	asCookie     what = 'c' // name or value of a cookie
	asCookieFmt  what = 'C' // the same in a log-format string
	asQuoted     what = 'Q' // HAProxy puts it between double quotes of HTTP (RFC 9110, section 5.6.4)
	asAuth       what = 'b' // user:password
	asSocket     what = 'q' // path of a UNIX socket
	asList       what = 'i' // words with commas between them, which may have parentheses
	asHTML       what = 'T' // HAProxy writes it into the page of statistics as it is
	asLink       what = 'A' // the same inside of the address of a link
	asSNI        what = '*' // a name of a server in a crt-list
	asCRTOption  what = '[' // what an option of a crt-list begins with
	asOperand    what = 'd' // a number, or the name of a variable
	asConstant   what = 'K' // a constant or a key in base64, or the name of a variable
)

// reading is what a value may be where HAProxy reads it in one way.
type reading struct {
	name   string    // of the place, in messages
	choice string    // a word of HAProxy's own stands there, which a value cannot choose
	chars  *asciiSet // what a value may consist of, nil for everything
	wanted string    // what such a value is
	ends   string    // characters that would end what stands there
	why    string    // they would
	text   bool      // the words of conditions mean nothing there
	format bool      // it is a log-format string: % is doubled
	slash  bool      // backslashes are doubled
}

// readings is the table of what a value may be. Constant in effect.
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
	asConstant:  {name: "a constant", chars: &base64Set, wanted: "a constant: letters, digits and +/= only, since with a dot it would be the name of a variable"},

	asAddress: {name: "an address"}, asFile: {name: "the path of a file"}, asSocket: {name: "the path of a socket"},
	asNumber: {name: "the place of a number"}, asRegexp: {name: "a regular expression"}, asPattern: {name: "a pattern"}, asLater: {name: "a pattern"},

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

// notPlain is the strictest rule: it is for all that the tables do not know.
const notPlain = "plain enough where it is not known how HAProxy reads it, letters, digits and -_.: only: use raw, text of the template, or a row for it in directives.txt"

// form is what is known of the words behind a keyword.
type form struct {
	args    string           // what the next words are, one letter each
	options map[string]*form // what each later word may be, nil for nothing known
	names   map[string]bool  // of the options
	inside  what             // what the parentheses of the keyword hold: set-var(...)
	acl     bool             // a sample expression and patterns follow the arguments
}

// directives is the table of what stands where, from sections 3 to 5, 7 and 10
// to 13 of the configuration manuals of HAProxy 2.6 and 3.2. A line has a
// keyword and the letters of its arguments, then options with the letters of
// theirs, and "+" behind the last letter if more such words may follow; "@" before a
// word takes over the options of a list. Options may stand before an argument that is
// asWord. A word that the table does not have is
// asWord where the line, or the option before it, is not known either: it may be
// the value of that. So what is forgotten here has the strictest rule;
// [TestKeywords] finds what HAProxy knows and the table does not.
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
		if f.acl = len(words) > 2 && words[2] == "acl"; !f.acl {
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
