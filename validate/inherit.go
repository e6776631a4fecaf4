package validate

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// accepted is a configuration that haproxy accepts, by a run or by inheritance. The next
// configuration may inherit from either kind. seen comes from runs of haproxy alone, and
// does not change by inheritance.
type accepted struct {
	cfg     *dataplane.Config
	digests []*digest
	files   []dataplane.File
	plain   map[string]bool // maps whose entries Validator has read
	seen    map[twin]*seen
	said    *verdict
}

// twin is equal for backends that are alike for haproxy: they have the same lines, and the
// same sections of other kinds above them. Their defaults are the same.
type twin struct {
	others int    // how many sections of other kinds stand above
	body   string // the lines
}

// seen has the parts that haproxy accepted in a backend.
type seen struct {
	options map[string]bool // of servers
	names   []string        // of servers that the lines may refer to
}

// took notes that haproxy accepts a configuration.
func (v *Validator) took(ctx context.Context, cfg *dataplane.Config, said *verdict) {
	if v.NoInherit || len(said.findings) > 0 {
		return
	}
	v.state.Lock()
	defer v.state.Unlock()
	switch a := v.state.taken; {
	case a != nil && a.cfg == cfg:
	case a != nil && a.becomes(ctx, v.index(), cfg):
		a.said = said
	default:
		v.state.taken = newAccepted(v.index(), cfg, said)
	}
}

// inherits returns the verdict on the last accepted configuration, if the difference to cfg
// does not matter. In doubt it returns nil, which costs one run of haproxy. It also returns
// nil if ctx has ended.
func (v *Validator) inherits(ctx context.Context, cfg *dataplane.Config) *verdict {
	if v.NoInherit {
		return nil
	}
	v.state.Lock()
	defer v.state.Unlock()
	if a := v.state.taken; a != nil && a.becomes(ctx, v.index(), cfg) {
		return a.said
	}
	return nil
}

// index returns the index of the last configuration. After a panic in move it returns a new
// one.
func (v *Validator) index() *index {
	if v.state.index == nil || v.state.index.moving {
		v.state.index = newIndex()
	}
	return v.state.index
}

func newAccepted(x *index, cfg *dataplane.Config, said *verdict) *accepted {
	x.move(cfg)
	a := &accepted{cfg: cfg, digests: x.digests, files: cfg.Files(), plain: map[string]bool{}, seen: map[twin]*seen{}, said: said}
	for j, d := range a.digests {
		if d.kind != "backend" || d.odd || d.body.odd || x.names[d.name] != 1 { // a frontend of the same name may have its table
			continue
		}
		key := twin{x.above(j), d.body.text}
		s := a.seen[key]
		if s == nil {
			s = &seen{options: map[string]bool{}}
			for _, server := range d.servers {
				if slices.Contains(d.body.words, server.name) {
					s.names = append(s.names, server.name)
				}
			}
			a.seen[key] = s
		}
		for _, server := range d.servers {
			s.options[server.options.text] = true
		}
	}
	return a
}

// becomes reports whether haproxy accepts cfg because it accepts a. If so, a becomes cfg.
// The texts alone decide: HAProxy checks runtime changes itself, but reads the files after
// a restart.
func (a *accepted) becomes(ctx context.Context, x *index, cfg *dataplane.Config) bool {
	if a.cfg == cfg {
		return true
	}
	x.move(cfg)
	if x.conditional > 0 || !a.sectionsInherit(ctx, x) {
		return false
	}
	files := cfg.Files()
	read, ok := a.filesInherit(ctx, x, files)
	if !ok {
		return false
	}
	for _, name := range read {
		a.plain[name] = true
	}
	a.cfg, a.digests, a.files = cfg, x.digests, files
	return true
}

// sectionsInherit requires the same sections with the same lines, except for servers, and
// for backends that come or go.
func (a *accepted) sectionsInherit(ctx context.Context, x *index) bool {
	for _, c := range x.differencesFrom(a.cfg, a.digests) {
		switch {
		case c.before == c.after: // it only has other defaults above it
		case ctx.Err() != nil:
			return false
		case c.before == nil:
			if !a.mayCome(x, c.after, x.above(c.j)) {
				return false
			}
		case c.after == nil:
			if !x.settled(c.before) {
				return false
			}
		case c.before.kind != c.after.kind, c.before.name != c.after.name,
			!x.serversInherit(c.before, c.after, a.seen[twin{x.above(c.j), c.after.body.text}]):
			return false
		}
	}
	return true
}

