package place

import (
	_ "embed"
	"slices"
	"strings"
)

// keywords are the words that begin a line of a configuration of HAProxy 2.6 and 3.2. Their
// sources are sections 3 and 4.1 of the manuals, and haproxy -dKcfg. If a word is neither
// here nor in the table of directives, HAProxy rejects its line.
var keywords = wordSet(keywordList)

//go:embed keywords.txt
var keywordList string

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// isKeyword reports whether HAProxy knows a line that begins with the word.
func isKeyword(word string) bool { return keywords[word] || directives[word] != nil }

// isKeywordPart reports whether a keyword contains the text. Digits alone choose none.
func isKeywordPart(text string) bool {
	if strings.Trim(text, "0123456789") == "" {
		return false
	}
	for word := range keywords {
		if strings.Contains(word, text) {
			return true
		}
	}
	for word := range directives {
		if strings.Contains(word, text) {
			return true
		}
	}
	return false
}

// converters are the names of all converters of HAProxy 2.6 and 3.2 (haproxy -dKcnv). If a
// word behind a sample expression begins with such a name, HAProxy reads it as the next
// converter. It would read a pattern in this way too.
var converters = wordSet(converterList)

//go:embed converters.txt
var converterList string

// samples says how HAProxy reads the arguments of fetches and converters.
var samples = parseSamples(sampleTable)

//go:embed samples.txt
var sampleTable string

// sampleArgs has the letters of directives.txt by name, and by the beginnings of names.
type sampleArgs struct {
	exact  map[string]string
	begins []string // longer ones first
}

func parseSamples(table string) sampleArgs {
	args := sampleArgs{exact: map[string]string{}}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		for _, name := range words[1:] {
			args.exact[name] = words[0]
			if strings.HasSuffix(name, "*") {
				args.begins = append(args.begins, name)
			}
		}
	}
	slices.SortFunc(args.begins, func(a, b string) int { return len(b) - len(a) })
	return args
}

func (a sampleArgs) of(name string) string {
	if letters, ok := a.exact[name]; ok {
		return letters
	}
	for _, begin := range a.begins {
		if strings.HasPrefix(name, begin[:len(begin)-1]) {
			return a.exact[begin]
		}
	}
	return ""
}

// aclKeywords are the fetches that are keywords of ACLs too (haproxy -dKacl). Behind one of
// them HAProxy reads no converter.
var aclKeywords = wordSet(aclKeywordList)

//go:embed aclkeywords.txt
var aclKeywordList string

// stringFetches are fetches and converters whose patterns are not numbers. stringEnds has
// the ends of more such names.
var stringFetches = wordSet(`
base body_param cook field fhdr hdr host_only http_auth_group lower map method path pathq payload query req.body req.body_param req.cook req.fhdr
req.hdr req.payload req.ssl_sni req_ssl_sni res.cook res.fhdr res.hdr scook shdr src dst ssl_fc_alpn ssl_fc_sni ssl_c_s_dn ssl_c_i_dn str upper
uri url url_dec url_param urlp word
`)

var stringEnds = []string{"_beg", "_dir", "_dom", "_end", "_ip", "_reg", "_str", "_sub"} // constant in effect

func givesString(fetch string) bool {
	return stringFetches[fetch] || slices.ContainsFunc(stringEnds, func(end string) bool { return strings.HasSuffix(fetch, end) })
}

// isConverter reports whether HAProxy would take a word for a converter.
func isConverter(s string) bool {
	name, _ := converterName(s)
	return converters[name]
}

// converterName returns the part of a word in which HAProxy looks for the name of a
// converter. full reports that it is the whole word.
func converterName(s string) (name string, full bool) {
	end := 0
	for end < len(s) && nameSet.has(s[end]) {
		end++
	}
	return s[:end], end == len(s)
}
