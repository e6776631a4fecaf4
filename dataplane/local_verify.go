package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// serverState is what HAProxy says about a server.
type serverState struct {
	id                  int
	address, port       string
	weight, operational int
	maintenance         bool

	checkPort, checkAddr, agentPort, agentAddr string // "" where that HAProxy does not tell
}

// serverStates are the servers of a backend by name.
type serverStates map[string]serverState

// states asks for the servers of a backend.
func (a *applier) states(ctx context.Context, backend string) (serverStates, error) {
	answer, err := a.conn.Exec(ctx, "show servers state "+backend)
	if err != nil {
		return nil, err
	}
	return parseStates(answer)
}

// parseStates reads the answer to "show servers state" (management manual,
// section 9.3): the columns by their names, which grow from version to version.
func parseStates(answer string) (serverStates, error) {
	states := make(serverStates)
	column := make(map[string]int)
	for l := range strings.Lines(answer) {
		words := strings.Fields(l)
		if len(words) < 2 {
			continue
		}
		if words[0] == "#" {
			for i, name := range words[1:] {
				column[name] = i
			}
			continue
		}
		var err error
		field := func(name string) string {
			i, ok := column[name]
			if !ok || i >= len(words) {
				err = fmt.Errorf("show servers state: no %s in %q", name, strings.TrimSpace(l))
				return "0"
			}
			return words[i]
		}
		number := func(name string) int {
			n, convErr := strconv.Atoi(field(name))
			err = errors.Join(err, convErr)
			return n
		}
		optional := func(name string) string {
			if i, ok := column[name]; ok && i < len(words) {
				return words[i]
			}
			return ""
		}
		const forcedMaintenance = 0x01
		s := serverState{id: number("srv_id"), address: field("srv_addr"), port: field("srv_port"),
			weight: number("srv_uweight"), operational: number("srv_op_state"),
			maintenance: number("srv_admin_state")&forcedMaintenance != 0,
			checkPort:   optional("srv_check_port"), checkAddr: optional("srv_check_addr"),
			agentPort: optional("srv_agent_port"), agentAddr: optional("srv_agent_addr")}
		name := field("srv_name")
		if err != nil {
			return nil, err
		}
		states[name] = s
	}
	if len(column) == 0 {
		return nil, &refused{"show servers state", answer}
	}
	return states, nil
}

// readBack checks that the servers that were touched are as they should be. The
// answers to single commands do not tell all: a command may be taken and yet
// another part of HAProxy have the last word.
func (a *applier) readBack(ctx context.Context, actions []*action) error {
	if len(a.touched) == 0 {
		return nil
	}
	slices.SortStableFunc(a.touched, func(x, y serverRef) int { return strings.Compare(x.backend, y.backend) })
	want := make(map[serverRef]*action, len(actions))
	for _, do := range actions {
		want[serverRef{do.backend, do.server}] = do
	}
	byBackend, err := a.touchedStates(ctx)
	if err != nil {
		return err
	}
	for _, ref := range a.touched {
		states := byBackend[ref.backend]
		if want[ref].kind == deleteServer {
			_, there := states[ref.server]
			if _, leaves := a.l.leaving[ref]; there && !leaves {
				return fmt.Errorf("server %s/%s is still there after the change", ref.backend, ref.server)
			}
			continue
		}
		what := states.misses(ref.server, want[ref])
		if what == "address" {
			if states, err = a.await(ctx, ref.backend, func(now serverStates) bool { return now.misses(ref.server, want[ref]) != what }); err != nil {
				return err
			}
			what = states.misses(ref.server, want[ref])
			byBackend[ref.backend] = states
		}
		switch what {
		case "":
		case missing:
			return fmt.Errorf("server %s/%s is missing after the change", ref.backend, ref.server)
		default:
			return fmt.Errorf("server %s/%s has another %s after the change", ref.backend, ref.server, what)
		}
	}
	return a.checkServerLimits(ctx, want)
}

// touchedStates asks for the servers of all backends with a change, at once.
func (a *applier) touchedStates(ctx context.Context) (map[string]serverStates, error) {
	var backends, commands []string
	for i, ref := range a.touched {
		if i == 0 || a.touched[i-1].backend != ref.backend {
			backends, commands = append(backends, ref.backend), append(commands, "show servers state "+ref.backend)
		}
	}
	answers, err := a.conn.Batch(ctx, commands)
	if err != nil {
		return nil, err
	}
	states := make(map[string]serverStates, len(backends))
	for i, backend := range backends {
		if states[backend], err = parseStates(answers[i]); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// A new address is in use after a few turns of HAProxy's loop, in each of which
// it may answer. On a busy host, time alone says little.
const (
	waitForAddress   = 3 * time.Second
	answersToAddress = 100
)

// await asks for the servers of a backend until they are as wanted, or for so
// long and so often that they will not become so. From HAProxy 2.9 on a command
// only queues the change of an address, which a task of its own carries out.
func (a *applier) await(ctx context.Context, backend string, wanted func(serverStates) bool) (serverStates, error) {
	pause := time.NewTicker(pollEvery)
	defer pause.Stop()
	start := time.Now()
	for answers := 1; ; answers++ {
		states, err := a.states(ctx, backend)
		if err != nil || wanted(states) {
			return states, err
		}
		if answers >= answersToAddress && time.Since(start) > waitForAddress {
			return states, nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

const missing = "nothing"

// misses names what of a server is not as the action wants it.
func (s serverStates) misses(server string, do *action) string {
	state, ok := s[server]
	if !ok {
		return missing
	}
	return state.misses(do)
}

// misses names the field in which a server is not as the action wants it.
func (s serverState) misses(do *action) string {
	fields := do.fields
	if do.kind == addServer {
		line, ok := parseServer(append([]string{"server", do.server}, do.args...))
		if !ok {
			return "line"
		}
		addr, _ := line.literal()
		state := "ready"
		if line.value("state") == "disabled" {
			state = "maint"
		}
		fields = []serverField{{"address", addr.String()}, {"state", state}}
		if weight := line.value("weight"); weight != "" {
			fields = append(fields, serverField{"weight", weight})
		}
	}
	for _, f := range fields {
		switch f.name {
		case "address":
			if host, port := splitAddress(f.value); !sameAddress(host, s.address) || port != s.port {
				return "address"
			}
		case "weight":
			if n, err := strconv.Atoi(f.value); err != nil || n != s.weight {
				return "weight"
			}
		case "state":
			if (f.value == "maint") != s.maintenance {
				return "state"
			}
		case "port", "agent-port":
			if is := map[string]string{"port": s.checkPort, "agent-port": s.agentPort}[f.name]; is != "" && is != f.value {
				return f.name
			}
		case "addr", "agent-addr":
			if is := map[string]string{"addr": s.checkAddr, "agent-addr": s.agentAddr}[f.name]; is != "" && !sameAddress(is, f.value) {
				return f.name
			}
		}
	}
	return ""
}

// sameAddress compares what HAProxy and this package write for an address, of
// which there are several forms.
func sameAddress(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := netip.ParseAddr(a)
	y, err2 := netip.ParseAddr(b)
	return err1 == nil && err2 == nil && x == y
}

// infoField returns a field of the answer to "show info", "" if it has none.
func infoField(info, name string) string {
	for l := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(l, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
