package validate

import (
	"maps"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// digest is the part of a section's text that a Validator keeps.
type digest struct {
	kind, name string
	body       *body
	servers    []server
	refs       []sectionKey // of servers; most have none
	wrong      bool         // phase 1 finds an error in the header or in a server
	odd        bool         // the section may have servers that differ from their lines
}

// server is a line of a server, without its address if no option depends on it.
type server struct {
	name    string
	options *options
}

// body is the content of a section without its name and its servers. Sections with equal
// lines share it.
type body struct {
	text                  string
	wrong                 bool // phase 1 finds an error
	odd                   bool // it adds servers, or changes the servers above
	plain                 bool // a section with it may come and go: see [ownLines]
	disabled, conditional bool
	tables                int      // stick tables with the name of the section
	uses                  bool     // it refers to a table with the name of the section
	peers                 []string // names of tables of peers
	refs                  []sectionKey
	marks
	users int
}

// options are the options of servers; [optionsOf] makes them.
type options struct {
	text   string
	named  bool // they contain the name of the server
	unique bool // at most one server may have them
	marks
	users int
}

// marks are the references of lines to other parts of the configuration.
type marks struct {
	words   []string // all words that may be a name
	maps    []string // map files that something other than a converter of strings reads
	unsure  bool     // the lines have variables: HAProxy may read other words
	anyMap  bool     // anything may read any file
	askMore bool     // see [asks]
}

// ownLines are lines of a backend that concern no other section, and that two backends may
// share. Ids, stick tables and filters are not among them. Unknown sections of later
// versions are not among them either: this package reads their headers as lines of the
// section above.
var ownLines = setOf("acl balance compression cookie default-server dynamic-cookie-key email-alert errorfile errorfiles errorloc errorloc302 errorloc303 " +
	"force-persist fullconn hash-balance-factor hash-type http-after-response http-check http-error http-request http-response http-reuse " +
	"http-send-name-header ignore-persist log log-tag max-keep-alive-queue mode no option persist redirect retries retry-on source stick " +
	"tcp-check tcp-request tcp-response timeout use-server")

// digestOf reads one section. It copies the parts that it keeps: a substring would keep the
// whole configuration in memory.
func (x *index) digestOf(s dataplane.Section) *digest {
	d := &digest{kind: strings.Clone(s.Kind), name: strings.Clone(s.Name)}
	rest := x.buffer[:0]
	for line := range strings.Lines(s.Text) {
		text := strings.TrimLeft(line, " \t")
		switch {
		case text == "" || text[0] == '#' || text == "\n" || text == "\r\n":
		case len(rest) == 0 && s.Kind != "":
			rest = append(rest, d.header(line)...)
		case hasServers(s.Kind) && (strings.HasPrefix(text, "server ") || strings.HasPrefix(text, "server\t")):
			x.addServer(d, line)
		default:
			d.odd = d.odd || len(d.servers) > 0 && strings.HasPrefix(text, "default-server")
			rest = append(rest, line...)
		}
	}
	x.buffer = rest
	d.body = x.bodyOf(s.Kind, rest)
	if d.body.disabled {
		d.refs = nil
	}
	return d
}

func hasServers(kind string) bool { return kind == "backend" || kind == "listen" }

// header checks the line, and returns it with the same name for all backends.
func (d *digest) header(line string) string {
	d.wrong = len(haproxycfg.Parse(haproxycfg.Section{Kind: d.kind, Line: 1, Header: 1, Text: line})) > 0
	words, err := haproxycfg.Fields(line)
	if err != nil || len(words) < 2 || !hasServers(d.kind) || strings.ContainsAny(line, "\"'\\#\r") {
		return line
	}
	words[1] = "x"
	return strings.Join(words, " ") + "\n"
}

// addServer notes the line of a server.
func (x *index) addServer(d *digest, line string) {
	name, rest, plain := cutServer(line)
	if o := x.lines[rest]; plain && o != nil {
		d.addServer(name, o)
		return
	}
	words, err := haproxycfg.Fields(line)
	if err != nil || len(words) < 3 {
		d.odd, d.wrong = true, d.wrong || err != nil
		return
	}
	o, refs := x.optionsOf(line, words), referencesOf(0, words)
	d.addServer(words[1], o)
	for _, r := range refs {
		d.refs = append(d.refs, sectionKey{r.kind, strings.Clone(r.name)})
	}
	if plain && len(refs) == 0 && !o.named {
		x.lines[strings.Clone(rest)] = o
	}
}

func (d *digest) addServer(name string, o *options) {
	d.odd = d.odd || slices.ContainsFunc(d.servers, func(s server) bool { return s.name == name })
	d.servers = append(d.servers, server{strings.Clone(name), o})
}

// cutServer returns the name in a line of a server and the text behind the address. plain
// says that the line has no quotes, comments or variables, and a usual name and address.
func cutServer(line string) (name, rest string, plain bool) {
	if strings.ContainsAny(line, "\"'\\#$") {
		return "", "", false
	}
	next := func(text string) (word, rest string) {
		text = strings.TrimLeft(text, " \t")
		if i := strings.IndexAny(text, " \t\r\n"); i >= 0 {
			return text[:i], text[i:]
		}
		return text, ""
	}
	_, rest = next(line)
	name, rest = next(rest)
	address, rest := next(rest)
	return name, rest, isPlain(name, address)
}

// optionsOf returns the options of a server. Servers with equal options share them.
func (x *index) optionsOf(line string, words []string) *options {
	raw, _ := haproxycfg.RawFields(line) // quotes decide which words are variables
	text, rest := optionsOf(raw)
	if known := x.options[text]; known != nil {
		return known
	}
	text = strings.Clone(text)
	o := &options{text: text, marks: marksOf(strings.Join(rest, " ")+"\n", false)}
	o.unsure, o.anyMap = o.unsure || haproxycfg.Expands(line), o.anyMap || haproxycfg.Expands(line)
	o.named = !strings.HasPrefix(text, noOptions) || strings.Contains(text, "\nof ")
	o.unique = slices.ContainsFunc(words, func(word string) bool { return word == "id" || word == "guid" || word == "track" })
	x.options[text] = o
	return o
}

// bodyOf returns the body of lines.
func (x *index) bodyOf(kind string, lines []byte) *body {
	if known := x.bodies[string(lines)]; known != nil {
		return known
	}
	text := string(lines)
	b := &body{text: text, plain: kind == "backend", marks: marksOf(text, kind != "")}
	x.bodies[text] = b
	if text == "" { // comments before the first section
		return b
	}
	p := parseSection(text)
	b.wrong, b.disabled, b.conditional = len(p.findings) > 0, p.disabled, p.conditional
	for _, table := range p.tables {
		if hasServers(kind) || kind == "frontend" {
			b.tables++
		} else {
			b.peers = append(b.peers, table)
		}
	}
	for _, r := range p.refs {
		switch {
		case p.skips(r):
		case r.kind == "table" && r.name == "":
			b.uses = true
		default:
			b.refs = append(b.refs, sectionKey{r.kind, r.name})
		}
	}
	b.readLines(kind)
	return b
}

// readLines finds the lines that set odd, or clear plain.
func (b *body) readLines(kind string) {
	for line := range strings.Lines(b.text) {
		words, err := haproxycfg.Fields(line)
		switch {
		case err != nil:
			b.odd, b.plain = true, false
		case len(words) == 0 || words[0] == kind:
		case words[0] == "server" || words[0] == "server-template" || words[0] == "use-fcgi-app", // HAProxy makes its servers
			words[0] == "default-server" && !strings.HasPrefix(strings.TrimLeft(line, " \t"), words[0]):
			b.odd, b.plain = true, false
		case !ownLines[words[0]]:
			b.plain = false
		}
	}
}

// quotes removes quotes and backslashes.
var quotes = strings.NewReplacer(`"`, "", "'", "", `\`, "")

// marksOf reads the marks of lines. The name in a header is not a reference.
func marksOf(text string, header bool) marks {
	m := marks{askMore: containsAny(text, asks)}
	words := map[string]bool{}
	for line := range strings.Lines(text) {
		fields, err := haproxycfg.Fields(line)
		m.unsure = m.unsure || err != nil || haproxycfg.Expands(line)
		for i, field := range fields {
			if header && i == 1 {
				continue
			}
			for _, text := range []string{field, quotes.Replace(field)} { // nbsrv("b""c") names bc
				for word := range strings.FieldsFuncSeq(text, partsNames) {
					words[word] = true
				}
			}
		}
		header = header && len(fields) == 0
	}
	m.words = slices.Collect(maps.Keys(words))
	others := notByStringMaps(text)
	m.anyMap = others == nil
	for name, other := range others {
		if other {
			m.maps = append(m.maps, name)
		}
	}
	return m
}
