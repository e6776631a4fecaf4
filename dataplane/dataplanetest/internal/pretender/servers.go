package pretender

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

type server struct {
	name, address, port string
	admin               int // flags of "show servers state"
	weight              int
	checked             bool
}

// Flags of a server in maintenance, and of a server that drains.
const (
	forcedMaint = 0x01
	forcedDrain = 0x08
)

func readServers(text string) (servers []*server) {
	for line := range strings.Lines(text) {
		words, _ := haproxycfg.Fields(line)
		if parsed, ok := config.ParseServer(words); ok {
			servers = append(servers, newServer(parsed))
		}
	}
	return servers
}

func newServer(line config.Server) *server {
	srv := &server{name: line.Name, address: line.Args[0], port: "0", weight: 1, checked: line.Has("check")}
	if host, port, err := net.SplitHostPort(line.Args[0]); err == nil {
		srv.address, srv.port = host, port
	}
	if line.Value("state") == "disabled" {
		srv.admin = forcedMaint
	}
	if weight, err := strconv.Atoi(line.Value("weight")); err == nil {
		srv.weight = weight
	}
	return srv
}

// find returns a server by "backend/server". The error says which of the two is missing.
func (p *Process) find(full string) (*server, error) {
	backend, name, _ := strings.Cut(full, "/")
	servers, ok := p.backends[backend]
	if !ok {
		return nil, errors.New("No such backend.")
	}
	for _, srv := range servers {
		if srv.name == name {
			return srv, nil
		}
	}
	return nil, errors.New("No such server.")
}

// showStat returns some columns of the statistics of servers.
func (p *Process) showStat() string {
	out := "# pxname,svname,status,weight,type,addr,\n"
	for _, backend := range slices.Sorted(maps.Keys(p.backends)) {
		for _, srv := range p.backends[backend] {
			status := "no check"
			switch {
			case srv.admin == forcedMaint:
				status = "MAINT"
			case srv.admin == forcedDrain:
				status = "DRAIN"
			case srv.checked:
				status = "UP"
			}
			out += fmt.Sprintf("%s,%s,%s,%d,2,%s,\n", backend, srv.name, status, srv.weight, net.JoinHostPort(srv.address, srv.port))
		}
	}
	return out
}

func (p *Process) showServers(backend string) (string, error) {
	servers, ok := p.backends[backend]
	if !ok {
		return "", errors.New("Can't find backend.")
	}
	out := "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight\n"
	for i, srv := range servers {
		out += fmt.Sprintf("3 %s %d %s %s 2 %d %d %d 0 1 0 0 0 0 0 0 - %s - 0 0 - - 0\n",
			backend, i+1, srv.name, srv.address, srv.admin, srv.weight, srv.weight, srv.port)
	}
	return out, nil
}

func (p *Process) setServer(words []string) (string, error) {
	srv, err := p.find(words[0])
	if err != nil {
		return "", err
	}
	switch value := words[2]; words[1] {
	case "addr":
		srv.address = value
		if words[3] == "port" {
			srv.port = words[4]
		}
	case "weight":
		weight, err := strconv.Atoi(value)
		if err != nil || weight < 0 || weight > 256 {
			return "", errors.New("Require <weight> or <weight%>.")
		}
		srv.weight = weight
	case "state":
		admin, ok := map[string]int{"ready": 0, "drain": forcedDrain, "maint": forcedMaint}[value]
		if !ok {
			return "", errors.New("'set server <srv> state' expects 'ready', 'drain' and 'maint'.")
		}
		srv.admin = admin
	default:
		return "", errors.New("usage: set server <backend>/<server> addr | state | weight")
	}
	return "", nil
}

func (p *Process) addServer(full string, words []string) (string, error) {
	backend, name, _ := strings.Cut(full, "/")
	if _, ok := p.backends[backend]; !ok {
		return "", errors.New("No such backend.")
	}
	if existing, _ := p.find(full); existing != nil {
		return "", errors.New("Already exists a server with the same name in backend.")
	}
	line, ok := config.ParseServer(append([]string{"server", name}, words...))
	if !ok {
		return "", errors.New("'server' expects <name> and <addr>[:<port>] as arguments.")
	}
	srv := newServer(line)
	srv.admin = forcedMaint
	p.backends[backend] = append(p.backends[backend], srv)
	return "New server registered.", nil
}

func (p *Process) delServer(full string) (string, error) {
	srv, err := p.find(full)
	switch {
	case err != nil:
		return "", err
	case srv.admin&forcedMaint == 0:
		return "", errors.New("Only servers in maintenance mode can be deleted.")
	}
	backend, _, _ := strings.Cut(full, "/")
	p.backends[backend] = slices.DeleteFunc(p.backends[backend], func(other *server) bool { return other == srv })
	return "Server deleted.", nil
}
