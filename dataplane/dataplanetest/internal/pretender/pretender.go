// Package pretender stands in for a running HAProxy. A [Process] keeps what a process would
// have loaded and what has been changed there since. It answers the commands of the runtime
// API (management manual, section 9.3) that the endpoints of the Dataplane API need.
package pretender

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Load is what a process reads when it starts.
type Load struct {
	Text  string            // haproxy.cfg
	Files map[string][]byte // by the path that the text or a crt-list may name
}

// Process behaves like a HAProxy process. It is not safe for concurrent use.
type Process struct {
	read     func() Load
	pid      int
	backends map[string][]*server
	patterns []*patterns // maps and ACLs, in the order of their identifiers
	objects  map[string]*object
	lists    map[string][]haproxycfg.ListEntry // crt-lists by path
	handles  int                               // number of handles given to entries
}

// New starts a process. It reads its files now and at each reload.
func New(read func() Load) *Process {
	p := &Process{read: read, pid: 999}
	_ = p.Reload() // never fails
	return p
}

// Stop does nothing.
func (p *Process) Stop() {}

// PID returns a number that changes at every reload.
func (p *Process) PID() int { return p.pid }

// Reload reads all files again and forgets what was changed at runtime.
func (p *Process) Reload() error {
	p.pid++
	l := p.read()
	p.backends, p.objects, p.lists = map[string][]*server{}, map[string]*object{}, map[string][]haproxycfg.ListEntry{}
	p.patterns = nil
	for _, section := range haproxycfg.Split(l.Text) {
		if section.Kind == "backend" || section.Kind == "listen" {
			p.backends[section.Name] = readServers(section.Text)
		}
	}
	texts := l.Text
	paths := slices.Sorted(maps.Keys(l.Files))
	for _, path := range paths {
		content := l.Files[path]
		switch {
		case strings.Contains(l.Text, "crt-list "+path):
			p.lists[path] = haproxycfg.ParseCRTList(content)
			texts += string(content)
		case strings.Contains(l.Text, "("+path):
			p.addPatterns("map", path, config.ParseMap(content))
		case strings.Contains(l.Text, "-f "+path):
			p.addPatterns("acl", path, config.ParsePatterns(content))
		case strings.Contains(l.Text, "ca-file "+path):
			p.objects["ca-file "+path] = &object{content: content}
		}
	}
	for _, path := range paths {
		if strings.Contains(texts, path) && bytes.Contains(l.Files[path], []byte("-----BEGIN ")) && p.objects["ca-file "+path] == nil {
			p.objects["cert "+path] = &object{content: l.Files[path], used: true}
		}
	}
	return nil
}

// Command answers as HAProxy does after "set severity-output number".
func (p *Process) Command(command string) (string, error) {
	out, err := p.carryOut(command)
	if err != nil {
		return "[3]: " + err.Error(), nil
	}
	return strings.TrimSpace(out), nil
}

// Ask answers as HAProxy does on its own.
func (p *Process) Ask(command string) (string, error) {
	out, err := p.carryOut(command)
	if err != nil {
		return err.Error(), nil
	}
	return strings.TrimSpace(out), nil
}

// carryOut returns the answer of HAProxy. An error is an error message of HAProxy.
func (p *Process) carryOut(command string) (string, error) {
	line, payload, has := strings.Cut(command, "<<\n")
	payload, _, ended := strings.Cut(payload, "\n\n")
	if has && !ended {
		return "", nil // still waiting for the blank line that ends the payload
	}
	words := strings.Fields(line)
	for n := min(3, len(words)); n > 0; n-- {
		args := append(slices.Clone(words[n:]), "", "", "", "", "") // spare words, so that no case has to count
		switch strings.Join(words[:n], " ") {
		case "show info typed":
			return fmt.Sprintf("1.Version.1:POS:str:3.2.4\n6.Pid.1:CGS:u32:%d\n", p.pid), nil
		case "show stat":
			return p.showStat(), nil
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
		case "show map", "get map", "add map", "set map", "del map", "show acl", "get acl", "add acl", "del acl":
			return p.pattern(words[0], words[1], args)
		case "show ssl crt-list", "add ssl crt-list", "del ssl crt-list":
			return p.crtList(words[0], args[0], args[1], payload)
		case "new ssl cert", "show ssl cert", "set ssl cert", "commit ssl cert", "del ssl cert", "set ssl ca-file", "commit ssl ca-file":
			return p.ssl(words[0], words[2], args[0], payload)
		}
	}
	return "", errors.New("Unknown command: '" + line + "'")
}
