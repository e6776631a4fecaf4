package dataplane

import (
	"fmt"
	"slices"
	"strings"
)

// backendView is what of a backend and its defaults decides about its servers.
type backendView struct {
	name          string
	kind          string
	servers       []serverLine
	byName        map[string]int
	algorithm     string // first word after balance
	hashType      string
	defaultServer bool
	cookie        bool
	used          []string // servers that rules of the backend name
}

// servers compares a backend in which nothing but server lines differs, and
// reports whether that is the case. A listen section is a backend, too.
func (d *difference) servers(have, want section, old, now []line) bool {
	if want.Kind != "backend" && want.Kind != "listen" || d.current.split().conditional || d.desired.split().conditional {
		return false
	}
	if !slices.EqualFunc(withoutServers(old), withoutServers(now), line.equal) {
		return false
	}
	before, ok := view(d.current.split(), have, old)
	if !ok {
		return false
	}
	after, ok := view(d.desired.split(), want, now)
	if !ok {
		return false
	}
	// A default-server counts for the servers below it only.
	if hasOwn(now, "default-server") && !slices.Equal(skeleton(old, after), skeleton(now, before)) {
		return false
	}
	for i := range after.servers {
		s := &after.servers[i]
		if at, ok := before.byName[s.name]; ok {
			d.serverChanges(&after, &before.servers[at], s)
		} else {
			d.serverComes(&after, s)
		}
	}
	for i := range before.servers {
		if s := &before.servers[i]; !after.has(s.name) {
			d.serverGoes(&before, &after, s)
		}
	}
	d.serverOrder(&before, &after)
	return true
}

func (v *backendView) has(name string) bool { _, ok := v.byName[name]; return ok }

func (v *backendView) String() string { return v.kind + " " + v.name }

func withoutServers(lines []line) []line {
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.keyword() == "server" })
}

func hasOwn(lines []line, keyword string) bool {
	return slices.ContainsFunc(lines, func(l line) bool { return l.keyword() == keyword })
}

// skeleton lists the keywords of the lines, with the names of the servers that
// the other side has as well.
func skeleton(lines []line, other backendView) []string {
	var out []string
	for _, l := range lines {
		switch {
		case l.keyword() != "server":
			out = append(out, l.keyword())
		case other.has(l.words[1]):
			out = append(out, "server "+l.words[1])
		}
	}
	return out
}

// view reads a backend. It fails for what the comparison by server cannot do
// justice to: servers that are unreadable or share a name.
func view(x *sectionIndex, s section, lines []line) (backendView, bool) {
	v := backendView{name: s.Name, kind: s.Kind, byName: make(map[string]int), algorithm: "roundrobin"}
	for _, defaults := range x.inherited(s) {
		for _, l := range meaningfulLines(defaults.Text) {
			v.read(l)
		}
	}
	for _, l := range lines {
		if l.words == nil {
			return v, false
		}
		if l.keyword() != "server" {
			v.read(l)
			continue
		}
		// Where variables stand, the words are not what HAProxy will read.
		srv, ok := parseServer(l.words)
		if !ok || v.has(srv.name) || strings.ContainsRune(l.raw, '$') {
			return v, false
		}
		v.byName[srv.name] = len(v.servers)
		v.servers = append(v.servers, srv)
	}
	return v, true
}

func (v *backendView) read(l line) {
	arg := ""
	if len(l.words) > 1 {
		arg = l.words[1]
	}
	switch l.keyword() {
	case "balance":
		v.algorithm, _, _ = strings.Cut(arg, "(")
	case "hash-type":
		v.hashType = arg
	case "default-server":
		v.defaultServer = true
	case "cookie":
		v.cookie = true
	case "no":
		if arg == "cookie" {
			v.cookie = false
		}
	case "use-server":
		v.used = append(v.used, arg)
	}
}

// unordered reports whether servers may come, go and change places while
// HAProxy runs: an algorithm that is dynamic (configuration manual, "balance")
// and does not look at the order or the identifiers of servers.
func (v *backendView) unordered() bool {
	return v.algorithm == "roundrobin" || v.algorithm == "leastconn" || v.algorithm == "random"
}

// weighable reports whether weights other than 0% and 100% may be set at runtime.
func (v *backendView) weighable() bool {
	return v.unordered() || v.algorithm == "first" || v.algorithm != "static-rr" && v.hashType == "consistent"
}

func (d *difference) serverChanges(after *backendView, old, now *serverLine) {
	op := Op{Action: Update, Kind: "server", Parent: after.String(), Name: now.name, Impact: ImpactRuntime}
	do := &action{kind: setServer, backend: after.name, server: now.name}
	for _, name := range serverFields(old, now) {
		from, to := old.value(name), now.value(name)
		if name == "address" {
			if a, ok := old.literal(); ok {
				from = a.String()
			}
			if a, ok := now.literal(); ok {
				to = a.String()
			}
		}
		if name == "state" && !after.defaultServer {
			from, to = orEnabled(from), orEnabled(to)
		}
		if from == to {
			continue
		}
		op.Changes = append(op.Changes, Change{name, redactValue(from, name), redactValue(to, name)})
		field, why := runtimeField(after, old, now, name)
		if why != "" {
			if op.Reason == "" {
				op.Impact, op.Reason = ImpactReload, why
			}
			continue
		}
		do.fields = append(do.fields, field)
	}
	if op.Impact != ImpactReload && now.ordered() && !slices.Equal(old.fixed, now.fixed) {
		op.Changes = append(op.Changes, Change{fieldLine, strings.Join(redactWords(old.args), " "), strings.Join(redactWords(now.args), " ")})
		op.Impact, op.Reason = ImpactReload, "the order of its keywords changed"
	}
	if len(op.Changes) == 0 {
		return
	}
	if op.Impact == ImpactReload {
		do = nil
	}
	d.add(rankServer, op, do)
}

