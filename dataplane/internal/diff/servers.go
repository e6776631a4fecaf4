package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// backend is the part of a backend and its defaults that decides about its servers.
type backend struct {
	section       *config.Section
	servers       []config.Server
	byName        map[string]int
	balance       change.Balance
	mode          string
	defaultServer []string // words of all default-server lines
	dynamicCookie bool
	used          []string // servers that rules of the backend name
	tracked       map[string]bool
	obscure       bool // HAProxy may read other words than its lines show
	ahead         bool // see change.Step
}

// servers compares the servers of two versions of a section by their names. It reports
// whether that is possible. If it is not, the lines decide.
func (d *difference) servers(have, want *config.Section, before, after []config.Line) bool {
	if want.Kind != "backend" && want.Kind != "listen" || want.Nth > 0 || d.conditional() {
		return false
	}
	was, is := newBackend(d.current.Index(), have, before), newBackend(d.desired.Index(), want, after)
	// The process learns of other defaults only at a reload, and then applies them to all
	// servers.
	was.read(before, is.defaultServer)
	is.read(after, is.defaultServer)
	if was.obscure || is.obscure || was.mode == "log" || is.mode == "log" {
		return false // a backend of mode log copies the addresses of its servers when it starts
	}
	is.ahead = slices.Equal(was.defaultServer, is.defaultServer) && was.mode == is.mode && was.balance == is.balance
	for i := range is.servers {
		s := &is.servers[i]
		if at, ok := was.byName[s.Name]; ok {
			d.serverChanges(was, is, &was.servers[at], s)
		} else {
			d.serverComes(was, is, s)
		}
	}
	for i := range was.servers {
		if s := &was.servers[i]; !is.has(s.Name) {
			d.serverGoes(was, is, s)
		}
	}
	d.serverOrder(was, is)
	return true
}

func (b *backend) has(name string) bool { _, ok := b.byName[name]; return ok }

func withoutServers(lines []config.Line) []config.Line {
	return slices.DeleteFunc(slices.Clone(lines), func(l config.Line) bool { return l.Keyword() == "server" })
}

// newBackend reads all lines except servers. The result is obscure if its servers cannot be
// compared one by one.
func newBackend(x *config.Index, s *config.Section, lines []config.Line) *backend {
	b := &backend{section: s, byName: make(map[string]int), tracked: make(map[string]bool), balance: change.Balance{Algorithm: "roundrobin"}}
	for _, defaults := range x.Inherited(s) {
		for _, l := range defaults.KeptLines() {
			b.setting(l)
		}
	}
	servers := false
	for _, l := range lines {
		servers = servers || l.Keyword() == "server"
		b.setting(l)
		b.obscure = b.obscure || l.Words == nil || l.Keyword() == "server-template" ||
			servers && l.Keyword() == "default-server" // a late default-server counts only for the servers below it
	}
	return b
}

func (b *backend) setting(l config.Line) {
	switch l.Keyword() {
	case "balance":
		b.balance.Algorithm, _, _ = strings.Cut(l.Word(1), "(")
	case "hash-type":
		b.balance.HashType = l.Word(1)
	case "default-server":
		b.defaultServer = append(b.defaultServer, l.Words[1:]...)
		b.obscure = b.obscure || l.Expands()
	case "mode":
		b.mode = l.Word(1)
	case "cookie":
		b.dynamicCookie = slices.Contains(l.Words, "dynamic")
	case "use-server":
		b.used = append(b.used, l.Word(1))
	}
}

// read reads the servers. Servers that share a name or have variables make the backend
// obscure.
func (b *backend) read(lines []config.Line, defaults []string) {
	for _, l := range lines {
		if l.Keyword() != "server" {
			continue
		}
		s, ok := config.ParseServer(l.Words, defaults...)
		if !ok || b.has(s.Name) || l.Expands() {
			b.obscure = true
			return
		}
		for _, name := range s.Options["track"] {
			b.tracked[name] = true
		}
		b.byName[s.Name] = len(b.servers)
		b.servers = append(b.servers, s)
	}
}

