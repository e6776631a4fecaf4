package dataplanetest

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// pretender stands in for a haproxy: it knows what a process would have loaded
// and what has been changed there since, and answers to the commands of the
// runtime API (management manual, section 9.3) that clients of the Dataplane
// API lead to. The server's lock guards it.
type pretender struct {
	s        *Server
	process  atomic.Int64
	backends map[string]*loadedBackend
	limits   map[string]int // connections at most, by frontend
	patterns []*patterns    // maps and ACLs, in the order of their identifiers
	objects  map[string]*sslObject
	lists    map[string][]string // crt-lists by path
	handles  int                 // given to entries
}

type loadedBackend struct {
	dynamic bool // balances in a way that servers can be added to
	servers []*loadedServer
}

type loadedServer struct {
	name, address string
	port          int
	admin         int // flags of "show servers state"
	weight        int
	down          bool
}

// patterns are the entries of a map or an ACL.
type patterns struct {
	kind, path string
	entries    []entry
	versions   map[string][]entry // prepared
	last       int                // version
}

type entry struct{ handle, key, value string }

// sslObject is a certificate or a CA file.
type sslObject struct {
	content []byte
	pending []byte // set and not committed
	open    bool
	used    bool
}

// forcedMaint is the flag of a server that was put into maintenance, and
// forcedDrain of one that is to lose its clients.
const (
	forcedMaint = 0x01
	forcedDrain = 0x08
)

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
	p.patterns, p.lists = nil, map[string][]string{}
	p.backends, p.objects = map[string]*loadedBackend{}, map[string]*sslObject{}
	p.limits = map[string]int{}
	for _, section := range haproxycfg.Split(disk) {
		if section.Kind == "backend" || section.Kind == "listen" {
			p.backends[section.Name] = readBackend(section.Text)
		}
		if section.Kind == "frontend" || section.Kind == "listen" {
			p.limits[section.Name] = readLimit(section.Text)
		}
	}
	p.each("maps", func(path string, content []byte) {
		if strings.Contains(disk, path) {
			p.addPatterns("map", path, content)
		}
	})
	texts := []string{disk}
	list := func(path string, content []byte) {
		texts = append(texts, string(content))
		switch {
		case strings.Contains(disk, "crt-list "+path):
			p.lists[path] = strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
		case strings.Contains(disk, "-f "+path):
			p.addPatterns("acl", path, content)
		case strings.Contains(disk, "ca-file "+path):
			p.objects["ca-file "+path] = &sslObject{content: content, used: true}
		}
	}
	p.each("general", list)
	p.each("ssl_certificates", func(path string, content []byte) {
		list(path, content)
	})
	p.each("ssl_certificates", func(path string, content []byte) {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, path) }) {
			p.objects["cert "+path] = &sslObject{content: content, used: true}
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

func readBackend(text string) *loadedBackend {
	b := &loadedBackend{dynamic: true}
	for line := range strings.Lines(text) {
		words, err := haproxycfg.Fields(line)
		switch {
		case err != nil || len(words) < 2:
		case words[0] == "balance":
			b.dynamic = slices.Contains([]string{"roundrobin", "leastconn", "first", "random"}, words[1]) ||
				strings.HasPrefix(words[1], "random(")
		case words[0] == "server" && len(words) > 2:
			b.servers = append(b.servers, readServer(words[1], words[2:]))
		}
	}
	return b
}

// readLimit returns the maxconn of a frontend, 0 if it has none of its own.
func readLimit(text string) (limit int) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "maxconn" {
			limit, _ = strconv.Atoi(words[1])
		}
	}
	return limit
}

// readServer reads the words of a server line behind its name.
func readServer(name string, words []string) *loadedServer {
	srv := &loadedServer{name: name, address: words[0], weight: 1}
	if host, port, err := net.SplitHostPort(words[0]); err == nil {
		srv.address = host
		srv.port, _ = strconv.Atoi(port)
	}
	if slices.Contains(words, "disabled") {
		srv.admin, srv.down = forcedMaint, true
	}
	if i := slices.Index(words, "weight"); i > 0 && i+1 < len(words) {
		srv.weight, _ = strconv.Atoi(words[i+1])
	}
	return srv
}

func (p *pretender) addPatterns(kind, path string, content []byte) {
	pt := &patterns{kind: kind, path: path, versions: map[string][]entry{}}
	pt.entries = p.readEntries(kind, string(content))
	p.patterns = append(p.patterns, pt)
}

func (p *pretender) readEntries(kind, text string) (entries []entry) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case kind == "acl":
			entries = append(entries, p.newEntry(strings.TrimSpace(line), ""))
		default:
			entries = append(entries, p.newEntry(words[0], strings.Join(words[1:], " ")))
		}
	}
	return entries
}

func (p *pretender) newEntry(key, value string) entry {
	p.handles++
	return entry{"0x" + strconv.FormatInt(int64(0x5500+p.handles*16), 16), key, value}
}