// serversInherit compares two texts of one section. Each server must have options that
// haproxy saw there, in the old text or in a twin.
func (x *index) serversInherit(before, after *digest, seen *seen) bool {
	if before.odd || after.odd || after.body.odd || !same(before.body, after.body) {
		return false
	}
	known := func(s server) bool {
		return slices.ContainsFunc(before.servers, func(old server) bool { return old.options.text == s.options.text }) ||
			seen != nil && !s.options.unique && seen.options[s.options.text]
	}
	for _, s := range after.servers {
		if !known(s) {
			return false
		}
	}
	for _, old := range before.servers {
		i := slices.IndexFunc(after.servers, func(s server) bool { return s.name == old.name })
		switch {
		case i < 0:
		case after.servers[i].options.text == old.options.text || x.words["track"] == 0: // "track" depends on the checks of another server
			continue
		}
		if x.mayName(old.name) {
			return false
		}
	}
	return true
}

func same(a, b *body) bool { return a == b || a.text == b.text }

// mayCome reports whether haproxy accepts a new backend: it has the lines of a backend that
// haproxy saw there, and nothing that must be unique.
func (a *accepted) mayCome(x *index, d *digest, others int) bool {
	s := a.seen[twin{others, d.body.text}]
	if s == nil || !x.settled(d) || x.names[d.name] != 1 {
		return false
	}
	for _, server := range d.servers {
		if server.options.unique || !s.options[server.options.text] {
			return false
		}
	}
	for _, name := range s.names {
		if !slices.ContainsFunc(d.servers, func(s server) bool { return s.name == name }) {
			return false
		}
	}
	return true
}

// settled reports whether a backend concerns no other section, and no line names it. It
// returns false if haproxy loads Lua or SPOE files, which may name the backend. It also
// returns false with zero-warning, which makes haproxy refuse warnings.
func (x *index) settled(d *digest) bool {
	for _, word := range []string{"spoe", "lua-load", "lua-load-per-thread", "zero-warning"} {
		if x.words[word] > 0 {
			return false
		}
	}
	return d.kind == "backend" && d.body.plain && !d.odd && !d.wrong && !x.mayName(d.name)
}

// mayName reports whether a line may name a server or a backend: use-server, track,
// use_backend, srv_is_up(...).
func (x *index) mayName(name string) bool {
	return x.unsure > 0 || x.words[name] > 0 || name == "" || strings.ContainsFunc(name, partsNames)
}

// optionsOf returns the options of a server as a text and in words, without a valid weight.
// With options that depend on the name, the text has the name of the server. If the line is
// not plain, the text is the whole line.
func optionsOf(words []string) (text string, options []string) {
	line := strings.Join(words, "\n")
	if !isPlain(words[1], words[2]) {
		return line, words[3:]
	}
	text = noOptions
	if strings.ContainsAny(line, "\"'\\") {
		text = words[1]
	}
	for i := 3; i < len(words); i++ {
		switch words[i] {
		case "id", "guid", "cookie", "track":
			text += "\nof " + words[1]
		case "weight":
			if n, err := strconv.Atoi(strings.Join(words[i+1:min(i+2, len(words))], "")); err == nil && n >= 0 && n <= 256 {
				i++
				continue
			}
		}
		text += "\n" + words[i]
		options = append(options, words[i])
	}
	return text, options
}

const noOptions = "options"

// isPlain reports whether a server has a usual name and an address with a port.
func isPlain(name, address string) bool {
	addr, err := netip.ParseAddrPort(address)
	return err == nil && addr.Port() != 0 && addr.Addr().Zone() == "" && !strings.ContainsFunc(name, partsNames)
}

// partsNames reports the characters that end the name of a server.
func partsNames(r rune) bool { return r >= 0x80 || r == '/' || !pathByte(byte(r)) }
