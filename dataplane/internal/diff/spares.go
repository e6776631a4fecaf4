package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// spare is a backend of the process that a new one may take.
type spare struct {
	section *config.Section
	process string // its name in the process
	lines   []config.Line
	header  config.Header
	others  []config.Line // lines that are not servers
	taken   bool
	why     string // why no new backend can take it
}

func newSpare(s *config.Section, process string, lines []config.Line) *spare {
	return &spare{section: s, process: process, lines: lines, header: s.Header(), others: withoutServers(lines)}
}

// like reports whether two backends differ only in name and servers.
func (s *spare) like(other *spare) bool {
	return slices.EqualFunc(s.others, other.others, config.Line.Equal) && s.header.From == other.header.From && slices.Equal(s.header.Rest, other.header.Rest)
}

// spares returns the spare backends of the current text. It reads them once.
func (d *difference) spares() []*spare {
	if d.pool != nil {
		return *d.pool
	}
	pool := []*spare{}
	for _, s := range d.current.Index().List {
		if s.Kind == "backend" && change.IsSpare(s.Name) {
			one := newSpare(s, s.Name, s.KeptLines())
			one.taken, one.why = d.target.Names.Taken(s.Name), d.whyNoSpare(one)
			pool = append(pool, one)
		}
	}
	d.pool = &pool
	return pool
}

// whyNoSpare says why a backend cannot serve as a spare one, or returns "".
func (d *difference) whyNoSpare(s *spare) string {
	lines := s.lines
	for _, defaults := range d.current.Index().Inherited(s.section) {
		lines = append(slices.Clip(lines), defaults.KeptLines()...)
	}
	for _, l := range lines {
		switch {
		case l.Keyword() == "server" && !disabled(l):
			return fmt.Sprintf("its server %s is not disabled", l.Word(1))
		case l.Keyword() == "stick-table" && slices.Contains(l.Words, "peers"):
			return "peers would share its stick table under the name of the spare"
		case l.Keyword() == "load-server-state-from-file" && l.Word(1) != "none":
			return "HAProxy would keep the states of its servers under the name of the spare"
		}
	}
	return ""
}

// spareChanges makes the steps from index since on wait for a reload if they change a spare
// backend. In the process, it may be used for another backend by now.
func (d *difference) spareChanges(s *config.Section, since int) {
	if s.Kind != "backend" || !change.IsSpare(s.Name) {
		return
	}
	for i := range d.steps[since:] {
		d.steps[since+i].Needs(whySpare)
	}
}

func disabled(l config.Line) bool {
	s, ok := config.ParseServer(l.Words)
	return ok && s.Disabled()
}

const (
	whyNewSection = "HAProxy reads new sections only at a reload"
	whyOldSection = "HAProxy drops sections only at a reload"
	whySpare      = "spare backends come, go and change only at a reload"
)

// backendComes returns the step for a new backend.
func (d *difference) backendComes(s *config.Section) change.Step {
	step := sectionStep(change.Create, s)
	step.Section = s.Key()
	made, whyNot := d.makes(s)
	if made != nil {
		step.Impact, step.Do, step.Ahead = change.Runtime, made, true
		step.Fields = []change.Field{{Name: "defaults", New: made.From}}
		return step
	}
	switch why := d.whyNoOtherName(s); {
	case why == whyNewSection:
		step.Needs(cmp.Or(whyNot, why))
		return step
	case why != "":
		step.Needs(why)
		return step
	}
	var reason string
	want := newSpare(s, "", s.Lines())
	for _, one := range d.fitting(s) {
		do, why := d.takes(want, one)
		if do == nil {
			reason = cmp.Or(reason, why)
			continue
		}
		if why := d.mayTake(s.Name); why != "" {
			reason = why
			break
		}
		one.taken = true
		step.Impact, step.Do, step.Ahead = change.Runtime, do, d.sameDefaults(one.section, s)
		if one.process != s.Name {
			step.Fields = []change.Field{{Name: "spare backend", New: one.process}}
		}
		return step
	}
	step.Needs(cmp.Or(reason, "no spare backend has its lines"))
	return step
}

// mayTake counts a spare backend for the owner of a new backend, or says why that one has to
// leave it to others. The last ones, a sixteenth, are for owners that have none: one who makes
// many backends must not use up those of others.
func (d *difference) mayTake(backend string) (why string) {
	if d.target.Names.Has(backend) {
		return "" // it comes back to its own place
	}
	if d.owners == nil {
		d.owners = map[string]int{}
		for _, name := range d.target.Names.List() {
			if change.IsSpare(name.Process) {
				d.owners[change.OwnerOf(name.Backend)]++
			}
		}
	}
	free, owner := 0, change.OwnerOf(backend)
	for _, one := range d.spares() {
		if !one.taken {
			free++
		}
	}
	if has := d.owners[owner]; has > 0 && free <= max(1, len(d.spares())/16) {
		return fmt.Sprintf("backends %s_... have %d spare ones, and the last %d are for others until the next reload", owner, has, free)
	}
	d.owners[owner]++
	return ""
}

