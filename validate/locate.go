package validate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// locator finds the line of a message of haproxy. It splits the text once, because there
// may be as many messages as lines.
type locator struct {
	layout   dataplane.Layout
	cfg      *dataplane.Config
	sections []haproxycfg.Section
	lines    []string
	files    map[string]dataplane.Position // by their paths
}

func newLocator(layout dataplane.Layout, cfg *dataplane.Config) *locator {
	l := &locator{layout: layout, cfg: cfg, sections: haproxycfg.Split(cfg.Main()), files: map[string]dataplane.Position{}}
	l.lines = slices.Collect(strings.Lines(cfg.Main()))
	for _, f := range cfg.Files() {
		l.files[layout.Path(f.Kind, f.Name)] = dataplane.Position{Kind: f.Kind, Name: f.Name}
	}
	return l
}

var (
	// "at line 3 of file '/etc/haproxy/maps/x.map'"
	ofFile = regexp.MustCompile(`line (?P<line>\d+) of (?:file )?'?(?P<file>/[^\s':]+)'?`)
	// "processing line 2 in file '/etc/haproxy/general/certificates.txt'"
	inFile = regexp.MustCompile(`line (?P<line>\d+) in (?:file )?'?(?P<file>/[^\s':]+)'?`)
	// "parsing [/etc/haproxy/haproxy.cfg:12] : "
	bracketed = regexp.MustCompile(`\[(?P<file>/[^\]\[:]+):(?P<line>\d+)\]`)

	// "proxy 'web'", "backend 'shop', server 's1'"
	inProxy = regexp.MustCompile(`(?i)\b(proxy|frontend|backend|listen|peers|resolvers|userlist|mailers|cache|defaults) '([^']+)'`)
	quoted  = regexp.MustCompile(`(?:^|[^A-Za-z])'([^']*)'`) // not the apostrophe of "can't"
	lead    = regexp.MustCompile(`^\s*(?:[Pp]arsing)?\s*:?\s*`)
)

// namedLine is a line that a message names by file and number.
type namedLine struct {
	by   *regexp.Regexp
	file string
	line int
}

// namedLines returns the lines that a message names, the most precise first.
func namedLines(text string) (named []namedLine) {
	for _, by := range []*regexp.Regexp{ofFile, inFile, bracketed} {
		for _, m := range by.FindAllStringSubmatch(text, -1) {
			line, _ := strconv.Atoi(m[by.SubexpIndex("line")]) // zero if the number is too large
			named = append(named, namedLine{by, m[by.SubexpIndex("file")], line})
		}
	}
	return named
}

// finding makes a finding with its position from one message.
func (l *locator) finding(text string) Finding {
	f := Finding{File: l.layout.ConfigPath(), Message: text}
	named := namedLines(text)
	if i := slices.IndexFunc(named, func(n namedLine) bool { return n.by != inFile }); i >= 0 {
		f.File, f.Line = named[i].file, named[i].line
		if named[i].by == bracketed {
			f.Message = lead.ReplaceAllString(strings.Replace(text, bracketed.FindString(text), "", 1), "")
		}
	} else {
		f.Line = l.byName(text)
	}
	line := ""
	if f.File == l.layout.ConfigPath() {
		if f.Line > 0 && f.Line <= len(l.lines) {
			line = strings.TrimRight(l.lines[f.Line-1], "\r\n")
		}
		f.Section = l.sectionAt(f.Line)
	} else if p, ok := l.files[f.File]; ok && p.Kind != dataplane.Certificate { // a certificate has a private key
		file, _ := l.cfg.File(p.Kind, p.Name)
		line = lineOf(string(file.Content), f.Line)
	}
	f.Text = haproxycfg.Redact(strings.TrimSpace(line))
	f.Message = oneLine(haproxycfg.RedactQuoted(strings.TrimSpace(f.Message), line))
	f.Position = l.position(text, f, named)
	return f
}

// position finds the line of the configuration for a message. If the message names a line
// of another file, that line counts: the line of the main text only names the file. A line
// of a crt-list may name another file in turn.
func (l *locator) position(text string, f Finding, named []namedLine) dataplane.Position {
	var last dataplane.Position // the last file in quotes
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		if p, ok := l.files[m[1]]; ok {
			last = p
		}
	}
	for _, n := range named {
		p, ok := l.files[n.file]
		switch {
		case !ok:
		case p.Kind == dataplane.CRTList && last.Name != "" && last.Kind != dataplane.CRTList:
			return last
		default:
			p.Line = n.line
			return p
		}
	}
	if last.Name == "" && f.File == l.layout.ConfigPath() {
		return dataplane.Position{Line: f.Line}
	}
	return last
}

// byName finds the line of a message that names a section in quotes. The message may quote
// the wrong word too: mostly the last quoted word that is no keyword.
func (l *locator) byName(text string) int {
	m := inProxy.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	kinds := []string{strings.ToLower(m[1]), "listen"}
	if kinds[0] == "proxy" {
		kinds = []string{"frontend", "backend", "listen"}
	}
	i := slices.IndexFunc(l.sections, func(s haproxycfg.Section) bool { return s.Name == m[2] && slices.Contains(kinds, s.Kind) })
	if i < 0 {
		return 0
	}
	section := l.sections[i]
	for _, m := range slices.Backward(quoted.FindAllStringSubmatch(text, -1)[1:]) {
		if m[1] == "" || haproxycfg.KnownKeyword(m[1]) {
			continue
		}
		number := section.Line - 1
		for line := range strings.Lines(section.Text) {
			number++
			words, _ := haproxycfg.Fields(line)
			if number != section.Header && slices.ContainsFunc(words, func(word string) bool { return partOfWord(word, m[1]) }) {
				return number
			}
		}
	}
	return section.Header
}

// partOfWord reports whether a word contains the name, without further characters of a name
// around it.
func partOfWord(word, name string) bool {
	before, after, ok := strings.Cut(word, name)
	return ok && (before == "" || !pathByte(before[len(before)-1])) && (after == "" || !pathByte(after[0]))
}

func (l *locator) sectionAt(line int) string {
	below, _ := slices.BinarySearchFunc(l.sections, line+1, func(s haproxycfg.Section, line int) int { return s.Line - line })
	if below == 0 {
		return ""
	}
	return sectionName(l.sections[below-1].Kind, l.sections[below-1].Name)
}

// lineOf returns a line of a text, counted from 1.
func lineOf(text string, n int) string {
	for line := range strings.Lines(text) {
		n--
		if n == 0 {
			return strings.TrimRight(line, "\r\n")
		}
	}
	return ""
}
