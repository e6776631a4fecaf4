package dataplane

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// serverChange is what a server is set to, for the check afterwards.
type serverChange struct {
	backend, server string
	fields          []serverField
	gone            bool
	comes           map[string]any // what the API needs to add it; nil for one that is there
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
	certificates := map[string]actionKind{}
	whole := map[string]string{} // file -> why it takes a reload
	for i := range d.steps {
		op := &j.plan.Ops[i]
		if op.Impact != ImpactRuntime {
			continue
		}
		var why string
		switch do := d.steps[i].do; {
		case do == nil: // belongs to an earlier step of the same file
			why = whole[op.Parent] + whole[op.Kind+" "+op.Name]
		default:
			if why = c.settleAction(j, do); why != "" && do.file.Kind != "" {
				whole[string(do.file.Kind)+" "+do.file.Name] = why
			}
			if do.kind == updateCertificate || do.kind == newCertificate {
				certificates[do.file.Name] = do.kind
			}
		}
		if why != "" {
			op.Impact, op.Reason = ImpactReload, why
		}
	}
	if j.impact() == ImpactReload {
		j.forgetRuntime() // the new process reads it all from its files
		return
	}
	for i := range j.writes {
		w := &j.writes[i]
		if kind, ok := certificates[w.file.Name]; ok && w.file.Kind == Certificate {
			w.swap = kind == updateCertificate && !w.create
			w.load = kind == newCertificate && w.create
		}
	}
}

// forgetRuntime leaves a reload to do what would have been done without one.
func (j *job) forgetRuntime() {
	j.actions, j.entries, j.replaces, j.servers, j.lists, j.forgets = nil, nil, nil, nil, nil, nil
	j.patterns, j.cas, j.limits = nil, nil, nil
}

// settleAction adds to the job what carries out an action, or says why the API
// cannot.
func (c *Client) settleAction(j *job, do *action) (why string) {
	switch do.kind {
	case setServer:
		return j.setServer(do)
	case addServer:
		return j.addServer(do)
	case deleteServer:
		return j.deleteServer(do)
	case changeMap:
		return j.changeMap(do)
	case updateCertificate, newCertificate:
		return ""
	case deleteCertificate:
		j.forgets = append(j.forgets, do.file)
		return ""
	case addCrtListEntry, deleteCrtListEntry, updateCrtListEntry:
		return j.changeList(do, c.opts.Layout)
	case changePatterns:
		return j.changePatterns(do)
	case updateCA:
		j.cas = append(j.cas, do.file)
		return ""
	case setFrontend:
		return j.setFrontend(do)
	}
	return "the Dataplane API cannot make this change in the running process"
}

