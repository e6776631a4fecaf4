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

// Slots gives the endpoints of a backend names that they keep from render to render. An
// endpoint that replaces another takes its name, so that HAProxy only has to change the
// address of a server. The zero value is ready.
type Slots struct {
	// Step rounds the number of servers up to a multiple, by disabled spare ones. A
	// Dataplane API cannot add a server to a running HAProxy, but it can give a spare
	// one an address. Zero means no spare ones.
	Step int

	mu   sync.Mutex
	held map[string][]string // backend -> address by slot, "" if a slot is free
	last map[string]*Backend // what assign returned

	used int // most backends or certificates in a build without quarantine, since one was accepted

	checked  map[string]checkedSecret // by file
	deployed map[string][]byte        // certificates of an earlier process, until those of now are checked

	cut map[string]partOf // by namespace/name of an Ingress
}

// spareAddress is the address of a disabled server: the discard port of this host. A
// disabled server gets no traffic.
const spareAddress = "127.0.0.1:9"

// assign returns the backend with at most limit servers for these addresses, in the
// order of their slots. Without a change it returns the same pointer as before.
// Endpoints keep their slots; new ones get free slots in their order.
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

// keep returns the backend without servers, while its Service is quarantined or
// missing. Its endpoints find their slots again when the Service comes back.
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
	var left, free []int // slots that endpoints left just now, and earlier
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

// Remember reads the slots and the certificates from an earlier configuration of these
// templates; nil changes nothing.
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
				continue // not a name from assign
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

// maxSlots bounds what Remember takes from a configuration that people may have changed.
const maxSlots = 10000

// forgetSecrets drops the results for all Secrets except but.
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

// forgetOnly drops the named backends and certificates, unless they are in use.
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

// isFull reports whether unused slots must go. Normally they stay: a backend may come
// back with its servers, from quarantine or after a refused build. But names that come
// and go must not fill the memory. whole: no resource is quarantined.
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
