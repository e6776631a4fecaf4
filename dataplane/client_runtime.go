package dataplane

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// maxEntries is the number of map entries beyond which one reload is cheaper
// than a request for each.
const maxEntries = 2000

// entryChange is one map entry to change in the running process.
type entryChange struct {
	action     Action
	file       string
	key, value string
}

// settle decides how each difference gets into the running process, and marks
// in the plan those for which the Dataplane API has no way but a reload.
func (c *Client) settle(j *job) {
	if c.unsettled {
		j.plan.Ops = append(j.plan.Ops, Op{
			Action: Update, Kind: "process", Impact: ImpactReload,
			Reason: "an earlier attempt ended without saying what it achieved",
		})
	}
	var servers serverIndex
	swaps := map[string]bool{}
	for i := range j.plan.Ops {
		op := &j.plan.Ops[i]
		if op.Impact != ImpactRuntime {
			continue
		}
		why := ""
		switch op.Kind {
		case "server":
			if servers.before == nil {
				servers = indexServers(j.before.deployed.main, j.text)
			}
			var actions []string
			if actions, why = servers.actions(op); why == "" {
				j.actions = append(j.actions, actions...)
			}
		case "map entry":
			why = j.mapEntry(op)
		case "certificate":
			if why = swappable(op, j.api); why == "" {
				swaps[op.Name] = true
			}
		default:
			why = "the Dataplane API cannot change this in the running process"
		}
		if why != "" {
			op.Impact, op.Reason = ImpactReload, why
		}
	}
	if len(j.entries) > maxEntries {
		j.plan.Ops[slices.IndexFunc(j.plan.Ops, isEntry)].needReload("more than " + strconv.Itoa(maxEntries) + " map entries change")
	}
	if j.impact() == ImpactReload {
		j.actions, j.entries = nil, nil // the new process reads it all from its files
		return
	}
	for i := range j.writes {
		w := &j.writes[i]
		w.swap = w.file.Kind == Certificate && !w.create && swaps[w.file.Name]
	}
}

func isEntry(o Op) bool { return o.Kind == "map entry" }

func (o *Op) needReload(why string) { o.Impact, o.Reason = ImpactReload, why }

func swappable(op *Op, api dpapi.Info) string {
	switch {
	case op.Action != Update:
		return "the Dataplane API cannot add or remove a certificate in the running process"
	case !api.AtLeast(3, 2):
		return "the Dataplane API before 3.2 cannot change a certificate in the running process"
	}
	return ""
}

// mapEntry takes over one map entry from the plan. It reads the value from the
// file, for a plan is made to be read by people.
func (j *job) mapEntry(op *Op) string {
	file := strings.TrimPrefix(op.Parent, "map ")
	e := entryChange{action: op.Action, file: file, key: op.Name}
	value, times := lookup(j.desired, file, op.Name)
	_, before := lookup(j.before.deployed, file, op.Name)
	e.value = value
	switch {
	case !dpapi.SafeWord(e.key), op.Action != Delete && !dpapi.SafeWord(e.value):
		return "the entry has characters that the Dataplane API cannot pass on"
	case times > 1, before > 1:
		return "the key stands in the map more than once"
	case op.Action != Delete && times != 1:
		return "the entry cannot be found in the file"
	}
	j.entries = append(j.entries, e)
	return ""
}

// lookup finds the value of a key in a map, and how often the key is there.
func lookup(c *Config, name, key string) (value string, times int) {
	f, ok := c.File(Map, name)
	if !ok {
		return "", 0
	}
	for line := range bytes.Lines(f.Content) {
		text := strings.TrimSpace(string(line))
		k, v, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
		if k == key && !strings.HasPrefix(text, "#") {
			value, times = strings.TrimSpace(v), times+1
		}
	}
	return value, times
}

// serverIndex finds the server lines of two texts by "backend name/server".
type serverIndex struct{ before, after map[string][]string }

func indexServers(before, after string) serverIndex {
	index := func(text string) map[string][]string {
		servers := map[string][]string{}
		for _, s := range haproxycfg.Split(text) {
			if s.Kind != "backend" && s.Kind != "listen" {
				continue
			}
			for line := range strings.Lines(s.Text) {
				if words, err := haproxycfg.Fields(line); err == nil && len(words) > 2 && words[0] == "server" {
					servers[s.Kind+" "+s.Name+"/"+words[1]] = words[2:]
				}
			}
		}
		return servers
	}
	return serverIndex{index(before), index(after)}
}

// actions gives the runtime actions that change a server as the plan says, or
// why there are none. Without a state to leave or enter they come in the order
// address, weight; a server goes to maintenance before that and leaves it after.
func (x serverIndex) actions(op *Op) (actions []string, why string) {
	if op.Action != Update {
		return nil, "the Dataplane API cannot add or remove a server in the running process and be sure of its state"
	}
	key := op.Parent + "/" + op.Name
	before, okBefore := x.before[key]
	after, okAfter := x.after[key]
	_, backend, _ := strings.Cut(op.Parent, " ")
	if !okBefore || !okAfter || !dpapi.SafeWord(backend) || !dpapi.SafeWord(op.Name) {
		return nil, "the server cannot be named to the Dataplane API"
	}
	was, is := readServer(before), readServer(after)
	if !slices.Equal(was.other, is.other) {
		return nil, "the Dataplane API cannot change these settings in the running process"
	}
	target := backend + " " + op.Name + " "
	if is.disabled && !was.disabled {
		actions = append(actions, "SetServerState "+target+"maint")
	}
	if was.address != is.address {
		ip, port, ok := literal(is.address)
		if _, _, okWas := literal(was.address); !ok || !okWas {
			return nil, "the address is not an IP address with a port"
		}
		actions = append(actions, "SetServerAddr "+target+ip+" "+port)
	}
	if was.weight != is.weight {
		if is.weight == "" {
			return nil, "the weight goes back to its default"
		}
		actions = append(actions, "SetServerWeight "+target+is.weight)
	}
	if was.disabled && !is.disabled {
		actions = append(actions, "SetServerState "+target+"ready")
	}
	if len(actions) == 0 {
		return nil, "the Dataplane API cannot change these settings in the running process"
	}
	return actions, ""
}

// server is a server line taken apart in what can change at runtime and the rest.
type server struct {
	address, weight string
	disabled        bool
	other           []string
}

func readServer(words []string) server {
	s := server{address: words[0]}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "weight" && i+1 < len(words):
			i++
			s.weight = words[i]
		case w == "disabled":
			s.disabled = true
		case w == "enabled":
			s.disabled = false
		default:
			s.other = append(s.other, w)
		}
	}
	return s
}

// literal takes "192.0.2.1:80" or "[2001:db8::1]:80" apart.
func literal(address string) (ip, port string, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", false
	}
	a, err := netip.ParseAddr(host)
	if err != nil || a.Zone() != "" {
		return "", "", false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", false
	}
	return a.String(), port, true
}
