package dataplane

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// backendView is what of a backend and its defaults decides about its servers.
type backendView struct {
	name          string
	kind          string
	servers       []serverLine
	byName        map[string]int
	algorithm     string // first word after balance
	hashType      string
	defaultServer []string // words of all default-server lines so far
	obscure       bool     // the words of a default-server are not what HAProxy reads
	mode          string
	dynamicCookie bool
	used          []string // servers that rules of the backend name
}

// servers compares a backend in which nothing but server lines differs, and
// reports whether that is the case. A listen section is a backend, too.
func (d *difference) servers(have, want section, old, now []line) bool {
	if d.limits(have, want, old, now) {
		return true
	}
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
	if before.mode == "log" || after.mode == "log" {
		return false // such a backend copies the addresses of its servers when it starts
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
		srv, ok := parseServer(l.words, v.defaultServer...)
		if !ok || v.obscure || v.has(srv.name) || strings.ContainsRune(l.raw, '$') {
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
		v.defaultServer = append(v.defaultServer, l.words[1:]...)
		v.obscure = v.obscure || strings.ContainsRune(l.raw, '$')
	case "mode":
		v.mode = arg
	case "cookie":
		v.dynamicCookie = slices.Contains(l.words, "dynamic")
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
	op.Changes, do.fields, op.Reason = d.changedFields(after, old, now)
	if len(op.Changes) == 0 {
		return
	}
	if op.Reason != "" {
		op.Impact, do = ImpactReload, nil
	}
	d.add(rankServer, op, do)
}

// changedFields returns in what two servers differ, what to set so that the old
// one becomes the new one, and why that is not possible at runtime, "" if it is.
func (d *difference) changedFields(v *backendView, old, now *serverLine) (changes []Change, fields []serverField, why string) {
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
		if name == "state" {
			from, to = orEnabled(from), orEnabled(to)
		}
		if from == to {
			continue
		}
		changes = append(changes, Change{name, redactValue(from, name), redactValue(to, name)})
		field, no := d.runtimeField(v, old, now, name)
		why = cmp.Or(why, no)
		if no == "" {
			fields = append(fields, field)
		}
	}
	if why == "" && now.ordered() && !slices.Equal(old.fixed, now.fixed) {
		changes = append(changes, Change{fieldLine, strings.Join(redactWords(old.args), " "), strings.Join(redactWords(now.args), " ")})
		why = "the order of its keywords changed"
	}
	return changes, fields, why
}

func orEnabled(state string) string {
	if state == "" {
		return "enabled"
	}
	return state
}

// runtimeField returns what to set, or why it cannot be set at runtime.
func (d *difference) runtimeField(v *backendView, old, now *serverLine, name string) (f serverField, why string) {
	if !isRuntimeField(name) {
		return f, fmt.Sprintf("%s of a server can change only at a reload", name)
	}
	if why := d.target.whyNot("server", Update, name); why != "" {
		return f, why
	}
	if why := whyNoCommand(v.name, now.name); why != "" {
		return f, why
	}
	value := now.value(name)
	f = serverField{name, value}
	switch name {
	case "address":
		_, wasLiteral := old.literal()
		addr, ok := now.literal()
		f.value = addr.String()
		if !ok || !wasLiteral {
			why = "only an IP address with a port can change to another at runtime"
		}
	case "weight":
		switch {
		case !v.weighable():
			why = fmt.Sprintf("balance %s has fixed weights", v.algorithm)
		case old.has("agent-check") || now.has("agent-check"):
			why = "an agent check counts its percentages from the weight at the start"
		}
		f.value = cmp.Or(value, "1")
	case "maxconn":
		if old.has("minconn") || now.has("minconn") {
			why = "the limit of connections depends on minconn"
		}
		f.value = cmp.Or(value, "0")
	case "state":
		f.value = "ready"
		if value == "disabled" {
			f.value = "maint"
		}
	default:
		return checkField(old, now, f)
	}
	return f, why
}

// isRuntimeField reports whether the table has anything to say about a field.
func isRuntimeField(name string) bool {
	return slices.ContainsFunc(runtimeChanges, func(c RuntimeChange) bool {
		return c.Kind == "server" && c.Action == Update && c.Field == name
	})
}

// checkField is runtimeField for what belongs to health and agent checks.
func checkField(old, now *serverLine, f serverField) (_ serverField, why string) {
	both := func(keyword string) bool { return old.has(keyword) && now.has(keyword) }
	switch f.name {
	case "port", "addr":
		switch {
		case !both("check") || now.has("no-check"):
			return f, "only a health check that runs can change"
		case old.checkElsewhere() != now.checkElsewhere() && now.wrapped():
			return f, "a health check with an address or a port of its own speaks TLS and the PROXY protocol in another way"
		}
		if f.name == "port" {
			if old.has("agent-check") && !both("agent-port") || now.has("agent-check") && !now.has("agent-port") {
				return f, "the agent check has the same port"
			}
			f.value = cmp.Or(f.value, "0")
			return f, whyNotNumber(f)
		}
		if old.has("agent-check") || now.has("agent-check") {
			return f, "the agent check has the same address"
		}
		return f, whyNotAddress(f)
	case "agent-addr", "agent-port", "agent-send":
		if !both("agent-check") || now.has("no-agent-check") {
			return f, "only an agent check that runs can change"
		}
	}
	switch {
	case f.name == "agent-addr":
		return f, whyNotAddress(f)
	case f.name == "agent-port":
		return f, whyNotNumber(f)
	case !both(f.name):
		return f, "what is sent to an agent can only change to something else"
	case !haproxyctl.Plain(f.value):
		return f, "it has characters that the runtime commands do not take"
	}
	return f, ""
}

func whyNotNumber(f serverField) string {
	if _, err := strconv.ParseUint(f.value, 10, 16); err != nil {
		return "only a number can be set at runtime"
	}
	return ""
}

func whyNotAddress(f serverField) string {
	if _, err := netip.ParseAddr(f.value); err != nil {
		return "only an IP address can be set at runtime"
	}
	return ""
}

// whyNoCommand says why names or words cannot stand in a runtime command.
func whyNoCommand(words ...string) string {
	for _, w := range words {
		if !haproxyctl.Plain(w) {
			return fmt.Sprintf("%q cannot stand in a runtime command", w)
		}
	}
	return ""
}

func (d *difference) serverComes(v *backendView, s *serverLine) {
	op := Op{Action: Create, Kind: "server", Parent: v.String(), Name: s.name, Impact: ImpactRuntime}
	op.Changes = []Change{{Field: "address", New: s.args[0]}}
	for _, name := range serverFields(s, s)[1:] {
		if value := s.value(name); value != "" {
			op.Changes = append(op.Changes, Change{Field: name, New: redactValue(value, name)})
		}
	}
	if op.Reason = d.whyNotAdd(v, s); op.Reason != "" {
		op.Impact = ImpactReload
		d.add(rankServer, op, nil)
		return
	}
	d.add(rankServer, op, &action{kind: addServer, backend: v.name, server: s.name, args: s.args})
}

// maxAddWords keeps the words of a command, which may be 64, with room for those
// that are added to them.
const maxAddWords = 52

// whyNotAdd says why a server needs a reload to come, "" if it does not.
func (d *difference) whyNotAdd(v *backendView, s *serverLine) string {
	if why := d.target.whyNot("server", Create, ""); why != "" {
		return why
	}
	if why := v.whyFixed(); why != "" {
		return why
	}
	if _, ok := s.literal(); !ok {
		return "only a server with an IP address and a port can be added at runtime"
	}
	if why := d.whyNotAddable(v, s); why != "" {
		return why
	}
	if len(s.args) > maxAddWords {
		return "a server with so many words does not fit into a runtime command"
	}
	return whyNoCommand(append([]string{v.name, s.name}, s.args...)...)
}

// whyNotAddable names the keywords with which a server cannot be added.
func (d *difference) whyNotAddable(v *backendView, s *serverLine) string {
	var unknown []string
	fresh := false
	for name, values := range s.options {
		switch name {
		case "state":
			continue
		case "cookie":
			if d.target.whyNot("server", Create, "cookie") == "" {
				continue
			}
		case "ca-file", "crl-file", "crt":
			// HAProxy may no longer be able to read files.
			fresh = fresh || slices.ContainsFunc(values, func(path string) bool { return !strings.Contains(d.current.main, path) })
		}
		if !addable[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Sprintf("a server with %s cannot be added at runtime", strings.Join(unknown, ", "))
	}
	for _, name := range s.defaults {
		if notInherited[name] {
			return fmt.Sprintf("%s of a default-server cannot be told to a server at runtime", name)
		}
	}
	switch {
	case fresh:
		return "HAProxy reads files that it does not know yet at a reload"
	case v.dynamicCookie && d.target.whyNot("server", Create, "cookie") != "":
		return "a server that is added at runtime would have no dynamic cookie"
	}
	return ""
}

// whyFixed says why servers cannot come and go at runtime, "" if they can.
func (v *backendView) whyFixed() string {
	if !v.unordered() {
		return fmt.Sprintf("balance %s depends on the list of servers", v.algorithm)
	}
	return ""
}

func (d *difference) serverGoes(before, v *backendView, s *serverLine) {
	op := Op{Action: Delete, Kind: "server", Parent: v.String(), Name: s.name, Impact: ImpactRuntime}
	op.Changes = []Change{{Field: "address", Old: s.args[0]}}
	op.Reason = cmp.Or(d.target.whyNot("server", Delete, ""), v.whyFixed(), whyNoCommand(v.name, s.name))
	switch {
	case op.Reason != "":
	case slices.Contains(v.used, s.name):
		op.Reason = "a use-server rule names it"
	case before.tracks(s.name), strings.Contains(d.current.Main(), "track "+v.name+"/"+s.name):
		op.Reason = "another server tracks it"
	case d.sampled(v.name, s.name):
		op.Reason = "a sample fetch names it"
	}
	if op.Reason != "" {
		op.Impact = ImpactReload
		d.add(rankServerGone, op, nil)
		return
	}
	d.add(rankServerGone, op, &action{kind: deleteServer, backend: v.name, server: s.name, args: s.args})
}

// sampleFetch matches the sample fetches that take a server (configuration
// manual, section 7.3.3), such as srv_is_up(shop/a).
var sampleFetch = regexp.MustCompile(`srv_\w+\(([^),\s]+)`)

// sampled reports whether a sample fetch may name a server, which HAProxy then
// does not delete. One without a backend is taken to mean any backend.
func (d *difference) sampled(backend, server string) bool {
	if d.fetched == nil {
		d.fetched = make(map[string]bool)
		for _, match := range sampleFetch.FindAllStringSubmatch(d.current.main, -1) {
			d.fetched[match[1]] = true
		}
	}
	return d.fetched[server] || d.fetched[backend+"/"+server]
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