func orEnabled(state string) string {
	if state == "" {
		return "enabled"
	}
	return state
}

// runtimeField returns what to set, or why it cannot be set at runtime.
func runtimeField(v *backendView, old, now *serverLine, name string) (f serverField, why string) {
	value := now.value(name)
	if value == "" && v.defaultServer {
		return f, fmt.Sprintf("the %s comes from a default-server", name)
	}
	if len(now.options[name]) > 1 {
		return f, fmt.Sprintf("the %s is given twice", name)
	}
	switch name {
	case "address":
		_, wasLiteral := old.literal()
		addr, ok := now.literal()
		if !ok || !wasLiteral {
			return f, "only an IP address with a port can change to another at runtime"
		}
		return serverField{name, addr.String()}, ""
	case "weight":
		if !v.weighable() {
			return f, fmt.Sprintf("balance %s has fixed weights", v.algorithm)
		}
		if value == "" {
			value = "1"
		}
		return serverField{name, value}, ""
	case "maxconn":
		if old.value("minconn") != "" || now.value("minconn") != "" || v.defaultServer {
			return f, "the limit of connections depends on minconn"
		}
		if value == "" {
			value = "0"
		}
		return serverField{name, value}, ""
	case "state":
		if value == "disabled" {
			return serverField{name, "maint"}, ""
		}
		return serverField{name, "ready"}, ""
	}
	return f, fmt.Sprintf("%s of a server can change only at a reload", name)
}

func (d *difference) serverComes(v *backendView, s *serverLine) {
	op := Op{Action: Create, Kind: "server", Parent: v.String(), Name: s.name, Impact: ImpactRuntime}
	op.Changes = []Change{{Field: "address", New: s.args[0]}}
	for _, name := range serverFields(s, s)[1:] {
		if value := s.value(name); value != "" {
			op.Changes = append(op.Changes, Change{Field: name, New: redactValue(value, name)})
		}
	}
	if op.Reason = v.whyNotAdd(s); op.Reason != "" {
		op.Impact = ImpactReload
		d.add(rankServer, op, nil)
		return
	}
	d.add(rankServer, op, &action{kind: addServer, backend: v.name, server: s.name, args: s.args})
}

// whyNotAdd says why a server needs a reload to come, "" if it does not.
func (v *backendView) whyNotAdd(s *serverLine) string {
	if why := v.whyFixed(); why != "" {
		return why
	}
	if v.defaultServer {
		return "a server that is added at runtime would ignore the default-server"
	}
	if _, ok := s.literal(); !ok {
		return "only a server with an IP address and a port can be added at runtime"
	}
	var unknown []string
	for name := range s.options {
		if name != "state" && !addable[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Sprintf("a server with %s cannot be added at runtime", strings.Join(unknown, ", "))
	}
	return ""
}

// whyFixed says why servers cannot come and go at runtime, "" if they can.
func (v *backendView) whyFixed() string {
	switch {
	case !v.unordered():
		return fmt.Sprintf("balance %s depends on the list of servers", v.algorithm)
	case v.cookie:
		return "cookies of the backend name its servers"
	}
	return ""
}

func (d *difference) serverGoes(before, v *backendView, s *serverLine) {
	op := Op{Action: Delete, Kind: "server", Parent: v.String(), Name: s.name, Impact: ImpactRuntime}
	op.Changes = []Change{{Field: "address", Old: s.args[0]}}
	op.Reason = v.whyFixed()
	switch {
	case op.Reason != "":
	case slices.Contains(v.used, s.name):
		op.Reason = "a use-server rule names it"
	case before.tracks(s.name), strings.Contains(d.current.Main(), "track "+v.name+"/"+s.name):
		op.Reason = "another server tracks it"
	}
	if op.Reason != "" {
		op.Impact = ImpactReload
		d.add(rankServerGone, op, nil)
		return
	}
	d.add(rankServerGone, op, &action{kind: deleteServer, backend: v.name, server: s.name})
}

// tracks reports whether a server of the backend tracks another one of it.
func (v *backendView) tracks(name string) bool {
	return slices.ContainsFunc(v.servers, func(s serverLine) bool { return slices.Contains(s.options["track"], name) })
}

// serverOrder shows that servers that stay changed places.
func (d *difference) serverOrder(before, after *backendView) {
	names := func(v, other *backendView) []string {
		var names []string
		for i := range v.servers {
			if other.has(v.servers[i].name) {
				names = append(names, v.servers[i].name)
			}
		}
		return names
	}
	old, now := names(before, after), names(after, before)
	if slices.Equal(old, now) {
		return
	}
	op := Op{Action: Update, Kind: after.kind, Name: after.name}
	op.Changes = []Change{{"order of servers", strings.Join(old, ", "), strings.Join(now, ", ")}}
	if !after.unordered() {
		op.Impact, op.Reason = ImpactReload, fmt.Sprintf("balance %s depends on the order of servers", after.algorithm)
	}
	d.add(rankServer, op, nil)
}
