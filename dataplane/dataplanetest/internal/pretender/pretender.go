// Package pretender stands in for a running HAProxy. A [Process] knows what a
// process would have loaded and what has been changed there since. It answers to
// those commands of the runtime API (management manual, section 9.3) that the
// endpoints of the Dataplane API lead to.
package pretender

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Load is what a process reads when it starts.
type Load struct {
	Text  string // haproxy.cfg
	Files []File
}

// File is a file that the text or a crt-list may name by its path.
type File struct {
	Path    string
	Content []byte
}

// Process pretends to be a HAProxy. It is not safe for concurrent use.
type Process struct {
	read     func() Load
	pid      int
	backends map[string]*backend
	fronts   []string
	patterns []*patterns // maps and ACLs, in the order of their identifiers
	objects  map[string]*object
	lists    map[string][]string // lines of crt-lists by path
	handles  int                 // given to entries
}

type backend struct {
	dynamic bool // balances in a way that servers can be added to
	servers []*server
}

// New starts a process, which reads its files now and at each reload.
func New(read func() Load) *Process {
	p := &Process{read: read, pid: 1000}
	p.load()
	return p
}

// Stop does nothing.
func (p *Process) Stop() {}

// PID returns a number that every reload changes.
func (p *Process) PID() int { return p.pid }

// Reload reads all files again and forgets what was changed at runtime.
func (p *Process) Reload() error {
	p.pid++
	p.load()
	return nil
}

func (p *Process) load() {
	l := p.read()
	p.backends, p.objects, p.lists = map[string]*backend{}, map[string]*object{}, map[string][]string{}
	p.patterns, p.fronts = nil, nil
	for _, section := range haproxycfg.Split(l.Text) {
		if section.Kind == "backend" || section.Kind == "listen" {
			p.backends[section.Name] = readBackend(section.Text)
		}
		if section.Kind == "frontend" || section.Kind == "listen" {
			p.fronts = append(p.fronts, section.Name)
		}
	}
	texts := l.Text
	for _, f := range l.Files {
		switch {
		case strings.Contains(l.Text, "crt-list "+f.Path):
			p.lists[f.Path] = strings.Split(strings.TrimSuffix(string(f.Content), "\n"), "\n")
			texts += string(f.Content)
		case strings.Contains(l.Text, "("+f.Path):
			p.addPatterns("map", f)
		case strings.Contains(l.Text, "-f "+f.Path):
			p.addPatterns("acl", f)
		case strings.Contains(l.Text, "ca-file "+f.Path):
			p.objects["ca-file "+f.Path] = &object{content: f.Content}
		}
	}
	for _, f := range l.Files {
		if strings.Contains(texts, f.Path) && bytes.Contains(f.Content, []byte("-----BEGIN ")) && p.objects["ca-file "+f.Path] == nil {
			p.objects["cert "+f.Path] = &object{content: f.Content, used: true}
		}
	}
}

func readBackend(text string) *backend {
	b := &backend{dynamic: true}
	for line := range strings.Lines(text) {
		words, err := haproxycfg.Fields(line)
		switch {
		case err != nil || len(words) < 2:
		case words[0] == "balance":
			algorithm, _, _ := strings.Cut(words[1], "(")
			b.dynamic = slices.Contains([]string{"roundrobin", "leastconn", "first", "random"}, algorithm)
		case words[0] == "server" && len(words) > 2:
			b.servers = append(b.servers, readServer(words[1], words[2:]))
		}
	}
	return b
}

// readServer reads the words of a server line behind its name.
func readServer(name string, words []string) *server {
	srv := &server{name: name, address: words[0], weight: 1, checked: slices.Contains(words, "check")}
	if host, port, err := net.SplitHostPort(words[0]); err == nil {
		srv.address = host
		srv.port, _ = strconv.Atoi(port)
	}
	if slices.Contains(words, "disabled") {
		srv.admin, srv.down = forcedMaint, true
	}
	value := func(word string) string {
		if i := slices.Index(words, word); i > 0 && i+1 < len(words) {
			return words[i+1]
		}
		return ""
	}
	if weight, err := strconv.Atoi(value("weight")); err == nil {
		srv.weight = weight
	}
	srv.limit = value("maxconn")
	return srv
}

// said is an answer to a command.
type said struct {
	failed bool
	text   string
}

func shown(format string, args ...any) said { return said{false, fmt.Sprintf(format, args...)} }
func failed(text string) said               { return said{true, text} }

// Command answers as HAProxy does after "set severity-output number".
func (p *Process) Command(command string) (string, error) {
	a := p.carryOut(command)
	if a.failed {
		return "[3]: " + a.text, nil
	}
	return strings.TrimSpace(a.text), nil
}

// Ask answers as HAProxy does on its own.
func (p *Process) Ask(command string) (string, error) {
	return strings.TrimSpace(p.carryOut(command).text), nil
}

func (p *Process) carryOut(command string) said {
	line, payload, has := strings.Cut(command, "<<\n")
	payload, _, ended := strings.Cut(payload, "\n\n")
	if has && !ended {
		return shown("") // still waiting for the blank line that ends it
	}
	words := strings.Fields(line)
	for n := min(3, len(words)); n > 0; n-- {
		args := append(slices.Clone(words[n:]), "", "", "", "", "") // so that none has to be counted
		switch strings.Join(words[:n], " ") {
		case "show info typed":
			return shown("1.Version.1:POS:str:3.2.4\n5.Process_num.1:CGS:u32:1\n6.Pid.1:CGS:u32:%d\n8.Uptime_sec.1:MDP:u32:1\n", p.pid)
		case "show stat":
			return p.showStat()
		case "show servers state":
			return p.showServers(args[0])
		case "set server":
			return p.setServer(args)
		case "add server":
			return p.addServer(args[0], words[min(n+1, len(words)):])
		case "del server":
			return p.delServer(args[0])
		case "disable server":
			return p.setServer([]string{args[0], "state", "maint"})
		case "enable server":
			return p.setServer([]string{args[0], "state", "ready"})
		case "enable agent", "disable agent":
			_, a := p.find(args[0])
			return a
		case "show map", "get map", "add map", "set map", "del map", "show acl", "get acl", "add acl", "del acl":
			return p.pattern(words[0], words[1], args)
		case "show ssl crt-list", "add ssl crt-list", "del ssl crt-list":
			return p.crtList(words[0], args, payload)
		case "new ssl cert", "show ssl cert", "set ssl cert", "commit ssl cert", "del ssl cert",
			"show ssl ca-file", "set ssl ca-file", "commit ssl ca-file":
			return p.ssl(words[0], words[2], args[0], payload)
		}
	}
	return failed("Unknown command: '" + line + "'")
}
