package dataplane

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// maxEntries is the number of map entries beyond which one reload is cheaper
// than a request for each.
const maxEntries = 2000

// entryChange is one map entry to change in the running process.
type entryChange struct {
	file string
	mapChange
}

// serverChange is what a server is set to, for the check afterwards.
type serverChange struct {
	backend, server string
	fields          []serverField
}

// settle decides how each difference gets into the running process, and marks
// in the plan those for which the Dataplane API has no way but a reload.
func (c *Client) settle(j *job, d *difference) {
	j.plan = d.plan()
	if c.unsettled {
		j.plan.Ops = append(j.plan.Ops, Op{
			Action: Update, Kind: "process", Impact: ImpactReload,
			Reason: "an earlier attempt ended without saying what it achieved",
		})
	}
	swaps := map[string]bool{}
	maps := map[string]string{} // map -> why its entries take a reload
	for i := range d.steps {
		op := &j.plan.Ops[i]
		if op.Impact != ImpactRuntime {
			continue
		}
		var why string
		switch do := d.steps[i].do; {
		case do == nil: // belongs to an earlier step of the same map
			why = maps[op.Parent] + maps["map "+op.Name]
		case do.kind == setServer:
			why = j.setServer(do)
		case do.kind == changeMap:
			why = j.changeMap(do)
			maps["map "+do.file.Name] = why
		case do.kind == updateCertificate:
			swaps[do.file.Name] = true
			if !j.api.AtLeast(3, 2) {
				why = "the Dataplane API before 3.2 cannot change a certificate in the running process"
			}
		case do.kind == addServer || do.kind == deleteServer:
			why = "the Dataplane API cannot add or remove a server in the running process"
		default:
			why = "the Dataplane API cannot add or remove a certificate in the running process"
		}
		if why != "" {
			op.Impact, op.Reason = ImpactReload, why
		}
	}
	if j.impact() == ImpactReload {
		j.actions, j.entries, j.servers = nil, nil, nil // the new process reads it all from its files
		return
	}
	for i := range j.writes {
		w := &j.writes[i]
		w.swap = w.file.Kind == Certificate && !w.create && swaps[w.file.Name]
	}
}

// setServer adds the runtime actions that change a server, or says why there
// are none. A server goes to maintenance before anything else changes, and
// leaves it last.
func (j *job) setServer(do *action) (why string) {
	if !dpapi.SafeWord(do.backend) || !dpapi.SafeWord(do.server) {
		return "the name has characters that the Dataplane API cannot pass on"
	}
	target := do.backend + " " + do.server + " "
	var first, middle, last []string
	for _, f := range do.fields {
		if !dpapi.SafeWord(f.value) {
			return "the value has characters that the Dataplane API cannot pass on"
		}
		switch f.name {
		case "state":
			if f.value == "maint" {
				first = append(first, "SetServerState "+target+f.value)
			} else {
				last = append(last, "SetServerState "+target+f.value)
			}
		case "address":
			host, port, err := net.SplitHostPort(f.value)
			if err != nil {
				return "the address has no port"
			}
			middle = append(middle, "SetServerAddr "+target+host+" "+port)
		case "weight":
			middle = append(middle, "SetServerWeight "+target+f.value)
		default:
			return fmt.Sprintf("the Dataplane API cannot change the %s of a server in the running process", f.name)
		}
	}
	j.actions = slices.Concat(j.actions, first, middle, last)
	j.servers = append(j.servers, serverChange{do.backend, do.server, do.fields})
	return ""
}

// changeMap adds the changes of one map, or says why there are none.
func (j *job) changeMap(do *action) (why string) {
	if speaksOfSecrets(do.file.Name) {
		return "its keys would stand in the paths of requests, which are logged"
	}
	if do.replace {
		return "the order of the entries, or a key that stands there twice, is beyond the Dataplane API"
	}
	if len(j.entries)+len(do.changes) > maxEntries {
		return "more than " + strconv.Itoa(maxEntries) + " map entries change"
	}
	for _, e := range do.changes {
		if !dpapi.SafeWord(e.key) || e.action != Delete && !dpapi.SafeWord(e.value) {
			return "an entry has characters that the Dataplane API cannot pass on"
		}
	}
	for _, e := range do.changes {
		j.entries = append(j.entries, entryChange{do.file.Name, e})
	}
	return ""
}
