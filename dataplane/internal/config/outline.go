package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Outline is a section as `haproxy -c` judges it. It leaves out the name of a backend, and
// the names and addresses of servers. Sections that are alike have equal parts.
type Outline struct {
	Body    unique.Handle[string] // all lines but servers, comments and empty ones
	Servers []Member
	Unclear bool // servers may differ from their lines, or not all servers have a line
	Unsure  bool // a line has variables, or cannot be cut: HAProxy may read other words
	AnyFile bool // HAProxy may read any file
	AskMore bool // see asks
	Tracks  bool // a server may track another one
}

// Member is a server of an [Outline].
type Member struct {
	Name    string
	Options unique.Handle[string] // without a valid weight; see optionsText
}

// asks are words that make a configuration depend on more than a valid certificate: on an
// OCSP answer, or on a file beside it such as "a.pem.ocsp".
var asks = []string{"ocsp-update", "issuers-chain-path", "acme", "crt-store"}

// AsksMore reports whether a text has a word that makes a configuration depend on more than
// a valid certificate.
func AsksMore(text string) bool { return containsAny(text, asks) }

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// Outline returns the outline of the section. It reads the section once.
func (s *Section) Outline() *Outline {
	o := s.learnt.outline.Load()
	if o == nil {
		o = s.readOutline()
		s.learnt.outline.Store(o)
	}
	return o
}

func (s *Section) readOutline() *Outline {
	o := &outliner{rest: "\n\n"} // no rest of a line
	var body strings.Builder
	for line := range strings.Lines(s.Text) {
		text := strings.TrimLeft(line, " \t")
		switch {
		case text == "" || text[0] == '#' || text == "\n" || text == "\r\n":
		case body.Len() == 0 && s.Kind != "":
			o.words(line)
			body.WriteString(s.sameHeader(line))
		case s.hasServers() && isServer(text):
			o.addServer(line)
		default:
			o.Unclear = o.isUnclear(o.words(text), text) || o.Unclear
			body.WriteString(line)
		}
	}
	o.count(body.String())
	o.Body, o.Servers = unique.Make(body.String()), slices.Clip(o.Servers)
	outline := o.Outline
	return &outline
}

func (s *Section) hasServers() bool { return s.Kind == "backend" || s.Kind == "listen" }

func isServer(text string) bool {
	return strings.HasPrefix(text, "server ") || strings.HasPrefix(text, "server\t")
}

// words returns the words of a line. It notes whether HAProxy may read other ones.
func (o *Outline) words(line string) []string {
	words, err := haproxycfg.Fields(line)
	o.Unclear = o.Unclear || err != nil
	o.Unsure = o.Unsure || err != nil || haproxycfg.Expands(line)
	o.Tracks = o.Tracks || slices.Contains(words, "track")
	return words
}

// count notes what a text may make HAProxy read.
func (o *Outline) count(text string) {
	o.AnyFile = o.AnyFile || o.Unsure || containsAny(text, []string{"lua-load", `\x`})
	o.AskMore = o.AskMore || AsksMore(text)
}

// isUnclear reports whether a line adds servers, or changes the servers above it.
func (o *Outline) isUnclear(words []string, text string) bool {
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "server", "server-template", "use-fcgi-app": // HAProxy makes the servers of an application
		return true
	case "default-server":
		return len(o.Servers) > 0 || !strings.HasPrefix(text, words[0])
	}
	return false
}

// sameHeader returns the header with the same name for all backends.
func (s *Section) sameHeader(line string) string {
	words, err := haproxycfg.Fields(line)
	if err != nil || len(words) < 2 || !s.hasServers() || strings.ContainsAny(line, "\"'\\#\r") {
		return line
	}
	words[1] = "x"
	return strings.Join(words, " ") + "\n"
}

// outliner reads an outline. Most servers of a section have the options of the one above.
type outliner struct {
	Outline
	rest    string // behind the address of the last plain server whose options say nothing of its name
	options unique.Handle[string]
}

func (o *outliner) addServer(line string) {
	name, rest, plain := cutServer(line)
	if plain && rest == o.rest {
		o.add(Member{name, o.options})
		return
	}
	words := o.words(line)
	raw, _ := haproxycfg.RawFields(line) // quotes decide which words are variables
	if len(words) < 3 || len(raw) != len(words) {
		o.Unclear = true
		return
	}
	text := optionsText(raw)
	m := Member{words[1], unique.Make(text)}
	o.add(m)
	o.count(strings.Join(raw[3:], " "))
	if plain && !strings.Contains(text, "\nof ") {
		o.rest, o.options = rest, m.Options
	}
}

func (o *outliner) add(m Member) {
	o.Unclear = o.Unclear || slices.ContainsFunc(o.Servers, func(other Member) bool { return other.Name == m.Name })
	o.Servers = append(o.Servers, m)
}

// cutServer returns the name in a line of a server, and the text behind the address. plain says
// that the line has no quotes, comments or variables, and a usual name and address.
func cutServer(line string) (name, rest string, plain bool) {
	if strings.ContainsAny(line, "\"'\\#$") {
		return "", "", false
	}
	_, rest = CutWord(line)
	name, rest = CutWord(rest)
	address, rest := CutWord(rest)
	return name, rest, IsUsualServer(name, address)
}

// CutWord cuts off the first word of a line that has no quotes and backslashes.
func CutWord(line string) (word, rest string) {
	const blanks = " \t\r\n"
	line = strings.TrimLeft(line, blanks)
	if i := strings.IndexAny(line, blanks); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// optionsText returns the words of a server behind its address, one a line, without a valid
// weight. With options that depend on the name, the text has the name of the server. If the
// server has no usual name and address, the text is the whole line.
func optionsText(words []string) string {
	line := strings.Join(words, "\n")
	if !IsUsualServer(words[1], words[2]) {
		return line
	}
	text := "options"
	if strings.ContainsAny(line, "\"'\\") {
		text = words[1]
	}
	for i := 3; i < len(words); i++ {
		switch words[i] {
		case "id", "guid", "cookie", "track":
			text += "\nof " + words[1]
		case "weight":
			if n, err := strconv.Atoi(strings.Join(words[i+1:min(i+2, len(words))], "")); err == nil && n >= 0 && n <= 256 {
				i++
				continue
			}
		}
		text += "\n" + words[i]
	}
	return text
}

// Unique reports whether at most one server may have the options.
func (m Member) Unique() bool {
	return slices.ContainsFunc(strings.Split(m.Options.Value(), "\n"), func(word string) bool {
		return word == "id" || word == "guid" || word == "track"
	})
}

// IsUsualServer reports whether a server has a usual name, and an IP address with a port.
func IsUsualServer(name, address string) bool {
	addr, err := netip.ParseAddrPort(address)
	return err == nil && addr.Port() != 0 && addr.Addr().Zone() == "" && IsUsualName(name)
}

// IsUsualName reports whether a name has only characters that need no quotes and stand in no
// reference between two names.
func IsUsualName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r != '.' && !IsNameRune(r) })
}