func (b *backend) step(action change.Action, server string) change.Step {
	return change.Step{
		Action: action, Kind: "server", Parent: b.section.Kind + " " + b.section.Name, Name: server,
		Impact: change.Runtime, Section: b.section.Key(), Ahead: b.ahead,
	}
}

func (b *backend) ref(server string) change.ServerRef {
	return change.ServerRef{Backend: b.section.Name, Server: server}
}

func (d *difference) serverChanges(was, is *backend, old, now *config.Server) {
	step := is.step(change.Update, now.Name)
	do := &change.SetServer{Ref: is.ref(now.Name), Server: now}
	step.Do = do
	reason := ""
	c := &change.ServerChange{Old: old, New: now, Was: was.balance, Balance: is.balance}
	for _, name := range change.ServerFields(old, now) {
		from, to := change.ShownValue(old, name), change.ShownValue(now, name)
		if from == to {
			continue
		}
		step.Fields = append(step.Fields, change.Field{Name: name, Old: config.RedactValue(from, name), New: config.RedactValue(to, name)})
		setting, why := d.setting(c, name)
		reason = cmp.Or(reason, why)
		do.Set = append(do.Set, setting)
	}
	if reason == "" && now.Ordered() && !slices.Equal(change.Fixed(old), change.Fixed(now)) {
		step.Fields = append(
			step.Fields,
			change.Field{Name: Line, Old: strings.Join(haproxycfg.RedactWords(old.Args), " "), New: strings.Join(haproxycfg.RedactWords(now.Args), " ")},
		)
		reason = "the order of its keywords changed"
	}
	if len(step.Fields) == 0 {
		return
	}
	step.Needs(cmp.Or(reason, whyNoName(do.Ref)))
	if step.Do != nil && d.target.Transport == change.API {
		do.Beside = cmp.Or(d.target.WhyNot("server", change.Create, ""), whyFixed(was, is), d.whyNotAddable(is, now), d.whyNamed(was, is, now.Name)) == ""
	}
	d.add(rankServer, step)
}

// setting returns the new value of a field, or why the field changes only at a reload.
func (d *difference) setting(c *change.ServerChange, name string) (s change.Setting, why string) {
	row := change.FieldRow(name)
	if row == nil {
		return s, fmt.Sprintf("%s of a server can change only at a reload", name)
	}
	if why := d.target.WhyNot("server", change.Update, name); why != "" {
		return s, why
	}
	value, why := row.Value(c)
	return change.Setting{Row: row, Value: value}, why
}

// whyNoName says why a runtime command cannot name a server.
func whyNoName(r change.ServerRef) string {
	if strings.Contains(r.Backend+r.Server, "/") {
		return fmt.Sprintf("%q cannot stand in a runtime command", r)
	}
	return whyNoCommand(r.Backend, r.Server)
}

// whyNoCommand says why words cannot stand in a runtime command.
func whyNoCommand(words ...string) string {
	for _, w := range words {
		if !haproxyctl.Plain(w) {
			return fmt.Sprintf("%q cannot stand in a runtime command", w)
		}
	}
	return ""
}

func (d *difference) serverComes(was, is *backend, s *config.Server) {
	step := is.step(change.Create, s.Name)
	step.Fields = []change.Field{{Name: "address", New: s.Args[0]}}
	for _, name := range change.ServerFields(s, s)[1:] {
		if value := s.Value(name); value != "" {
			step.Fields = append(step.Fields, change.Field{Name: name, New: config.RedactValue(value, name)})
		}
	}
	step.Do = &change.AddServer{Ref: is.ref(s.Name), Server: s}
	step.Needs(cmp.Or(d.target.WhyNot("server", change.Create, ""), whyFixed(was, is), whyNoName(is.ref(s.Name)), d.whyNotAddable(is, s)))
	d.add(rankServer, step)
}

// maxAddWords bounds the words of a server. A command may have 64; the rest is room for the
// words that the command adds.
const maxAddWords = 52