// fromDefaults reports whether a backend has all its lines, except servers, from a named
// defaults section.
func (d *difference) fromDefaults(x *config.Index, s *config.Section) bool {
	chain := x.Inherited(s)
	if len(chain) == 0 || s.Nth > 0 || change.IsSpare(s.Name) || d.conditional() {
		return false
	}
	last := chain[len(chain)-1]
	return !last.Unnamed && last.Nth == 0 && len(s.Header().Rest) == 0 && len(withoutServers(s.Lines())) == 0
}

// makes returns the change by which HAProxy makes a new backend from its defaults. Otherwise
// it returns nil, and why HAProxy cannot make the backend. The reason is "" for other kinds
// of backends.
func (d *difference) makes(s *config.Section) (do *change.MakeBackend, why string) {
	if d.target.Names.Has(s.Name) || !d.fromDefaults(d.desired.Index(), s) {
		return nil, ""
	}
	from, b := s.Header().From, newBackend(d.desired.Index(), s, nil)
	why = d.target.WhyNot(change.BackendFromDefaults, change.Create, "")
	switch mode := cmp.Or(b.mode, "tcp"); {
	case why != "":
	case !d.sameDefaults(s, s):
		why = "its defaults change"
	case mode != "http" && mode != "tcp":
		why = fmt.Sprintf("a backend of mode %s cannot come at runtime", mode)
	case d.otherHas(s.Name):
		why = "another section has its name"
	default:
		do = &change.MakeBackend{Backend: s.Name, From: from, Mode: mode}
		do.Servers, why = d.runtimeServers(s, s, nil, s.Lines())
		if why == "" {
			why = whyNoCommand(s.Name, from)
		}
	}
	if why != "" {
		return nil, why
	}
	return do, ""
}

// otherHas reports whether a frontend, listen or defaults section of the current text has
// that name: HAProxy does not allow two. It reads all sections once.
func (d *difference) otherHas(name string) bool {
	if d.others == nil {
		d.others = make(map[string]bool)
		for _, s := range d.current.Index().List {
			if s.Kind == "frontend" || s.Kind == "listen" || s.Kind == "defaults" {
				d.others[s.Name] = true
			}
		}
	}
	return d.others[name]
}

// whyNoOtherName says why the process cannot have a backend under another name, or returns
// "".
func (d *difference) whyNoOtherName(s *config.Section) string {
	switch {
	case len(d.spares()) == 0 && !d.target.Names.Has(s.Name), d.conditional():
		return whyNewSection
	case change.IsSpare(s.Name):
		return whySpare
	case s.Nth > 0:
		return "another backend has its name"
	}
	return cmp.Or(d.target.WhyNot("backend", change.Create, ""),
		d.namedIn(s.Name, true), leads(d.current, s.Name, false))
}

// fitting returns the spare backends that a new backend could take, the best first. A backend
// that the process still has can only come back in its own place.
func (d *difference) fitting(s *config.Section) []*spare {
	if name, ok := d.target.Names.Of(s.Name); ok && name.Gone != nil {
		was := config.Empty().With(name.Gone.Text).Index().List[0]
		was.Above = name.Gone.Above
		return []*spare{newSpare(was, name.Process, was.Lines())}
	}
	return d.spares()
}

// takes returns the change by which a new backend takes a spare one, or why it cannot.
func (d *difference) takes(want, one *spare) (do *change.TakeBackend, why string) {
	s := want.section
	switch {
	case !one.like(want):
		return nil, ""
	case one.taken:
		return nil, "all spare backends with its lines are taken until the next reload"
	case one.why == "" && one.section.Name == one.process && one.process != s.Name:
		one.why = cmp.Or(d.changes(one), d.namedIn(one.process, false), leads(d.current, one.process, false))
	}
	if one.why != "" {
		return nil, fmt.Sprintf("backend %s cannot be taken: %s", one.process, one.why)
	}
	servers, why := d.runtimeServers(one.section, s, one.lines, want.lines)
	if why != "" {
		return nil, why
	}
	return &change.TakeBackend{Name: change.Name{Backend: s.Name, Process: one.process}, Servers: servers,
		Publish: one.process == s.Name && d.target.WhyNot(change.BackendFromDefaults, change.Create, "") == ""}, ""
}

// runtimeServers returns the changes that give a backend of the process the servers of another
// one, or why that is not possible.
func (d *difference) runtimeServers(have, want *config.Section, before, after []config.Line) (dos []change.Do, why string) {
	sub := &difference{current: d.current, desired: d.desired, target: d.target, named: d.named}
	ok := sub.servers(have, want, before, after)
	d.named = sub.named
	if !ok {
		return nil, "HAProxy cannot change its servers one by one"
	}
	slices.SortStableFunc(sub.steps, func(a, b ranked) int { return int(a.rank) - int(b.rank) })
	for _, step := range sub.steps {
		if step.Impact == change.Reload {
			return nil, strings.TrimSpace(step.Kind+" "+step.Name) + ": " + step.Reason
		}
		if step.Do != nil {
			dos = append(dos, step.Do)
		}
	}
	return dos, ""
}

