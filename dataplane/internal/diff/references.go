package diff

import (
	"iter"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// usage says how a configuration refers to a file.
type usage struct {
	mapped  bool // by a map converter, or an ACL that reads a map
	ordered bool // by a converter that takes the first entry that matches
	crt     bool // by "crt"
	inList  bool // in a crt-list
	list    bool // by "crt-list"
	other   bool // in any other way

	patterns bool // by an ACL that reads patterns
	ca       bool // by "ca-file" or "ca-verify-file"
}

func (u usage) any() bool      { return u != usage{} && u != usage{ordered: true} }
func (u usage) onlyList() bool { return u.inList && !u.crt && !u.other }

// references knows where a configuration speaks of some files.
type references struct {
	texts   []referrer // the main text first
	folder  bool       // a bind line may read all certificates of a folder
	cas     bool       // a ca-file may be a folder
	issuers bool       // certificates of issuers are read from a folder
}

// referrer is a text that can refer to files.
type referrer struct {
	kind   config.FileKind // of the file; "" for the main text
	text   string
	places map[string][]int // by the name of a file
	loose  map[string]bool  // files that HAProxy may read without their full name
}

// findReferences looks for the names of files, in the text and in the files
// that can refer to others. It looks for all names at once, so that the cost
// does not depend on how many there are.
func findReferences(c *config.Config, names map[string]bool) *references {
	r := &references{
		folder:  loadsFolder(c),
		cas:     namesFolderAfter(c, "ca-file") || namesFolderAfter(c, "ca-verify-file"),
		issuers: strings.Contains(c.Main, "issuers-chain-path"),
	}
	beside := namesBeside(names)
	add := func(kind config.FileKind, text string) {
		places, loose := findNames(text, names, beside)
		r.texts = append(r.texts, referrer{kind, text, places, loose})
	}
	add("", c.Main)
	for _, f := range c.Files {
		if f.Kind == config.CRTList || f.Kind == config.General {
			add(f.Kind, string(f.Content))
		}
	}
	return r
}

// findNames returns where in the text the names stand as whole words, comments
// excepted. A path is written as the template pleases, so any folder before
// the name will do: a reference too many is harmless.
func findNames(text string, names map[string]bool, beside map[string][]string) (found map[string][]int, loose map[string]bool) {
	found, loose = make(map[string][]int), make(map[string]bool)
	isPart := func(c byte) bool { return c == '.' || config.IsNameRune(rune(c)) }
	for i := 0; i < len(text); i++ {
		if !isPart(text[i]) {
			continue
		}
		start := i
		for i < len(text) && isPart(text[i]) {
			i++
		}
		name := text[start:i]
		if names[name] && !inComment(text, start) {
			found[name] = append(found[name], start)
		}
		if len(beside) > 0 {
			stem, _ := config.SplitExt(name)
			for _, other := range beside[stem] {
				loose[other] = loose[other] || other != name && !inComment(text, start)
			}
		}
	}
	return found, loose
}

// namesBeside lists, by the name without its extension, the files that HAProxy
// reads along with one of that name (configuration manual,
// "ssl-load-extra-files"), and modules of Lua.
func namesBeside(names map[string]bool) map[string][]string {
	beside := make(map[string][]string)
	for name := range names {
		switch stem, ext := config.SplitExt(name); ext {
		case ".rsa", ".ecdsa", ".dsa", ".key", ".ocsp", ".issuer", ".sctl", ".lua":
			beside[stem] = append(beside[stem], name)
		}
	}
	return beside
}

func inComment(text string, at int) bool {
	return strings.HasPrefix(strings.TrimLeft(lineBefore(text, at), " \t"), "#")
}

// lineBefore returns the line at a place, up to there.
func lineBefore(text string, at int) string {
	return text[strings.LastIndexByte(text[:at], '\n')+1 : at]
}

// of says how the configuration refers to a file.
func (r *references) of(f config.File) usage {
	var refs usage
	refs.other = r.cas && f.Kind == config.CA || r.issuers && f.Kind != config.Map && f.Kind != config.CRTList
	for _, from := range r.texts {
		refs.other = refs.other || from.loose[f.Name]
		for _, at := range from.places[f.Name] {
			before, previous := leadOf(from.text, at)
			switch {
			case from.kind == "" && f.Kind != config.Certificate && f.Kind != config.CRTList && !isAbsolute(from.text, at):
				refs.other = true // the commands would know the file by another path
			case from.kind == "":
				refs.inMain(f.Kind, lineBefore(from.text, at), before, previous)
			case from.kind == config.CRTList && f.Kind == config.Certificate && previous == "" && before == "":
				refs.inList = true
			default:
				refs.other = true
			}
		}
	}
	return refs
}

// inMain notes a place in the main text.
func (u *usage) inMain(kind config.FileKind, lead, before, previous string) {
	converter, isCall := callOf(before)
	isBundle := (kind == config.CA || kind == config.General) && before == ""
	switch {
	case previous == "crt" && kind == config.Certificate:
		u.crt = true
	case previous == "crt-list" && kind == config.CRTList:
		u.list = true
	case kind == config.Map && isCall && strings.HasPrefix(converter, "map"):
		u.mapped = true
		u.ordered = u.ordered || !unorderedMap(converter)
	case kind == config.Map && previous == "-f" && strings.Contains(lead, " -M "):
		u.mapped = true
	case kind == config.General && previous == "-f" && before == "" && !strings.Contains(lead, " -M "):
		u.patterns = true
	case isBundle && (previous == "ca-file" || previous == "ca-verify-file"):
		u.ca = true
	default:
		u.other = true
	}
}

// unorderedMap reports the converters that look their key up in a tree, where
// the order of the entries means nothing (configuration manual, "map").
func unorderedMap(converter string) bool {
	for _, tree := range []string{"map_str", "map_beg", "map_ip"} {
		if converter == tree || strings.HasPrefix(converter, tree+"_") {
			return true
		}
	}
	return converter == "map"
}

// callOf returns the function in whose brackets a path stands: "map_beg" for
// "%[path,map_beg(".
func callOf(before string) (name string, ok bool) {
	before, ok = strings.CutSuffix(strings.TrimRight(before, `"'\`), "(")
	if !ok {
		return "", false
	}
	start := strings.LastIndexFunc(before, func(r rune) bool { return !config.IsNameRune(r) }) + 1
	return before[start:], true
}

// isAbsolute reports whether the path whose last element starts at a place is
// absolute.
func isAbsolute(text string, at int) bool {
	lead := lineBefore(text, at)
	return strings.HasPrefix(lead[strings.LastIndexAny(lead, " \t\"'(,=@")+1:], "/")
}

// leadOf returns what stands before a path within its word, and the word before
// that; at is where the last element of the path starts.
func leadOf(text string, at int) (before, previous string) {
	lead := lineBefore(text, at)
	path := strings.LastIndexAny(lead, " \t\"'(,=@") + 1
	word := strings.LastIndexAny(lead[:path], " \t") + 1
	if words := strings.Fields(lead[:word]); len(words) > 0 {
		previous = words[len(words)-1]
	}
	return strings.TrimLeft(lead[word:path], `"'`), previous
}

// loadsFolder reports whether a bind line may read all certificates of a
// folder: whether a "crt" is followed by what is no certificate of the
// configuration.
func loadsFolder(c *config.Config) bool {
	for word := range wordsAfter(c.Main, "crt") {
		if _, ok := c.File(config.Certificate, word[strings.LastIndexByte(word, '/')+1:]); !ok {
			return true
		}
	}
	return false
}

// namesFolderAfter reports whether a keyword is followed by a path whose last
// element has no extension.
func namesFolderAfter(c *config.Config, keyword string) bool {
	for word := range wordsAfter(c.Main, keyword) {
		if !strings.HasPrefix(word, "@") && !strings.Contains(word[strings.LastIndexByte(word, '/')+1:], ".") {
			return true
		}
	}
	return false
}

// wordsAfter goes through the words that follow a keyword, without quotes.
func wordsAfter(text, keyword string) iter.Seq[string] {
	blank := func(c byte) bool { return c == ' ' || c == '\t' }
	return func(yield func(string) bool) {
		for at := 0; ; {
			i := strings.Index(text[at:], keyword)
			if i < 0 {
				return
			}
			start := at + i
			at = start + len(keyword)
			if start == 0 || !blank(text[start-1]) || at == len(text) || !blank(text[at]) {
				continue
			}
			fields := strings.Fields(firstLine(text[at:]))
			if len(fields) > 0 && !yield(strings.Trim(fields[0], `"'`)) {
				return
			}
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
