package place

import (
	"fmt"
	"slices"
	"strings"
)

// reserved are the words with a meaning wherever HAProxy finds them alone, quoted or not.
var reserved = map[string]bool{"if": true, "unless": true, "or": true, "||": true, "{": true, "}": true, "!": true}

// braces has the word that ends the patterns of an ACL, flags has the options before the
// patterns.
var (
	braces = map[string]bool{"}": true}
	flags  = wordSet("-f -i -m -n -M -u --")
)

var ( // constant in effect: Go has no array constants
	argumentSet  = setOf(` #"'\`)
	doubleSet    = setOf(`"\$`)
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	nameSet      = setOf(alphanumeric + "-_.:") // invalid_char of HAProxy
	sniSet       = setOf(alphanumeric + "-_.:*")
	variableSet  = setOf(alphanumeric + "_.")
	headerSet    = setOf(alphanumeric + "!#$%&'*+-.^_`|~") // RFC 9110, section 5.6.2
	addressSet   = setOf(alphanumeric + "-_.:[]*%")
	socketSet    = setOf(alphanumeric + "-_./")                         // without a colon: two values could make a port
	cookieSet    = setOf(alphanumeric + "!#$%&'()*+-./:<=>?@[]^_`{|}~") // RFC 6265, section 4.1.1
	base64Set    = setOf(alphanumeric + "+/=")
	numberSet    = setOf(alphanumeric + ".")
	wordSpecials = setOf("%(),")
	argSpecials  = setOf(`,()'"\ `)
	quoteSpecial = setOf(`"\`)
)

// operators are words that HAProxy reads as operators between numbers, not as patterns
// (section 7.1.2).
var operators = map[string]bool{"eq": true, "ge": true, "gt": true, "le": true, "lt": true}

// maxHeader is the longest name of a header: HTX has a byte for its length.
const maxHeader = 255

// chosenLine is the message for a value that would be the keyword of a line. With any other
// value there HAProxy rejects the line.
const chosenLine = "a value cannot choose what a line is: use if or switch, or raw"

// refuses says why the value cannot stand at the site, "" if it can.
func (r rule) refuses(s string, at *Site) string {
	reads := &readings[r.reads]
	if reads.choice != "" && s != "" {
		return "a value cannot choose " + reads.choice
	}
	if s == "" && r.named && at.lone {
		return "with an empty value here HAProxy takes all that there are, or another one: test it with if"
	}
	if r.word && (at.whole || at.joined) {
		if why := r.refusesWhole(s, at); why != "" {
			return why
		}
	}
	if why := r.refusesMade(s, at, true, true); why != "" {
		return why
	}
	switch r.reads {
	case asKeyword:
		if isKeyword(s) || at.strict && isKeywordPart(s) {
			return chosenLine
		}
	case asUnknown:
		return r.refusesUnknown(s)
	case asPattern, asRegexp, asValue:
		if r.word && !r.arg && r.inLine() && strings.HasPrefix(s, "-") {
			return "HAProxy would read it as a flag: write -- before the first pattern"
		}
	case asFile:
		return r.refusesFile(s)
	case asCRTOption:
		if strings.Trim(s, "0123456789") != "" && isOptionPart(s) {
			return "a value cannot choose an option: use if or switch, or raw"
		}
	case asAddress, asListen:
		return refusesAddress(s)
	case asHeader:
		if len(s) > maxHeader {
			return fmt.Sprintf("the name of a header has %d bytes, HAProxy takes at most %d: shorten it", len(s), maxHeader)
		}
	case asNumber:
		if !isQuantity(s) {
			return "not a number, a size or a time: HAProxy would read it as a sample expression"
		}
	case asAuth:
		return r.refusesAuth(s, at)
	case asSocket, asAbstract, asTarget:
		if why := r.refusesSocket(s); why != "" {
			return why
		}
	case asOperand:
		if r.lead && !isInteger(s) {
			return "not a number: HAProxy would read it as the name of a variable"
		}
		return refusesVariable(s, r)
	case asVariable:
		if why := refusesVariable(s, r); why != "" {
			return why
		}
	}
	return r.refusesCharacters(s)
}

// refusesCharacters refuses a value with characters that have a meaning in its place.
func (r rule) refusesCharacters(s string) string {
	reads := &readings[r.reads]
	switch {
	case reads.ends != "" && strings.ContainsAny(s, reads.ends):
		return reads.why
	case reads.chars != nil && !reads.chars.only(s):
		if r.place == plain {
			return "the name of this file does not show how HAProxy reads it, and a value can have only letters, digits and -_.: here: name the file *.cfg, *.map, *_reg.map, *.lst, *_lf.html or the like, or use raw"
		}
		if r.key != "" {
			return fmt.Sprintf("behind %q, not %s", r.key, reads.wanted)
		}
		return "not " + reads.wanted
	}
	return ""
}

// refusesVariable refuses a variable of the process: its name would begin with the value.
func refusesVariable(s string, r rule) string {
	const scope = "proc."
	if r.lead && s != "" && (strings.HasPrefix(s, scope) || strings.HasPrefix(scope, s)) {
		return "a value cannot choose a variable of the process: write its scope before it"
	}
	return ""
}

// isInteger reports whether a value is a whole number, as HAProxy reads one.
func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// refusesWhole checks a value that is a word of its own, alone or with other values.
func (r rule) refusesWhole(s string, at *Site) string {
	switch {
	case s == "" && r.reads == asComment:
		return ""
	case s == "" && !r.bare && at.whole && r.place != argument:
		return "HAProxy takes an empty argument for the end of its line, and leaves out what stands behind it: test it with if"
	case s == "" && at.whole && r.negated:
		return "with an empty value here the next word would take its place: test it with if"
	case s == "" && (!r.bare || r.reads == asOption || r.reads == asUnknown || r.reads == asKeyword):
		return ""
	case s == "" && at.whole:
		return "with an empty value here the next word would take its place: test it with if"
	case s == "":
		return "with an empty value here and behind it the next word would take its place: join the values, {{ a + b }}"
	case at.whole && r.reads == asUnknown && isKeyword(s):
		return chosenLine
	}
	return ""
}

// refusesMade checks the word that the value makes with its neighbours: text of the
// template and other values. before and behind say which neighbours count.
func (r rule) refusesMade(s string, at *Site, before, behind bool) string {
	if !r.inLine() || r.arg || len(at.shapes) == 0 {
		return ""
	}
	made := func(words map[string]bool, s string, behind bool) bool {
		return slices.ContainsFunc(at.shapes, func(word shape) bool { return word.makes(at.id, s, words, before, behind) })
	}
	pattern := r.reads == asPattern || r.reads == asLater || r.reads == asRegexp
	flag := r.reads == asPattern || r.reads == asRegexp || r.reads == asValue
	switch {
	case !pattern && !readings[r.reads].text && made(reserved, s, behind), pattern && made(braces, s, behind):
		return "HAProxy reads this word as a part of a condition"
	case flag && made(flags, s, behind):
		return "HAProxy would read it as a flag: write -- before the first pattern"
	case r.numeric && made(operators, s, behind):
		return "HAProxy reads this word as an operator between numbers: if it is text, write -m str before the first pattern"
	case r.form != nil && made(r.form.names, s, behind):
		return "HAProxy reads this word as an option"
	}
	if r.cast {
		if name, full := converterName(s); made(converters, name, behind && full) {
			return "HAProxy reads this word as a converter: write -- before the first pattern"
		}
	}
	return ""
}

func (r rule) refusesUnknown(s string) string {
	switch {
	case wordSpecials.any(s):
		return "HAProxy may give %, commas and parentheses a meaning here: use raw if it does not"
	case r.word && strings.HasPrefix(s, "-"):
		return "HAProxy may read it as a flag"
	}
	return ""
}

// refusesAuth refuses an empty name or password, and a colon in the name.
func (r rule) refusesAuth(s string, at *Site) string {
	switch {
	case s == "":
		return "with an empty value here anybody may have the name or the password: test it with if"
	case r.first && (at.joined || !at.whole) && strings.Contains(s, ":"):
		return "a colon would end the name of the user"
	}
	return ""
}

// refusesAddress refuses an empty value, a range of ports, and a port relative to the
// client's.
func refusesAddress(s string) string {
	port := s[strings.LastIndexByte(s, ':')+1:]
	from, to, isRange := strings.Cut(port, "-")
	switch {
	case s == "": // "server s :80" connects to the client's destination address, "bind :80" listens on all addresses
		return "with an empty value here HAProxy takes another address or port: test it with if, or join the values, {{ a + b }}"
	case strings.HasPrefix(s, "-") || strings.Contains(s, ":-") || s == "." || strings.Contains(s, "..") || !addressSet.only(s):
		return "not a host, an IP address or a port"
	case isRange && strings.Trim(from+to, "0123456789") == "":
		return "a range of ports: use raw"
	}
	return ""
}

// refusesSocket refuses what is not the absolute path of a socket, or a part of a path or a name.
func (r rule) refusesSocket(s string) string {
	switch {
	case r.reads == asTarget && r.first:
		return "a value cannot choose the socket: write a part of it as text, unix@/run/apps/{{ name }}, or use raw"
	case r.reads == asSocket && r.first && !r.word && s != "" && !strings.HasPrefix(s, "/"):
		return "not the absolute path of a socket, such as /run/app.sock"
	}
	return r.refusesFile(s)
}

// isQuantity reports whether a value begins with a digit and has only letters, digits and
// dots. No sample fetch begins with a digit, or is empty.
func isQuantity(s string) bool {
	return s == "" || s[0] >= '0' && s[0] <= '9' && numberSet.only(s)
}

// refusesFile refuses "..", an empty value, and special characters of paths. A value inside
// a path can only be one name.
func (r rule) refusesFile(s string) string {
	for _, part := range strings.Split(s, "/") {
		if part == ".." {
			return ".. leads out of the folder"
		}
	}
	switch {
	case s == "": // "crt /certs/" loads the whole folder, "/a.pem" is in another folder
		return "with an empty value here it is another path: test it with if, or join the values, {{ a + b }}"
	case !r.first && (strings.Contains(s, "/") || strings.Contains(s, "..") || s == "."):
		return "it stands in a path, and can only be a name in it"
	case r.first && (strings.HasPrefix(s, "@") || strings.HasPrefix(s, "-")):
		return "not the path of a file"
	case strings.ContainsAny(s, "()$"):
		return "not the path of a file"
	}
	return ""
}

// inLine reports whether the value stands in a line of a configuration.
func (r rule) inLine() bool { return r.place&(argument|double|single) != 0 }

// isOptionPart reports whether a text is a part of an option of a certificate.
func isOptionPart(text string) bool {
	for option := range directives["bind"].names {
		if strings.Contains(option, text) {
			return true
		}
	}
	return false
}

func (r rule) String() string {
	if r.inLine() {
		if name := readings[r.reads].name; name != "" {
			return name
		}
		if r.arg {
			return "an argument of a sample expression"
		}
	}
	return r.place.String()
}
