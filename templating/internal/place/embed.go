package place

import (
	"regexp"
	"strings"

	"github.com/open2b/scriggo/native"
)

// embed checks the text of a macro. The macro escaped its values for a place outside quotes
// and for an unknown word. If the site has stricter rules, the text must keep those of a
// value.
func (at *Site) embed(s string) native.JSON {
	for _, r := range at.rules {
		if why := r.embeds(s, at); why != "" {
			at.refuseValue(r, s, why)
		}
	}
	return native.JSON(s)
}

func (r rule) embeds(s string, at *Site) string {
	if why := r.embedsChoice(s, at); why != "" {
		return why
	}
	if why := r.embedsMade(s, at); why != "" {
		return why
	}
	if r.place&(double|single) != 0 && strings.ContainsAny(s, "\\\"'$\n") {
		return "a macro's text with quotes, backslashes, $ or line feeds cannot stand inside quotes"
	}
	// Values behind the text are escaped for the place in the template, so the text must
	// not lead to another place.
	switch r.place {
	case argument:
		if Config.after(argument, s)&^(argument|comment) != 0 {
			return "a macro's text must close its quotes, and cannot end in a backslash"
		}
	case comment:
		if strings.Contains(s, "\n") {
			return "a macro's text with line feeds cannot stand in a comment"
		}
	case mapKey, mapValue, crtPath, crtOption, crtOptionText, crtWord, listText:
		if !at.MacroText && strings.Contains(s, "\n") {
			return "a macro's text with line feeds cannot stand in a line that began before: show the call itself"
		}
	}
	return r.embedsInside(s, at)
}

// embedsMade checks the words at both ends of the text, which may join with words beside
// it. A word that the macro writes as a whole is allowed.
func (r rule) embedsMade(s string, at *Site) string {
	words := strings.Fields(s)
	if len(words) == 0 || at.whole && len(at.shapes) == 1 && !at.Chosen {
		return ""
	}
	first, last := words[0], words[len(words)-1]
	begins, ends := strings.HasPrefix(s, first), strings.HasSuffix(s, last)
	why := ""
	switch {
	case len(words) == 1 && begins && ends && !reserved[s]:
		why = r.refusesMade(s, at, true, true)
	case len(words) > 1:
		if begins && !reserved[first] {
			why = r.refusesMade(first, at, true, false)
		}
		if ends && why == "" && !reserved[last] {
			why = r.refusesMade(last, at, false, true)
		}
	}
	if why != "" {
		return "with what stands beside the macro's text, " + why
	}
	return ""
}

// embedsChoice checks text that begins with a value. Text of the template may follow in the
// same word.
func (r rule) embedsChoice(s string, at *Site) string {
	if !at.Chosen || s == "" {
		return ""
	}
	why := ""
	if choice := readings[r.reads].choice; choice != "" {
		why = "a value cannot choose " + choice
	}
	if r.reads == asKeyword {
		word, _, more := strings.Cut(strings.NewReplacer("\t", " ", "\n", " ").Replace(strings.TrimLeft(s, " \t\n")), " ")
		if isKeyword(word) || !more && at.strict && isKeywordPart(word) {
			why = chosenLine
		}
	}
	if why != "" {
		return "the macro's text begins with a value, and " + why
	}
	return ""
}

// embedsInside checks how HAProxy reads the inside of the word.
func (r rule) embedsInside(s string, at *Site) string {
	if readings[r.reads].format && r.reads != asNameOf {
		var in inner
		for i := range len(s) {
			in.stepFormat(s[i])
		}
		if in.format != formatText {
			return "a macro's text must close what it opens in a log-format string"
		}
	}
	if reads := readings[r.reads]; strings.ContainsAny(s, strings.ReplaceAll(reads.ends, " ", "")) ||
		strings.Contains(reads.ends, " ") && strings.Contains(s, `\ `) {
		return reads.why
	}
	switch r.reads {
	case asFetch:
		var in inner
		for i := range len(s) {
			in.stepSample(s[i])
		}
		if in.sample != sampleName && in.sample != sampleEnd {
			return "a macro's text must close the parentheses of a sample expression"
		}
	case asName,
		asNameOf,
		asVariable,
		asHeader,
		asAddress,
		asListen,
		asFile,
		asMethod,
		asEnv,
		asStrict,
		asNumber,
		asURI,
		asCookie,
		asSocket,
		asAbstract,
		asTarget,
		asValue:
		return r.refuses(s, at)
	case asWord:
		if first, _, _ := strings.Cut(strings.TrimLeft(s, " \t\n"), " "); at.Chosen && !nameSet.only(strings.TrimRight(first, "\n")) {
			return "the macro's text begins with a value, and is not " + notPlain
		}
	case asRegexp:
		if r.inLine() && !at.Regexp && regexp.QuoteMeta(s) != s {
			return "a macro's text cannot stand in a regular expression"
		}
	}
	if r.reads == asQuoted && strings.ContainsAny(s, `"\`) {
		return "a macro's text with quotes or backslashes cannot stand where HAProxy puts quotes around it"
	}
	if r.arg && strings.ContainsAny(s, `,()'"\`) {
		return "a macro's text with commas, parentheses, quotes or backslashes cannot stand in an argument of a sample expression"
	}
	return ""
}
