package config

import (
	"regexp"
	"slices"
	"strings"
)

// Mentions lists what a text says about things elsewhere. It is derived once for each section
// and file, and configurations share it.
type Mentions struct {
	Files   []string // words that look like the names of files, each once, sorted; see [LooksLikeFile]
	Crts    []string // the last elements of the paths after "crt"
	CAs     bool     // a ca-file may name a folder
	Issuers bool     // HAProxy reads certificates of issuers from a folder
	// Named has absolute paths and the values of ca-file, crl-file and crt. It also has
	// "track " with the server that another one tracks, and "srv " with a server in a sample
	// fetch.
	Named []string
}

// noMentions is shared by the many texts without any.
var noMentions = &Mentions{}

// LooksLikeFile reports whether a word has an extension with a letter in it.
func LooksLikeFile(word string) bool {
	_, ext := SplitExt(word)
	return strings.ContainsFunc(ext, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
}

// Mentions returns what the section says about things elsewhere.
func (s *Section) Mentions() *Mentions {
	m := s.learnt.mentions.Load()
	if m == nil {
		m = &Mentions{Files: fileWords(s.Text), Named: namedIn(s.Text)}
		for line := range strings.Lines(s.Text) {
			m.folders(line)
		}
		if len(m.Files)+len(m.Crts)+len(m.Named) == 0 && !m.CAs && !m.Issuers {
			m = noMentions
		}
		s.learnt.mentions.Store(m)
	}
	return m
}

// Mentioning returns the sections that may name a file or a folder.
func (x *Index) Mentioning() []*Section { return x.mentioning() }

func (x *Index) findMentions() (all []*Section) {
	for _, s := range x.List {
		if m := s.Mentions(); len(m.Files)+len(m.Crts) > 0 || m.CAs || m.Issuers {
			all = append(all, s)
		}
	}
	return all
}

// FileWords returns the words of a file that look like the names of files, each once
// and sorted.
func (c *Config) FileWords(i int) []string {
	m := c.facts[i].mentions.Load()
	if m == nil {
		m = &Mentions{Files: fileWords(string(c.Files[i].Content))}
		c.facts[i].mentions.Store(m)
	}
	return m.Files
}

// Words cuts a line into words of the characters that file names may have, and yields the
// place of each word.
func Words(line string, yield func(start, end int)) {
	isPart := func(c byte) bool { return c == '.' || IsNameRune(rune(c)) }
	for i := 0; i < len(line); i++ {
		start := i
		for i < len(line) && isPart(line[i]) {
			i++
		}
		if i > start {
			yield(start, i)
		}
	}
}

// IsComment reports whether a line is a comment.
func IsComment(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") }

func fileWords(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if IsComment(line) || strings.IndexByte(line, '.') < 0 {
			continue
		}
		line = Unquoted(line)
		Words(line, func(start, end int) {
			if word := line[start:end]; LooksLikeFile(word) {
				found = append(found, word)
			}
		})
	}
	slices.Sort(found)
	return slices.Clip(slices.Compact(found))
}

// folders notes the keywords of a line that may name a folder. HAProxy reads all files of
// such a folder.
func (m *Mentions) folders(line string) {
	if IsComment(line) || !strings.Contains(line, "crt") && !strings.Contains(line, "ca-") && !strings.Contains(line, "issuers") {
		return
	}
	Words(line, func(start, end int) {
		keyword, rest := line[start:end], line[end:]
		switch keyword {
		case "crt", "ca-file", "ca-verify-file":
		case "issuers-chain-path":
			m.Issuers = true
			return
		default:
			return
		}
		words := strings.Fields(rest)
		if len(words) == 0 || rest[0] != ' ' && rest[0] != '\t' {
			return
		}
		path := strings.Trim(words[0], `"'`)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if keyword == "crt" {
			m.Crts = append(m.Crts, name)
		} else {
			m.CAs = m.CAs || !strings.HasPrefix(path, "@") && !strings.Contains(name, ".")
		}
	})
}

// sampleFetch matches the sample fetches that take a server (configuration manual,
// section 7.3.3), such as srv_is_up(shop/a).
var sampleFetch = regexp.MustCompile(`srv_\w+\(([^),\s]+)`)

func namedIn(text string) (named []string) {
	if strings.Contains(text, "srv_") {
		for _, match := range sampleFetch.FindAllStringSubmatch(text, -1) {
			named = append(named, "srv "+match[1])
		}
	}
	if !strings.Contains(text, "track") && !strings.Contains(text, "/") && !strings.Contains(text, "ca-file") && !strings.Contains(text, "crl-file") &&
		!strings.Contains(text, "crt") {
		return named
	}
	previous := ""
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, `"'`)
		if previous == "track" {
			named = append(named, "track "+word)
		} else if strings.HasPrefix(word, "/") || previous == "ca-file" || previous == "crl-file" || previous == "crt" {
			named = append(named, word)
		}
		previous = word
	}
	return named
}
