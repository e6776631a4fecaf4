package pretender

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

type server struct {
	name, address string
	port          int
	admin         int // flags of "show servers state"
	weight        int
	limit         string // connections at most, "" if it has no limit
	checked       bool
	down          bool
}

// Flags of a server that was put into maintenance, and of one that is to lose
// its clients.
const (
	forcedMaint = 0x01
	forcedDrain = 0x08
)

// find finds backend/server, or says what is missing.
func (p *Process) find(full string) (*server, said) {
	name, server, _ := strings.Cut(full, "/")
	b := p.backends[name]
	if b == nil {
		return nil, failed("No such backend.")
	}
	for _, srv := range b.servers {
		if srv.name == server {
			return srv, shown("")
		}
	}
	return nil, failed("No such server.")
}

// status is the word of the statistics.
func (srv *server) status() string {
	switch {
	case srv.admin&forcedMaint != 0:
		return "MAINT"
	case srv.down:
		return "DOWN"
	case srv.admin&forcedDrain != 0:
		return "DRAIN"
	case srv.checked:
		return "UP"
	}
	return "no check"
}

// showStat shows some columns of the statistics.
func (p *Process) showStat() said {
	var out strings.Builder
	out.WriteString("# pxname,svname,slim,status,weight,type,addr,mode,\n")
	for _, name := range p.fronts {
		fmt.Fprintf(&out, "%s,FRONTEND,,OPEN,,0,,http,\n", name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.backends)) {
		for _, srv := range p.backends[name].servers {
			address := net.JoinHostPort(srv.address, strconv.Itoa(srv.port))
			fmt.Fprintf(&out, "%s,%s,%s,%s,%d,2,%s,http,\n", name, srv.name, srv.limit, srv.status(), srv.weight, address)
		}
		fmt.Fprintf(&out, "%s,BACKEND,,UP,,1,,http,\n", name)
	}
	return said{text: out.String()}
}

func (p *Process) showServers(name string) said {
	b := p.backends[name]
	if b == nil {
		return failed("Can't find backend.")
	}
	var out strings.Builder
	out.WriteString("1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight\n")
	for i, srv := range b.servers {
		state := 2
		if srv.down {
			state = 0
		}
		fmt.Fprintf(&out, "3 %s %d %s %s %d %d %d %d 0 1 0 0 0 0 0 0 - %d - 0 0 - - 0\n",
			name, i+1, srv.name, srv.address, state, srv.admin, srv.weight, srv.weight, srv.port)
	}
	return said{text: out.String()}
}

func (p *Process) setServer(words []string) said {
	srv, missing := p.find(words[0])
	if srv == nil {
		return missing
	}
	switch value := words[2]; words[1] {
	case "addr":
		srv.address = value
		if len(words) > 4 && words[3] == "port" {
			srv.port, _ = strconv.Atoi(words[4])
		}
		return shown("IP changed, by 'stats socket command'")
	case "weight":
		weight, err := strconv.Atoi(strings.TrimSuffix(value, "%"))
		if err != nil || weight < 0 || weight > 256 {
			return failed("Require <weight> or <weight%>.")
		}
		srv.weight = weight
	case "state":
		states := map[string]int{"ready": 0, "drain": forcedDrain, "maint": forcedMaint}
		admin, ok := states[value]
		if !ok {
			return failed("'set server <srv> state' expects 'ready', 'drain' and 'maint'.")
		}
		srv.admin, srv.down = admin, value == "maint"
	case "check-port", "agent-addr", "agent-send":
		// Nothing that is asked for shows them.
	default:
		return failed("usage: set server <backend>/<server> addr | agent | agent-addr | agent-port | agent-send | check-addr | check-port | fqdn | health | ssl | state | weight")
	}
	return shown("")
}

func (p *Process) addServer(full string, words []string) said {
	name, server, _ := strings.Cut(full, "/")
	b := p.backends[name]
	switch existing, _ := p.find(full); {
	case b == nil:
		return failed("No such backend.")
	case existing != nil:
		return failed("Already exists a server with the same name in backend.")
	case !b.dynamic:
		return failed("Backend must use a dynamic load balancing to support dynamic servers.")
	case len(words) == 0:
		return failed("'server' expects <name> and <addr>[:<port>] as arguments.")
	}
	srv := readServer(server, words)
	srv.admin, srv.down = forcedMaint, true
	b.servers = append(b.servers, srv)
	return shown("New server registered.")
}

func (p *Process) delServer(full string) said {
	srv, missing := p.find(full)
	switch {
	case srv == nil:
		return missing
	case srv.admin&forcedMaint == 0:
		return failed("Only servers in maintenance mode can be deleted.")
	}
	name, _, _ := strings.Cut(full, "/")
	b := p.backends[name]
	b.servers = slices.DeleteFunc(b.servers, func(other *server) bool { return other == srv })
	return shown("Server deleted.")
}