// setServer adds the runtime actions that change a server, or says why there
// are none. A server goes to maintenance before anything else changes, and
// leaves it last.
func (j *job) setServer(do *action) (why string) {
	if why := whyNotNamed(do); why != "" {
		return why
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
	j.servers = append(j.servers, serverChange{backend: do.backend, server: do.server, fields: do.fields})
	return ""
}

func whyNotNamed(do *action) string {
	if !dpapi.SafeWord(do.backend) || !dpapi.SafeWord(do.server) {
		return "the name has characters that the Dataplane API cannot pass on"
	}
	return ""
}

// addServer adds the calls that add a server, or says why there are none.
func (j *job) addServer(do *action) (why string) {
	if why := whyNotNamed(do); why != "" {
		return why
	}
	s, ok := parseServer(append([]string{"server", do.server}, do.args...))
	if !ok {
		return "the words of the server cannot be told apart"
	}
	fields, why := addedServer(&s)
	if why != "" {
		return why
	}
	state := "ready"
	if slices.Contains(s.options["state"], "disabled") {
		state = "maint"
	}
	address, _ := s.literal()
	come := serverChange{
		backend: do.backend, server: do.server, comes: fields,
		fields: []serverField{{"address", address.String()}, {"state", state}},
	}
	if weight, ok := fields["weight"]; ok {
		come.fields = append(come.fields, serverField{"weight", fmt.Sprint(weight)})
	}
	j.servers = append(j.servers, come)
	return ""
}

// addedServer returns the fields of a server as the API wants them, or says why
// it would not be the same as after a reload.
func addedServer(s *serverLine) (fields map[string]any, why string) {
	address, ok := s.literal()
	if !ok {
		return nil, "only a server with an IP address and a port can be added at runtime"
	}
	fields = map[string]any{"name": s.name, "address": address.Addr().String(), "port": int(address.Port())}
	if address.Addr().Is6() {
		fields["address"] = "[" + address.Addr().String() + "]"
	}
	for _, keyword := range slices.Sorted(maps.Keys(s.options)) { // so that the reason is always the same
		values := s.options[keyword]
		if keyword == "state" {
			continue
		}
		if keyword == "check" || keyword == "agent-check" {
			return nil, "nothing turns on the health checks of a server that the Dataplane API adds"
		}
		field, ok := addableFields[keyword]
		if !ok || len(values) != 1 {
			return nil, fmt.Sprintf("the Dataplane API cannot add a server with %s", keyword)
		}
		value, ok := field.value(values[0])
		if !ok {
			return nil, fmt.Sprintf("the Dataplane API cannot add a server with %s %s", keyword, values[0])
		}
		fields[field.name] = value
	}
	return fields, ""
}

// deleteServer adds the call that removes a server, or says why there is none.
func (j *job) deleteServer(do *action) (why string) {
	if why := whyNotNamed(do); why != "" {
		return why
	}
	j.servers = append(j.servers, serverChange{backend: do.backend, server: do.server, gone: true})
	return ""
}

// addableField is the name that the API has for a keyword of a server line.
type addableField struct {
	name string
	kind fieldKind
}

type fieldKind int

const (
	fieldWord   fieldKind = iota // a string, as it is
	fieldNumber                  // an integer
	fieldFlag                    // "enabled"
)

// addableFields are the keywords with which the API adds a server that is as
// after a reload (specification of the Dataplane API, "runtime_add_server").
var addableFields = map[string]addableField{
	"alpn": {"alpn", fieldWord}, "backup": {"backup", fieldFlag}, "ca-file": {"ssl_cafile", fieldWord},
	"ciphers": {"ciphers", fieldWord}, "ciphersuites": {"ciphersuites", fieldWord}, "crt": {"ssl_certificate", fieldWord},
	"maxconn": {"maxconn", fieldNumber}, "maxqueue": {"maxqueue", fieldNumber}, "minconn": {"minconn", fieldNumber},
	"pool-low-conn": {"pool_low_conn", fieldNumber}, "pool-max-conn": {"pool_max_conn", fieldNumber},
	"proto": {"proto", fieldWord}, "send-proxy": {"send-proxy", fieldFlag}, "send-proxy-v2": {"send-proxy-v2", fieldFlag},
	"sni": {"sni", fieldWord}, "ssl": {"ssl", fieldFlag}, "ssl-max-ver": {"ssl_max_ver", fieldWord},
	"ssl-min-ver": {"ssl_min_ver", fieldWord}, "verify": {"verify", fieldWord}, "verifyhost": {"verifyhost", fieldWord},
	"weight": {"weight", fieldNumber}, "ws": {"ws", fieldWord},
}

func (f addableField) value(text string) (value any, ok bool) {
	switch f.kind {
	case fieldFlag:
		return "enabled", true
	case fieldNumber:
		n, err := parseDecimal(text)
		return n, err == nil
	}
	return text, dpapi.SafeWord(text)
}

// changeList adds the calls that change an entry of a crt-list, or says why
// there are none.
func (j *job) changeList(do *action, layout Layout) (why string) {
	for _, word := range do.entry {
		if !dpapi.SafeWord(word) {
			return "the entry has characters that the Dataplane API cannot pass on"
		}
	}
	entry := dpapi.CrtListEntry{File: do.entry[0]}
	if i := strings.LastIndexByte(do.entry[0], '/'); i < 0 || strings.Contains(do.entry[0], ":") {
		return "the certificate of the entry is not named by its path"
	}
	options := false
	for _, word := range do.entry[1:] {
		switch {
		case strings.HasPrefix(word, "["):
			options = true
			entry.Options = strings.TrimPrefix(word, "[")
		case options:
			entry.Options += " " + word
		default:
			entry.Filters = append(entry.Filters, word)
		}
		if options && strings.HasSuffix(word, "]") {
			options = false
			entry.Options = strings.TrimSuffix(entry.Options, "]")
		}
	}
	j.lists = append(j.lists, listChange{list: layout.Path(CRTList, do.file.Name), kind: do.kind, entry: entry})
	return ""
}

// listChange is what happens to an entry of a crt-list.
type listChange struct {
	list  string // its path
	kind  actionKind
	entry dpapi.CrtListEntry
}
