package validate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// message is one message of haproxy: "[ALERT]    (12) : config : parsing
// [/etc/haproxy/haproxy.cfg:3] : ...", with the lines that go on after it.
type message struct {
	level string // "ALERT", "WARNING", "NOTICE", ...
	text  string
}

// readMessages cuts the output of haproxy into messages.
func readMessages(output string) []message {
	var messages []message
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		level, rest, ok := cutLevel(line)
		switch {
		case ok:
			messages = append(messages, message{level, rest})
		case strings.TrimSpace(line) == "":
		case len(messages) > 0 && messages[len(messages)-1].level != "NOTICE" && strings.HasPrefix(line, " "):
			messages = goOn(messages, strings.TrimSpace(line))
		default:
			messages = append(messages, message{"", line})
		}
	}
	return messages
}

// hasAlert reports whether haproxy said that something is wrong.
func hasAlert(output string) bool {
	return slices.ContainsFunc(readMessages(output), func(m message) bool { return m.level == "ALERT" })
}

// goOn adds a line that goes on after the last message. Of "multiple argument
// resolution errors" each line is a message.
func goOn(messages []message, line string) []message {
	last := &messages[len(messages)-1]
	if !strings.HasPrefix(line, "parsing [") {
		last.text += " " + line
		return messages
	}
	if strings.HasPrefix(last.text, "multiple ") && strings.HasSuffix(last.text, ":") {
		last.text = line
		return messages
	}
	return append(messages, message{last.level, line})
}

// cutLevel reads "[LEVEL]    (pid) : " at the start of a line.
func cutLevel(line string) (level, text string, ok bool) {
	rest, ok := strings.CutPrefix(line, "[")
	if !ok {
		return "", "", false
	}
	level, rest, ok = strings.Cut(rest, "]")
	if !ok || strings.ToUpper(level) != level || strings.ContainsAny(level, " /:.") {
		return "", "", false
	}
	rest = strings.TrimSpace(rest)
	if strings.HasPrefix(rest, "(") {
		_, rest, _ = strings.Cut(rest, ")")
	}
	rest = strings.TrimPrefix(strings.TrimSpace(rest), ": ")
	return level, strings.TrimPrefix(rest, "config : "), true
}

// readOutput makes the verdict from the output of haproxy -c.
func readOutput(output string, code int, layout dataplane.Layout, cfg *dataplane.Config, box *sandbox) *verdict {
	l := &locator{layout: layout, cfg: cfg, sections: haproxycfg.Split(cfg.Main())}
	d := &verdict{}
	var summary []Finding // said in addition to what is wrong
	var other []string
	for _, m := range readMessages(output) {
		text := box.back.Replace(m.text)
		switch {
		case m.level == "":
			other = append(other, text)
		case m.level == "WARNING":
			d.warnings = append(d.warnings, l.finding(text))
		case m.level == "NOTICE", m.level == "INFO", m.level == "DIAG":
		case isSummary(text):
			summary = append(summary, Finding{File: layout.ConfigPath(), Message: printable(text)})
		default:
			d.findings = append(d.findings, l.finding(text))
		}
	}
	if code == 0 {
		// Alerts that did not keep haproxy from saying yes are warnings.
		d.warnings, d.findings = append(d.findings, d.warnings...), nil
		return d
	}
	if len(d.findings) == 0 && len(summary) > 0 {
		// Of some things that it refuses haproxy only warns.
		d.findings = append(d.warnings, summary...)
	}
	slices.SortStableFunc(d.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(uint(a.Line)-1, uint(b.Line)-1)) // without a line: last
	})
	if len(d.findings) == 0 { // no listener, for example
		text := printable(strings.Join(other, " "))
		if text == "" {
			text = fmt.Sprintf("haproxy -c ended with code %d", code)
		}
		d.findings = []Finding{{File: layout.ConfigPath(), Message: text}}
	}
	return d
}

