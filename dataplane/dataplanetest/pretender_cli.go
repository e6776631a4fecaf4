package dataplanetest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

// said is an answer to a command. Messages have a severity, as of syslog; what
// is shown has none, which is said by 0.
type said struct {
	severity int
	text     string
}

func shown(text string) said                   { return said{text: text} }
func failed(text string) said                  { return said{3, text} }
func told(format string, args ...any) said     { return said{5, fmt.Sprintf(format, args...)} }
func informed(format string, args ...any) said { return said{6, fmt.Sprintf(format, args...)} }

func (p *pretender) command(command string) (string, error) {
	a := p.carryOut(command)
	if a.severity > 0 && a.text != "" {
		return fmt.Sprintf("[%d]: %s", a.severity, a.text), nil
	}
	return strings.TrimSpace(a.text), nil
}

func (p *pretender) ask(command string) (string, error) {
	return strings.TrimSpace(p.carryOut(command).text), nil
}

func (p *pretender) carryOut(command string) said {
	line, payload, has := strings.Cut(command, "<<\n")
	payload, _, ended := strings.Cut(payload, "\n\n")
	if has && !ended {
		return shown("") // still waiting for the blank line that ends it
	}
	words := strings.Fields(line)
	first := func(n int) string { return strings.Join(words[:min(n, len(words))], " ") }
	rest := func(n int) []string { return append(words[min(n, len(words)):], "", "", "", "", "") }
	switch {
	case first(3) == "show info typed":
		return shown(fmt.Sprintf("1.Version.1:POS:str:3.2.4\n5.Pid.1:CGS:u32:%d\n8.Uptime_sec.1:MDP:u32:1\n", p.pid()))
	case first(3) == "show servers state":
		return p.showServers(rest(3)[0])
	case first(2) == "set server":
		return p.setServer(rest(2))
	case first(2) == "add server":
		return p.addServer(rest(2)[0], words[min(3, len(words)):])
	case first(2) == "del server":
		return p.delServer(rest(2)[0])
	case first(2) == "disable server":
		return p.setServer([]string{rest(2)[0], "state", "maint"})
	case first(2) == "enable server":
		return p.setServer([]string{rest(2)[0], "state", "ready"})
	case slices.Contains([]string{"enable agent", "disable agent", "enable health", "disable health"}, first(2)):
		if _, srv := p.findServer(rest(2)[0]); srv == nil {
			return failed("No such server.")
		}
		return shown("")
	case first(3) == "set maxconn frontend":
		return p.setLimit(rest(3))
	case first(2) == "show stat":
		return p.showStat()
	case len(words) > 1 && words[1] == "ssl":
		return p.ssl(words[0], rest(2), payload)
	case len(words) > 1 && (words[1] == "map" || words[1] == "acl"):
		return p.pattern(words[0], words[1], rest(2), payload)
	}
	return failed("Unknown command: '" + first(1) + "'")
}

// findServer finds backend/server, where either may be nil.
func (p *pretender) findServer(full string) (*loadedBackend, *loadedServer) {
	backend, name, _ := strings.Cut(full, "/")
	b := p.backends[backend]
	if b == nil {
		return nil, nil
	}
	for _, srv := range b.servers {
		if srv.name == name {
			return b, srv
		}
	}
	return b, nil
}

func (p *pretender) setLimit(words []string) said {
	limit, err := strconv.Atoi(words[1])
	switch _, ok := p.limits[words[0]]; {
	case !ok:
		return failed("No such frontend.")
	case err != nil || limit < 0:
		return failed("Value out of range.")
	}
	p.limits[words[0]] = limit
	return shown("")
}

// showStat shows some columns of the statistics.
func (p *pretender) showStat() said {
	var out strings.Builder
	out.WriteString("# pxname,svname,slim,status,weight,type,addr,mode,\n")
	for _, name := range slices.Sorted(maps.Keys(p.limits)) {
		fmt.Fprintf(&out, "%s,FRONTEND,%d,OPEN,,0,,http,\n", name, p.limits[name])
	}
	for _, name := range slices.Sorted(maps.Keys(p.backends)) {
		for _, srv := range p.backends[name].servers {
			status := "UP"
			if srv.down {
				status = "MAINT"
			}
			address := net.JoinHostPort(srv.address, strconv.Itoa(srv.port))
			fmt.Fprintf(&out, "%s,%s,,%s,%d,2,%s,http,\n", name, srv.name, status, srv.weight, address)
		}
		fmt.Fprintf(&out, "%s,BACKEND,,UP,,1,,http,\n", name)
	}
	return shown(out.String())
}

func (p *pretender) showServers(backend string) said {
	b := p.backends[backend]
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
			backend, i+1, srv.name, srv.address, state, srv.admin, srv.weight, srv.weight, srv.port)
	}
	return shown(out.String())
}

func (p *pretender) setServer(words []string) said {
	b, srv := p.findServer(words[0])
	switch {
	case b == nil:
		return failed("No such backend.")
	case srv == nil:
		return failed("No such server.")
	}
	switch value := words[2]; words[1] {
	case "addr":
		srv.address = value
		if len(words) > 4 && words[3] == "port" {
			srv.port, _ = strconv.Atoi(words[4])
		}
		return informed("IP changed, by 'stats socket command'")
	case "weight":
		weight, err := strconv.Atoi(strings.TrimSuffix(value, "%"))
		if err != nil || weight < 0 || weight > 256 {
			return failed("Require <weight> or <weight%>.")
		}
		srv.weight = weight
	case "state":
		switch value {
		case "ready":
			srv.admin, srv.down = 0, false
		case "drain":
			srv.admin, srv.down = forcedDrain, false
		case "maint":
			srv.admin, srv.down = forcedMaint, true
		default:
			return failed("'set server <srv> state' expects 'ready', 'drain' and 'maint'.")
		}
	case "health":
		srv.down = value == "down"
	}
	return shown("")
}

func (p *pretender) addServer(full string, words []string) said {
	b, srv := p.findServer(full)
	_, name, _ := strings.Cut(full, "/")
	switch {
	case b == nil:
		return failed("No such backend.")
	case srv != nil:
		return failed("Already exists a server with the same name in backend.")
	case !b.dynamic:
		return failed("Backend must use a dynamic load balancing to support dynamic servers.")
	case len(words) == 0:
		return failed("'server' expects <name> and <addr>[:<port>] as arguments.")
	}
	srv = readServer(name, words)
	srv.admin, srv.down = forcedMaint, true
	b.servers = append(b.servers, srv)
	return told("New server registered.")
}

func (p *pretender) delServer(full string) said {
	b, srv := p.findServer(full)
	switch {
	case b == nil:
		return failed("No such backend.")
	case srv == nil:
		return failed("No such server.")
	case srv.admin&forcedMaint == 0:
		return failed("Only servers in maintenance mode can be deleted.")
	}
	b.servers = slices.DeleteFunc(b.servers, func(other *loadedServer) bool { return other == srv })
	return told("Server deleted.")
}
