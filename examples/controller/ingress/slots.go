package ingress

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
)

// Slots gives the endpoints of a backend names that they keep from render to
// render: an endpoint that replaces another takes its name, so that HAProxy
// only has to change the address of a server. The zero value is ready.
type Slots struct {
	// Step rounds the number of servers up, with disabled ones to spare: a
	// Dataplane API cannot add a server to a running HAProxy, but it can give
	// a spare one an address. Zero spares none.
	Step int

	mu   sync.Mutex
	held map[string][]string // backend -> address by slot, "" where a slot is free
	last map[string]*Backend // what assign returned

	used int // of these, by the builds without quarantine since one was accepted

	checked  map[string]checkedSecret // by file
	deployed map[string][]byte        // the certificates of before this process, until those of now are checked

	cut map[string]partOf // by namespace/name of an Ingress
}

// spareAddress is where a disabled server points to: the discard port of this
// host, which gets no traffic since the server is disabled.
const spareAddress = "127.0.0.1:9"

// assign returns the backend with at most limit servers for these addresses, in the
// order of their slots: the same pointer as before if nothing changed. Endpoints that
// have a slot keep it, the first of the others get one.
func (s *Slots) assign(backend string, addresses []string, limit int, options *annotation.Options, svc *corev1.Service, ing *networkingv1.Ingress) *Backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string][]string{}
	}
	servers := s.servers(backend, addresses, limit)
	last := s.last[backend]
	if last == nil || last.Service != svc || last.Ingress != ing || !equal(last.Options, options) || !slices.Equal(last.Servers, servers) {
		last = &Backend{backend, servers, options, svc, ing}
		if s.last == nil {
			s.last = map[string]*Backend{}
		}
		s.last[backend] = last
	}
	return last
}

// keep returns the backend without servers, as its Service is left out for now:
// its endpoints find their slots again when that comes back.
func (s *Slots) keep(backend string, options *annotation.Options, ing *networkingv1.Ingress) *Backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[backend]
	if last == nil || last.Service != nil || last.Ingress != ing || !equal(last.Options, options) || len(last.Servers) > 0 {
		last = &Backend{Name: backend, Options: options, Ingress: ing}
		if s.last == nil {
			s.last = map[string]*Backend{}
		}
		s.last[backend] = last
	}
	return last
}

func (s *Slots) servers(backend string, addresses []string, limit int) []Server {
	held := slices.Clone(s.held[backend])
	isNew := make(map[string]bool, len(addresses))
	for _, a := range addresses {
		isNew[a] = true
	}
	var left, free []int // slots: an endpoint left them just now, or long ago
	for i, a := range held {
		switch {
		case a == "":
			free = append(free, i)
		case !isNew[a] || limit == 0:
			held[i] = ""
			left = append(left, i)
		default:
			isNew[a] = false
			limit--
		}
	}
	free = append(left, free...)
	for _, a := range addresses {
		switch {
		case !isNew[a] || limit == 0:
			continue
		case len(free) > 0:
			held[free[0]] = a
			free = free[1:]
		default:
			held = append(held, a)
		}
		limit--
	}
	for len(held) > 0 && held[len(held)-1] == "" {
		held = held[:len(held)-1]
	}
	s.held[backend] = held

	var servers []Server
	for i, a := range held {
		if a != "" {
			servers = append(servers, Server{Name: "s" + strconv.Itoa(i+1), Address: a, Resolved: hasName(a)})
		} else if s.Step > 0 {
			servers = append(servers, spare(i))
		}
	}
	if s.Step > 0 {
		for i := len(held); i%s.Step != 0 || i == 0; i++ {
			servers = append(servers, spare(i))
		}
	}
	return servers
}

// hasName reports whether the host of an address is a name.
func hasName(address string) bool {
	return address[0] != '[' && strings.Trim(address, "0123456789.:") != ""
}

func spare(i int) Server {
	return Server{Name: "s" + strconv.Itoa(i+1), Address: spareAddress, Disabled: true}
}

// Remember takes the slots and the certificates from a configuration that these
// templates rendered before; nil remembers nothing.
func (s *Slots) Remember(previous *dataplane.Config) {
	if previous == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.deployed = map[string][]string{}, map[string][]byte{}
	for _, f := range previous.Files() {
		if f.Kind == dataplane.Certificate {
			s.deployed[f.Name] = f.Content
		}
	}
	backend := ""
	for line := range strings.Lines(previous.Main()) {
		words := strings.Fields(line)
		switch {
		case len(words) >= 2 && words[0] == "backend":
			backend = words[1]
		case len(words) >= 3 && words[0] == "server" && words[2] != spareAddress:
			n, err := strconv.Atoi(strings.TrimPrefix(words[1], "s"))
			if err != nil || n < 1 || n > maxSlots {
				continue // not a name that assign gives
			}
			held := s.held[backend]
			for len(held) < n {
				held = append(held, "")
			}
			held[n-1] = words[2]
			s.held[backend] = held
		}
	}
}

// maxSlots bounds what Remember believes of a configuration that somebody may
// have changed.
const maxSlots = 10000

// forgetSecrets drops what was found in all Secrets but these.
func (s *Slots) forgetSecrets(but map[string]*tlsFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.checked, func(file string, _ checkedSecret) bool { return but[file] == nil })
	s.deployed = nil
}

// forget drops the slots of backends that are gone.
func (s *Slots) forget(gone func(backend string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.held, func(name string, _ []string) bool { return gone(name) })
	maps.DeleteFunc(s.last, func(name string, _ *Backend) bool { return gone(name) })
}

// forgetOnly drops some backends and certificates, unless they are used.
func (s *Slots) forgetOnly(names map[string]bool, used func(name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range names {
		if !used(name) {
			delete(s.held, name)
			delete(s.last, name)
			delete(s.checked, name)
		}
	}
}

// isFull reports whether what a build does not use goes, although it may come back with
// the servers that it had: from quarantine, or as the build is not accepted. Else names
// that come and go could fill the memory meanwhile. whole: nothing is in quarantine.
func (s *Slots) isFull(used int, whole bool) bool {
	const enough = 1000
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole {
		s.used = max(s.used, used)
	}
	return max(len(s.held), len(s.last), len(s.checked)) > enough+2*max(used, s.used)
}

func (s *Slots) setUsed(used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = used
}