// isSummary reports what haproxy says in addition to what is wrong.
func isSummary(text string) bool {
	for _, part := range []string{
		"rror(s) found in configuration file", "atal errors found in configuration", "Failed to initialize server(s) addr",
	} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// printable replaces what is no text: haproxy cuts characters in two, and where
// an argument is missing it may quote bytes of its memory.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return unicode.ReplacementChar
		}
		return r // U+FFFD for what is no UTF-8
	}, text)
}

// locator finds where a message belongs.
type locator struct {
	layout   dataplane.Layout
	cfg      *dataplane.Config
	sections []haproxycfg.Section
}

var (
	// "parsing [file:12]", "[file:12]"
	bracketed = regexp.MustCompile(`\[(/[^\]\[:]+):(\d+)\]`)
	// "at line 3 of file '/etc/haproxy/maps/x.map'", "(at /etc/haproxy/haproxy.cfg:7)"
	ofFile = regexp.MustCompile(`line (\d+) of (?:file )?'?(/[^\s':]+)'?`)
	// "processing line 2 in file '/etc/haproxy/general/certificates.txt'"
	inFile = regexp.MustCompile(`line (\d+) in (?:file )?'?(/[^\s':]+)'?`)
	atFile = regexp.MustCompile(`\bat (/[^\s:]+):(\d+)`)
	// "proxy 'web'", "backend 'shop', server 's1'"
	inProxy = regexp.MustCompile(`(?i)\b(proxy|frontend|backend|listen|peers|resolvers|userlist|mailers|cache|defaults) '([^']+)'`)
	aPath   = regexp.MustCompile(`/[^\s':<>]+`)
	quoted  = regexp.MustCompile(`(?:^|[^A-Za-z])'([^']*)'`) // not the apostrophe of "can't"
)

// finding places one message.
func (l *locator) finding(text string) Finding {
	f := Finding{File: l.layout.ConfigPath(), Message: text}
	if m := ofFile.FindStringSubmatch(text); m != nil { // the line in the file is what is wrong
		f.File, f.Line = m[2], number(m[1])
	} else if m := bracketed.FindStringSubmatch(text); m != nil {
		f.File, f.Line = m[1], number(m[2])
		f.Message = strings.TrimSpace(strings.Replace(text, m[0], "", 1))
		f.Message = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(f.Message, "parsing"), "Parsing"))
		f.Message = strings.TrimSpace(strings.TrimPrefix(f.Message, ":"))
	} else if m := atFile.FindStringSubmatch(text); m != nil {
		f.File, f.Line = m[1], number(m[2])
	} else {
		l.byName(&f)
		l.byPath(&f)
	}
	line := ""
	if f.File == l.layout.ConfigPath() && f.Line > 0 {
		line = lineOf(l.cfg.Main(), f.Line)
		f.Section = l.sectionAt(f.Line)
	} else if f.Line > 0 {
		line = l.lineOfFile(f.File, f.Line)
	}
	f.Text = mask(strings.TrimSpace(line))
	f.Message = printable(maskMessage(f.Message, line))
	f.Position = l.position(text, f)
	return f
}

// position finds the line of the configuration that a message is about: one of
// a file, where the message names a file, since the line of the main text only
// names that file, too.
func (l *locator) position(text string, f Finding) dataplane.Position {
	for _, pattern := range []*regexp.Regexp{ofFile, inFile, bracketed, atFile} {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			file, line := m[1], m[2]
			if !strings.HasPrefix(file, "/") {
				file, line = line, file
			}
			if p, ok := l.inFiles(file); ok {
				p.Line = number(line)
				if named, ok := l.quotedFile(text); ok && p.Kind == dataplane.CRTList && named.Kind != dataplane.CRTList {
					return named // the line of the list only names it
				}
				return p
			}
		}
	}
	if p, ok := l.quotedFile(text); ok {
		return p
	}
	if f.File == l.layout.ConfigPath() {
		return dataplane.Position{Line: f.Line}
	}
	return dataplane.Position{}
}

