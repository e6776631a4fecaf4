package place

import "strings"

// reserved are the words that mean something wherever HAProxy finds them as
// words of their own, quoted or not.
var reserved = map[string]bool{"if": true, "unless": true, "or": true, "||": true, "{": true, "}": true, "!": true}

var ( // constant in effect: Go has no array constants
	argumentSet  = setOf(` #"'\`)
	doubleSet    = setOf(`"\$`)
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	nameSet      = setOf(alphanumeric + "-_.:") // invalid_char of HAProxy
	variableSet  = setOf(alphanumeric + "_.")
	headerSet    = setOf(alphanumeric + "!#$%&'*+-.^_`|~") // RFC 9110, section 5.6.2
	addressSet   = setOf(alphanumeric + "-_.:[]*%")
	cookieSet    = setOf(alphanumeric + "!#$%&'()*+-./:<=>?@[]^_`{|}~") // RFC 6265, section 4.1.1
	strictSet    = setOf(alphanumeric + "-_.:/*@+=~")
	numberSet    = setOf(alphanumeric + ".")
	wordSpecials = setOf("%(),")
	argSpecials  = setOf(`,()'"\ `)
	quoteSpecial = setOf(`"\`)
)

// operators are words that HAProxy takes for one between numbers, and not for a
// pattern (section 7.1.2).
var operators = map[string]bool{"eq": true, "ge": true, "gt": true, "le": true, "lt": true}

// maxHeader is the longest name of a header: HTX has a byte for its length.
const maxHeader = 255

// isReservedPart reports whether a word that means something by itself may be
// made of a value and others beside it.
func isReservedPart(s string, reserved map[string]bool) bool {
	for word := range reserved {
		if strings.Contains(word, s) {
			return true
		}
	}
	return false
}

// chosenLine is said of a value that would be the keyword of a line. Another
// one makes a line that HAProxy does not accept.
const chosenLine = "a value cannot choose what a line is: use if or switch, or raw"

// refuses says why the value cannot stand where it would, whatever stands
// around it in its line.
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
	switch r.reads {
	case asKeyword:
		if isKeyword(s) || at.strict && isKeywordPart(s) {
			return chosenLine
		}
	case asUnknown, asWord:
		return r.refusesWord(s)
	case asPattern, asRegexp, asValue:
		if r.word && !r.arg && strings.HasPrefix(s, "-") {
			return "HAProxy would read it as a flag: write -- before the first pattern"
		}
	case asFile:
		return r.refusesFile(s)
	case asAddress:
		return refusesAddress(s)
	case asHeader:
		if len(s) > maxHeader {
			return "HAProxy has no names of headers that are so long"
		}
	case asNumber:
		if !isQuantity(s) {
			return "not a number, a size or a time: HAProxy would read it as a sample expression"
		}
	case asAuth:
		return r.refusesAuth(s, at)
	case asSocket:
		if r.first && !strings.HasPrefix(s, "/") && strings.Contains(s, ":") {
			return "an address in place of the path of a socket"
		}
		return r.refusesFile(s)
	case asVariable:
		const scope = "proc."
		if r.lead && s != "" && (strings.HasPrefix(s, scope) || strings.HasPrefix(scope, s)) {
			return "a value cannot choose a variable of the process: write its scope before it"
		}
	}
	switch {
	case reads.ends != "" && strings.ContainsAny(s, reads.ends):
		return reads.why
	case reads.chars != nil && !reads.chars.only(s):
		return "not " + reads.wanted
	}
	return ""
}

// refusesWhole is about a value that is a word of its own, or may be with others
// beside it.
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
	case at.whole && reserved[s] && r.isCondition(s), at.joined && isReservedPart(s, reserved) && r.isCondition(s):
		return "HAProxy reads this word as a part of a condition"
	case r.cast && (at.whole && isConverter(s) || at.joined && isReservedPart(s, converters)):
		return "HAProxy reads this word as a converter: write -- before the first pattern"
	case r.numeric && (at.whole && operators[s] || at.joined && isReservedPart(s, operators)):
		return "HAProxy reads this word as an operator: write -m str before the first pattern, if it is none of a number"
	case at.whole && r.reads == asUnknown && isKeyword(s):
		return chosenLine
	}
	return ""
}

// isCondition reports whether a reserved word means something where it stands.
func (r rule) isCondition(s string) bool {
	switch r.reads {
	case asPattern, asLater, asRegexp:
		return s == "}" && !r.arg
	}
	return !readings[r.reads].text
}

func (r rule) refusesWord(s string) string {
	switch {
	case wordSpecials.any(s):
		return "HAProxy may read %, commas and parentheses here, and how is not known: use raw if it does not"
	case r.reads == asUnknown && r.word && strings.HasPrefix(s, "-"):
		return "HAProxy may read it as a flag"
	}
	return ""
}

// refusesAuth keeps both the name and the password of a user in their places.
func (r rule) refusesAuth(s string, at *Site) string {
	switch {
	case s == "":
		return "with an empty value here anybody may have the name or the password: test it with if"
	case r.first && (at.joined || !at.whole) && strings.Contains(s, ":"):
		return "a colon would end the name of the user"
	}
	return ""
}

// refusesAddress keeps a value from being nothing, several ports, or one that is
// counted from that of the client.
func refusesAddress(s string) string {
	port := s[strings.LastIndexByte(s, ':')+1:]
	from, to, isRange := strings.Cut(port, "-")
	switch {
	case s == "": // "server s :80" is the address that the client asked for, "bind :80" all there are
		return "with an empty value here HAProxy takes another address or port: test it with if, or join the values, {{ a + b }}"
	case strings.HasPrefix(s, "-") || strings.Contains(s, ":-") || !addressSet.only(s):
		return "not a host, an IP address or a port"
	case isRange && strings.Trim(from+to, "0123456789") == "":
		return "a range of ports: use raw"
	}
	return ""
}

// isQuantity reports whether a value begins with a digit, as no sample fetch does,
// and has letters and digits only. An empty value cannot be a sample fetch.
func isQuantity(s string) bool {
	return s == "" || s[0] >= '0' && s[0] <= '9' && numberSet.only(s)
}

// refusesFile keeps a value that is a part of a path to one name, and any value
// from leading up, or nowhere.
func (r rule) refusesFile(s string) string {
	for _, part := range strings.Split(s, "/") {
		if part == ".." {
			return ".. leads out of the folder"
		}
	}
	switch {
	case s == "": // "crt /certs/" is all that lies there, "/a.pem" another folder
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

func (r rule) String() string {
	if r.place&(argument|double|single) != 0 {
		if name := readings[r.reads].name; name != "" {
			return name
		}
		if r.arg {
			return "an argument of a sample expression"
		}
	}
	return r.place.String()
}
