package endpoints

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// Slots are the endpoints of a backend by server: the first is that of server s1; "" is free.
// An endpoint that replaces another takes its server, so that HAProxy only has to change an
// address. Slots never change: Assign returns others.
type Slots []string

// Server is an endpoint of a Service. It keeps its name.
type Server struct {
	Name     string // "s1"
	Address  string // "192.0.2.1:8080"
	Disabled bool   // a spare server that waits for an endpoint
	Resolved bool   // HAProxy looks up its host, the name of an ExternalName
}

// SpareAddress is the address of a disabled server: the discard port of this host. A
// disabled server gets no traffic.
const SpareAddress = "127.0.0.1:9"

// Assign returns the slots for at most limit of these addresses. Endpoints keep their slots;
// new ones get those that others left just now, and then free ones, in their order.
func (s Slots) Assign(addresses []string, limit int) Slots {
	held := slices.Clone(s)
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
		isNew[a] = false
		limit--
	}
	for len(held) > 0 && held[len(held)-1] == "" {
		held = held[:len(held)-1]
	}
	return held
}

// Servers returns the servers in the order of their slots. step rounds their number up to a
// multiple by disabled spare ones; zero adds none. A Dataplane API cannot add a server to a
// running HAProxy, but it can give a spare one an address.
func (s Slots) Servers(step int) []Server {
	var servers []Server
	for i, a := range s {
		if a != "" {
			servers = append(servers, Server{Name: "s" + strconv.Itoa(i+1), Address: a, Resolved: HasName(a)})
		} else if step > 0 {
			servers = append(servers, spare(i))
		}
	}
	if step > 0 {
		for i := len(s); i%step != 0 || i == 0; i++ {
			servers = append(servers, spare(i))
		}
	}
	return servers
}

// HasName reports whether the host of an address is a name.
func HasName(address string) bool {
	return address[0] != '[' && strings.Trim(address, "0123456789.:") != ""
}

func spare(i int) Server {
	return Server{Name: "s" + strconv.Itoa(i+1), Address: SpareAddress, Disabled: true}
}

// maxSlots bounds what ReadSlots takes from a configuration that people may have changed.
const maxSlots = 10000

// ReadSlots reads the slots of each backend from an earlier configuration; nil has none. It
// skips servers whose names are not those of Servers.
func ReadSlots(previous *dataplane.Config) map[string]Slots {
	all := map[string]Slots{}
	if previous == nil {
		return all
	}
	backend := ""
	for line := range strings.Lines(previous.Main()) {
		words := strings.Fields(line)
		switch {
		case len(words) >= 2 && words[0] == "backend":
			backend = words[1]
		case len(words) >= 3 && words[0] == "server" && words[2] != SpareAddress:
			n, err := strconv.Atoi(strings.TrimPrefix(words[1], "s"))
			if err != nil || n < 1 || n > maxSlots {
				continue
			}
			held := all[backend]
			for len(held) < n {
				held = append(held, "")
			}
			held[n-1] = words[2]
			all[backend] = held
		}
	}
	return all
}