// quotedFile finds the file of the configuration that a message names last in
// quotes.
func (l *locator) quotedFile(text string) (p dataplane.Position, found bool) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		if file, ok := l.inFiles(m[1]); ok {
			p, found = file, true
		}
	}
	return p, found
}

// inFiles finds the file of the configuration that lies at a path.
func (l *locator) inFiles(path string) (dataplane.Position, bool) {
	for _, f := range l.cfg.Files() {
		if l.layout.Path(f.Kind, f.Name) == path {
			return dataplane.Position{Kind: f.Kind, Name: f.Name}, true
		}
	}
	return dataplane.Position{}, false
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// byName finds the line of a message that names a section, and perhaps what in
// it is wrong, but no line.
func (l *locator) byName(f *Finding) {
	m := inProxy.FindStringSubmatch(f.Message)
	if m == nil {
		return
	}
	kind := strings.ToLower(m[1])
	i := slices.IndexFunc(l.sections, func(s haproxycfg.Section) bool {
		if kind == "proxy" {
			return s.Name == m[2] && slices.Contains([]string{"frontend", "backend", "listen"}, s.Kind)
		}
		return s.Name == m[2] && (s.Kind == kind || s.Kind == "listen")
	})
	if i < 0 {
		return
	}
	s := l.sections[i]
	f.Line = s.Header
	names := quoted.FindAllStringSubmatch(f.Message, -1)
	for _, has := range []func(word, name string) bool{sameWord, partOfWord} {
		for _, keywords := range []bool{false, true} {
			// The last thing in quotes is mostly what is missing or wrong.
			for j := len(names) - 1; j > 0; j-- {
				name := names[j][1]
				if name == "" || haproxycfg.KnownKeyword(name) != keywords {
					continue
				}
				if n := lineWith(s, func(word string) bool { return has(word, name) }); n > 0 {
					f.Line = n
					return
				}
			}
		}
	}
}

// byPath finds the line of a message that says no more than which file is wrong:
// the first that names it by its path, or by its name below some base.
func (l *locator) byPath(f *Finding) {
	path := aPath.FindString(f.Message)
	if f.Line > 0 || path == "" || path == f.File {
		return
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	for _, is := range []func(string) bool{
		func(word string) bool { return partOfWord(word, path) },
		func(word string) bool { return name != "" && (word == name || strings.HasSuffix(word, "/"+name)) },
	} {
		for _, s := range l.sections {
			if f.Line = lineWith(s, is); f.Line > 0 {
				return
			}
		}
	}
}

// lineWith returns the number of the first line below the header of a section
// that has such a word, or zero.
func lineWith(s haproxycfg.Section, is func(string) bool) int {
	number := s.Line - 1
	for line := range strings.Lines(s.Text) {
		number++
		words, _ := haproxycfg.Fields(line)
		if number != s.Header && slices.ContainsFunc(words, is) {
			return number
		}
	}
	return 0
}

func sameWord(word, name string) bool { return word == name }

// partOfWord finds a name between other characters than those of names.
func partOfWord(word, name string) bool {
	before, after, ok := strings.Cut(word, name)
	return ok && (before == "" || !pathByte(before[len(before)-1])) && (after == "" || !pathByte(after[0]))
}

func (l *locator) sectionAt(line int) string {
	for i := len(l.sections) - 1; i >= 0; i-- {
		if l.sections[i].Line <= line {
			return sectionName(l.sections[i])
		}
	}
	return ""
}

// lineOfFile returns a line of a file of the configuration; never of one with
// a private key.
func (l *locator) lineOfFile(path string, n int) string {
	for _, f := range l.cfg.Files() {
		if f.Kind != dataplane.Certificate && l.layout.Path(f.Kind, f.Name) == path {
			return lineOf(string(f.Content), n)
		}
	}
	return ""
}

func lineOf(text string, n int) string {
	for line := range strings.Lines(text) {
		if n--; n == 0 {
			return strings.TrimRight(line, "\r\n")
		}
	}
	return ""
}
