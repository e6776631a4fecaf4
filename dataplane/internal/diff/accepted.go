package diff

import (
	"context"
	"slices"
	"strings"
	"unique"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Accepted is a configuration that `haproxy -c` accepts. The zero value has none. Package
// dataplane documents it.
type Accepted struct {
	config *config.Config
	base   *base
	plain  map[string]bool // maps whose entries were read
}

// base is what haproxy read when it ran last. All later configurations have lines, and options
// of servers, that haproxy read then.
type base struct {
	unsure  bool // a line has variables: HAProxy may read other words
	askMore bool // a certificate may have to be more than valid
	tracks  bool // a server may track another one
	seen    map[twin]*seen
	free    map[string]bool // maps that take any text
}

// twin is equal for backends that are alike for haproxy: they have the same lines, and the
// same sections of other kinds above them. Their defaults are the same.
type twin struct {
	others int // how many sections of other kinds stand above
	body   unique.Handle[string]
}

// seen has the parts that haproxy accepted in a backend.
type seen struct {
	options map[unique.Handle[string]]bool // of servers
	names   []string                       // of servers that the lines may refer to
}

// Take notes that haproxy ran and accepts c.
func (a *Accepted) Take(c *config.Config) {
	b := &base{seen: make(map[twin]*seen)}
	list := c.Index().List
	named := make(map[string]int, len(list))
	for _, s := range list {
		named[s.Name]++
	}
	anyFile := false
	for i, s := range list {
		o := s.Outline()
		anyFile = anyFile || o.AnyFile
		b.unsure, b.askMore, b.tracks = b.unsure || o.Unsure, b.askMore || o.AskMore, b.tracks || o.Tracks
		if s.Kind != "backend" || o.Unclear || named[s.Name] != 1 { // a frontend of the same name may have its table
			continue
		}
		key := twin{c.Index().OthersAbove(i), o.Body}
		known := b.seen[key]
		if known == nil {
			known = &seen{options: make(map[unique.Handle[string]]bool)}
			for _, server := range o.Servers {
				if s.MayName(config.NewWord(server.Name)) {
					known.names = append(known.names, server.Name)
				}
			}
			b.seen[key] = known
		}
		for _, server := range o.Servers {
			known.options[server.Options] = true
		}
	}
	if !anyFile {
		b.free = freeMaps(c)
	}
	*a = Accepted{config: c, base: b, plain: make(map[string]bool)}
}

// Becomes reports whether haproxy certainly accepts c because it accepts a. If so, a becomes
// c. The texts alone decide: HAProxy checks runtime changes itself, but reads the files after a
// restart. In doubt, and if ctx has ended, it reports false.
func (a *Accepted) Becomes(ctx context.Context, c *config.Config) bool {
	if a.config == c {
		return true
	}
	if a.config == nil || a.config.Index().Conditional() || c.Index().Conditional() || !a.sectionsKeep(ctx, c.Index()) {
		return false
	}
	read, ok := a.filesKeep(ctx, c.Files)
	if !ok {
		return false
	}
	for _, name := range read {
		a.plain[name] = true
	}
	a.config = c
	return true
}

// sectionsKeep requires the same sections with the same lines, except for servers, and for
// backends that come or go.
func (a *Accepted) sectionsKeep(ctx context.Context, now *config.Index) bool {
	old := a.config.Index()
	if old == now {
		return true
	}
	var unnamed []string // that no line may name
	coming := make(map[string]bool)
	for _, p := range config.Pairs(old, now, config.Stretches(old, now)) {
		var names []string
		ok := ctx.Err() == nil
		switch {
		case !ok:
		case p.Old < 0:
			s := now.List[p.New]
			ok = s.Kind == "backend" && !coming[s.Name] && a.mayCome(s, now.OthersAbove(p.New))
			names, coming[s.Name] = alone(s.Name), true
		case p.New < 0:
			s := old.List[p.Old]
			ok, names = s.Kind == "backend" && standsAlone(s.Outline()), alone(s.Name)
		case old.List[p.Old].Text != now.List[p.New].Text: // otherwise it only has other defaults above it
			names, ok = a.serversKeep(old.List[p.Old].Outline(), now.List[p.New].Outline(), now.OthersAbove(p.New))
		}
		if !ok {
			return false
		}
		unnamed = append(unnamed, names...)
	}
	return now.Times(coming) == len(coming) && !a.mayName(now, unnamed)
}

// alone returns the words that no line may have if a backend comes or goes: its name, and
// those that load Lua or SPOE files, which may name the backend. With zero-warning, HAProxy
// refuses warnings.
func alone(name string) []string {
	return []string{name, "spoe", "lua-load", "lua-load-per-thread", "zero-warning"}
}

// serversKeep compares two texts of one section. Each server must have options that haproxy saw
// there, in the old text or in a twin. It returns the names that no line may have.
func (a *Accepted) serversKeep(before, after *config.Outline, others int) (names []string, ok bool) {
	if before.Unclear || after.Unclear || before.Body != after.Body {
		return nil, false
	}
	options := make(map[unique.Handle[string]]bool, len(before.Servers))
	for _, s := range before.Servers {
		options[s.Options] = true
	}
	is := make(map[string]config.Member, len(after.Servers))
	twins := a.base.seen[twin{others, after.Body}]
	for _, s := range after.Servers {
		is[s.Name] = s
		if !options[s.Options] && (twins == nil || s.Unique() || !twins.options[s.Options]) {
			return nil, false
		}
	}
	for _, old := range before.Servers {
		switch s, stays := is[old.Name]; {
		case !stays:
			names = append(names, old.Name)
		case s.Options != old.Options && a.base.tracks: // another server may depend on the checks of this one
			names = append(names, old.Name)
		}
	}
	return names, true
}

// mayCome reports whether haproxy accepts a new backend: it has the lines of a backend that
// haproxy saw there, and nothing that must be unique.
func (a *Accepted) mayCome(s *config.Section, others int) bool {
	o := s.Outline()
	known := a.base.seen[twin{others, o.Body}]
	if known == nil || !standsAlone(o) {
		return false
	}
	has := make(map[string]bool, len(o.Servers))
	for _, server := range o.Servers {
		has[server.Name] = true
		if server.Unique() || !known.options[server.Options] {
			return false
		}
	}
	return !slices.ContainsFunc(known.names, func(name string) bool { return !has[name] })
}

// ownLines are lines of a backend that concern no other section, and that two backends may
// share. Ids, stick tables and filters are not among them. Unknown sections of later
// versions are not among them either: their headers read as lines of the section above.
var ownLines = strings.Fields(
	"acl balance compression cookie default-server dynamic-cookie-key email-alert errorfile errorfiles errorloc errorloc302 errorloc303 " +
		"force-persist fullconn hash-balance-factor hash-type http-after-response http-check http-error http-request http-response http-reuse " +
		"http-send-name-header ignore-persist log log-tag max-keep-alive-queue mode no option persist redirect retries retry-on source stick " +
		"tcp-check tcp-request tcp-response timeout use-server",
)

// standsAlone reports whether the lines of a backend concern no other section.
func standsAlone(o *config.Outline) bool {
	if o.Unclear {
		return false
	}
	header := true
	for line := range strings.Lines(o.Body.Value()) {
		words, err := haproxycfg.Fields(line)
		if err != nil || !header && len(words) > 0 && !slices.Contains(ownLines, words[0]) {
			return false
		}
		header = false
	}
	return true
}

// mayName reports whether a line may have one of the names: use-server, track, use_backend,
// srv_is_up(...).
func (a *Accepted) mayName(now *config.Index, names []string) bool {
	if len(names) == 0 {
		return false
	}
	words := make([]config.Word, len(names))
	for i, name := range names {
		words[i] = config.NewWord(name)
		if !config.IsUsualName(name) {
			return true
		}
	}
	return a.base.unsure || len(now.Naming(words)) > 0
}