// changes says that the desired text changes a spare backend, or returns "".
func (d *difference) changes(one *spare) string {
	if s := d.desired.Index().Find(config.Key{Kind: "backend", Name: one.process}); s == nil ||
		!slices.EqualFunc(s.Lines(), one.section.Lines(), config.Line.Equal) {
		return "the new configuration changes it"
	}
	return ""
}

// sameDefaults reports whether two backends inherit the same defaults.
func (d *difference) sameDefaults(have, want *config.Section) bool {
	return slices.EqualFunc(d.current.Index().Inherited(have), d.desired.Index().Inherited(want),
		func(a, b *config.Section) bool { return a.Text == b.Text })
}

// maxGone bounds the backends that only the process still has.
const maxGone = 256

// backendGoes returns the step for a backend that is no longer wanted. If there are spare
// backends, it may stay in the process until the next reload. A backend from defaults stays
// until HAProxy can delete it.
func (d *difference) backendGoes(s *config.Section) change.Step {
	step := sectionStep(change.Delete, s)
	do, why := d.leaves(s)
	step.Impact, step.Do = change.Runtime, do
	step.Needs(why)
	return step
}

func (d *difference) leaves(s *config.Section) (do *change.LeaveBackend, why string) {
	process := d.target.Names.InProcess(s.Name)
	publish := process == s.Name && d.fromDefaults(d.current.Index(), s) && whyNoCommand(s.Name) == "" &&
		d.target.WhyNot(change.BackendFromDefaults, change.Delete, "") == ""
	switch {
	case len(d.spares()) == 0 && !publish, s.Nth > 0, d.conditional():
		return nil, whyOldSection
	case change.IsSpare(s.Name):
		return nil, whySpare
	case d.target.Names.GoneCount()+d.gone >= maxGone:
		return nil, fmt.Sprintf("HAProxy already keeps %d removed backends until the next reload", maxGone)
	}
	why = cmp.Or(d.target.WhyNot("backend", change.Delete, ""), d.namedIn(s.Name, false))
	lines := s.Lines()
	b := newBackend(d.current.Index(), s, lines)
	b.read(lines, b.defaultServer)
	if why == "" && (b.obscure || b.mode == "log") {
		why = "HAProxy cannot change its servers one by one"
	}
	if why != "" {
		return nil, why
	}
	d.gone++
	do = &change.LeaveBackend{Name: change.Name{Backend: s.Name, Process: process}, Publish: publish}
	for i := range b.servers {
		if ref := b.ref(b.servers[i].Name); !b.servers[i].Disabled() {
			set := change.Setting{Row: change.FieldRow("state"), Value: change.Maint}
			do.Servers = append(do.Servers, &change.SetServer{Ref: ref, Set: []change.Setting{set}})
			why = cmp.Or(why, whyNoName(ref))
		}
	}
	text := eachServer(s, func(_, line string) string { return withValues(line, map[string]string{"state": "disabled"}) })
	do.Name.Gone = &change.Gone{Text: text, Above: s.Above}
	return do, why
}

// whyNoValue says why a map cannot lead to a backend, or returns "". HAProxy would still find
// a deleted backend, but its servers no longer serve.
func (d *difference) whyNoValue(value string) string {
	if d.target.Names.Taken(value) {
		return fmt.Sprintf("the process has backend %s as %s until the next reload", d.target.Names.Backend(value), value)
	}
	name, ok := d.target.Names.Of(value)
	if !ok || name.Gone == nil || name.Process != value || d.desired.Index().Find(config.Key{Kind: "backend", Name: value}) != nil {
		return ""
	}
	return fmt.Sprintf("backend %s is gone, and the process has it until the next reload", value)
}

// comingBackends returns the texts of the backends that come without a reload. The keys are
// the running sections that they follow.
func (p *part) comingBackends() map[config.Key]string {
	comes := make(map[config.Key]bool)
	for i := range p.steps {
		if s := &p.steps[i]; s.Kind == "backend" && s.Action == change.Create && s.Impact == change.Runtime && s.Ahead {
			comes[s.Section] = true
		}
	}
	if len(comes) == 0 {
		return nil
	}
	texts := make(map[config.Key]string)
	var last *config.Key // the last section so far that the process has
	for _, s := range p.desired.Index().Numbered() {
		key := s.Key()
		if p.running.Index().Find(key) != nil {
			last = &key
		} else if comes[key] && last != nil {
			texts[*last] += s.Text
		}
	}
	return texts
}
