package main

import (
	"fmt"
	"slices"
	"sync"
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
}

// spareAddress is where a disabled server points to: the discard port of this
// host, which gets no traffic since the server is disabled.
const spareAddress = "127.0.0.1:9"

// Assign returns the servers for these addresses, in the order of their slots.
func (s *Slots) Assign(backend string, addresses []string) []Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string][]string{}
	}
	held := slices.Clone(s.held[backend])
	for i, a := range held {
		if !slices.Contains(addresses, a) {
			held[i] = ""
		}
	}
	for _, a := range addresses {
		if slices.Contains(held, a) {
			continue
		}
		if free := slices.Index(held, ""); free >= 0 {
			held[free] = a
		} else {
			held = append(held, a)
		}
	}
	for len(held) > 0 && held[len(held)-1] == "" {
		held = held[:len(held)-1]
	}
	s.held[backend] = held

	var servers []Server
	for i, a := range held {
		if a != "" {
			servers = append(servers, Server{Name: fmt.Sprintf("s%d", i+1), Address: a})
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

func spare(i int) Server {
	return Server{Name: fmt.Sprintf("s%d", i+1), Address: spareAddress, Disabled: true}
}

// Forget drops the slots of all backends but these.
func (s *Slots) Forget(but map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.held {
		if !but[name] {
			delete(s.held, name)
		}
	}
}