// whyNotAddable says why a server cannot be added with its words, or returns "".
func (d *difference) whyNotAddable(b *backend, s *config.Server) string {
	if _, ok := s.Literal(); !ok {
		return "only a server with an IP address and a port can be added at runtime"
	}
	noCookies := d.target.WhyNot("server", change.Create, "cookie")
	var unknown []string
	for name, values := range s.Options {
		_, ok := change.AddableKeyword(name)
		switch name {
		case "state":
			ok = true
		case "cookie":
			ok = noCookies == ""
		case "ca-file", "crl-file", "crt":
			if slices.ContainsFunc(values, func(path string) bool { return !d.names(path) }) {
				return "HAProxy reads files that it does not know yet at a reload"
			}
		}
		if !ok {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Sprintf("a server with %s cannot be added at runtime", strings.Join(unknown, ", "))
	}
	for _, name := range s.Defaults {
		if k, _ := change.AddableKeyword(name); k.Own {
			return fmt.Sprintf("HAProxy cannot apply %s of a default-server to a server that is added at runtime", name)
		}
	}
	switch {
	case b.dynamicCookie && noCookies != "":
		return "a server that is added at runtime would have no dynamic cookie"
	case len(s.Args) > maxAddWords:
		return fmt.Sprintf("the server has %d words, and a runtime command has room for %d", len(s.Args), maxAddWords)
	}
	return whyNoCommand(s.Args...)
}

// whyFixed says why servers cannot come and go at runtime, or "" if they can.
func whyFixed(was, is *backend) string {
	if !is.balance.Dynamic() {
		return fmt.Sprintf("balance %s depends on the list of servers", is.balance.Algorithm)
	}
	if was.balance != is.balance {
		return change.OtherBalance
	}
	return ""
}

func (d *difference) serverGoes(was, is *backend, s *config.Server) {
	step := is.step(change.Delete, s.Name)
	step.Fields = []change.Field{{Name: "address", Old: s.Args[0]}}
	step.Do = &change.DeleteServer{Ref: is.ref(s.Name)}
	reason := cmp.Or(d.target.WhyNot("server", change.Delete, ""), whyFixed(was, is), whyNoName(is.ref(s.Name)))
	if reason == "" {
		reason = d.whyNamed(was, is, s.Name)
	}
	step.Needs(reason)
	d.add(rankServerGone, step)
}

// whyNamed says what names a server, or returns "".
func (d *difference) whyNamed(was, is *backend, name string) string {
	switch {
	case slices.Contains(was.used, name), slices.Contains(is.used, name):
		return "a use-server rule names it"
	case was.tracked[name], d.names("track " + is.section.Name + "/" + name):
		return "another server tracks it"
	case d.sampled(is.section.Name, name):
		return "a sample fetch names it"
	}
	return ""
}

// sampled reports whether a sample fetch may name a server. HAProxy then does not delete it.
// A sample fetch without a backend counts for every backend.
func (d *difference) sampled(backend, server string) bool {
	return d.names("srv "+server) || d.names("srv "+backend+"/"+server)
}

// names reports whether the current text has one of these: an absolute path, or a file after
// a keyword, such as @system-ca; "track " and a server that another one tracks; "srv " and a
// server in a sample fetch. It reads all sections once, because there may be as many
// questions as servers.
func (d *difference) names(what string) bool {
	if d.named == nil {
		d.named = make(map[string]bool)
		for _, s := range d.current.Index().List {
			for _, name := range s.Mentions().Named {
				if !d.named[name] {
					d.named[name] = true
				}
			}
		}
	}
	return d.named[what]
}

// serverOrder adds a step if servers that stay changed places.
func (d *difference) serverOrder(was, is *backend) {
	old, now := kept(was.names(), is.names())
	if slices.Equal(old, now) {
		return
	}
	step := sectionStep(change.Update, is.section)
	step.Fields = []change.Field{{Name: "order of servers", Old: strings.Join(old, ", "), New: strings.Join(now, ", ")}}
	if !is.balance.Dynamic() {
		step.Needs(fmt.Sprintf("balance %s depends on the order of servers", is.balance.Algorithm))
	}
	d.add(rankServer, step)
}

func (b *backend) names() []string {
	names := make([]string, len(b.servers))
	for i := range b.servers {
		names[i] = b.servers[i].Name
	}
	return names
}
