package dataplanetest

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// pretender stands in for a haproxy: it knows what a process would have loaded
// and what has been changed there since. The server's lock guards it.
type pretender struct {
	s       *Server
	process atomic.Int64
	be      map[string][]loadedServer
	maps    map[string][]entry
	certs   map[string][]byte
}

func newPretender(s *Server) *pretender {
	p := &pretender{s: s}
	p.process.Store(1000)
	p.load()
	return p
}

func (p *pretender) stop()    {}
func (p *pretender) pid() int { return int(p.process.Load()) }

func (p *pretender) reload() error {
	p.process.Add(1)
	p.load()
	return nil
}

// load reads servers from the text, and the files that it or a crt-list names.
func (p *pretender) load() {
	disk := p.s.diskText()
	p.be, p.maps, p.certs = map[string][]loadedServer{}, map[string][]entry{}, map[string][]byte{}
	for _, section := range haproxycfg.Split(disk) {
		if section.Kind != "backend" && section.Kind != "listen" {
			continue
		}
		p.be[section.Name] = []loadedServer{}
		for line := range strings.Lines(section.Text) {
			words, err := haproxycfg.Fields(line)
			if err == nil && len(words) > 2 && words[0] == "server" {
				p.be[section.Name] = append(p.be[section.Name], readServer(words))
			}
		}
	}
	p.each("maps", func(path string, content []byte) {
		if strings.Contains(disk, path) {
			p.maps[path] = readMap(content)
		}
	})
	texts := []string{disk}
	p.each("general", func(_ string, content []byte) { texts = append(texts, string(content)) })
	p.each("ssl_crt_lists", func(_ string, content []byte) { texts = append(texts, string(content)) })
	p.each("ssl_certificates", func(path string, content []byte) {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, path) }) {
			p.certs[path] = content
		}
	})
}

// each calls f with all files of a storage.
func (p *pretender) each(store string, f func(path string, content []byte)) {
	st := p.s.store(store)
	names, err := st.names()
	for _, name := range names {
		var content []byte
		if content, err = st.read(name); err != nil {
			break
		}
		f(st.path(name), content)
	}
	if err != nil {
		p.s.report(err)
	}
}

func readServer(words []string) loadedServer {
	srv := loadedServer{Name: words[1], Address: words[2], AdminState: "ready", Operational: "up"}
	if host, port, err := net.SplitHostPort(words[2]); err == nil {
		srv.Address = host
		srv.Port, _ = strconv.Atoi(port)
	}
	if slices.Contains(words, "disabled") {
		srv.AdminState, srv.Operational = "maint", "down"
	}
	return srv
}

func readMap(content []byte) []entry {
	entries := []entry{}
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		entries = append(entries, entry{words[0], strings.Join(words[1:], " ")})
	}
	return entries
}

func (p *pretender) action(words []string) error {
	if words[0] == "SetFrontendMaxConn" {
		return nil
	}
	i := slices.IndexFunc(p.be[words[1]], func(s loadedServer) bool { return s.Name == words[2] })
	if i < 0 {
		return errNoServer
	}
	srv := &p.be[words[1]][i]
	switch words[0] {
	case "SetServerAddr":
		srv.Address = words[3]
		srv.Port, _ = strconv.Atoi(words[4])
	case "SetServerState":
		srv.AdminState = words[3]
	}
	return nil
}

var errNoServer = errors.New("No such server.")

func (p *pretender) servers(backend string) ([]loadedServer, error) {
	servers, ok := p.be[backend]
	if !ok {
		return nil, errors.New("Can't find backend.")
	}
	return servers, nil
}

var errNoMap = errors.New("Unknown map identifier. Please use #<id> or <file>.")

func (p *pretender) entries(path string) ([]entry, error) {
	entries, ok := p.maps[path]
	if !ok {
		return nil, errNoMap
	}
	return entries, nil
}

func (p *pretender) addEntry(path, key, value string) error {
	p.maps[path] = append(p.maps[path], entry{key, value})
	return nil
}

func (p *pretender) setEntry(path, key, value string) error {
	for i := range p.maps[path] {
		if p.maps[path][i].Key == key {
			p.maps[path][i].Value = value
		}
	}
	return nil
}

func (p *pretender) deleteEntry(path, key string) error {
	p.maps[path] = slices.DeleteFunc(p.maps[path], func(e entry) bool { return e.Key == key })
	return nil
}

var errNoCertificate = errors.New("Can't replace a certificate which is not referenced by the configuration!")

func (p *pretender) swap(path string, content []byte, create bool) error {
	if _, ok := p.certs[path]; !ok && !create {
		return errNoCertificate
	}
	p.certs[path] = content
	return nil
}

func (p *pretender) fingerprint(path string) (string, error) {
	content, ok := p.certs[path]
	if !ok {
		return "", errNoCertificate
	}
	return sha1Of(content), nil
}

// LoadedMap returns the entries that a map has in the running process, nil if
// no process has loaded it.
func (s *Server) LoadedMap(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := s.proc.entries(s.store("maps").path(name))
	if err != nil {
		return nil
	}
	return maps.Collect(func(yield func(string, string) bool) {
		for _, e := range entries {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	})
}

// LoadedServer returns the address and the administrative state (ready, drain
// or maint) that a server has in the running process, "" if there is none.
func (s *Server) LoadedServer(backend, server string) (address, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	servers, err := s.proc.servers(backend)
	if err != nil {
		return "", ""
	}
	for _, srv := range servers {
		if srv.Name == server {
			return net.JoinHostPort(srv.Address, strconv.Itoa(srv.Port)), srv.AdminState
		}
	}
	return "", ""
}

// LoadedCertificate returns the SHA-1 fingerprint, in upper-case hexadecimal
// digits, of the certificate that the running process has loaded from a file of
// that name, "" if there is none.
func (s *Server) LoadedCertificate(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, err := s.proc.fingerprint(s.store("ssl_certificates").path(name))
	if err != nil {
		return ""
	}
	return sum
}
