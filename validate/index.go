package validate

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// index is what is known of all sections of one configuration. It moves from one
// configuration to the next at the cost of the sections that differ.
type index struct {
	cfg     *dataplane.Config
	digests []*digest // of its sections
	others  []int     // places of sections that are no backends

	from        *dataplane.Config // where it moved from, and what differs
	differences []difference
	moving      bool // since a panic, for good

	bodies  map[string]*body    // by their texts
	options map[string]*options // by their texts
	lines   map[string]*options // by what stands behind an address
	buffer  []byte

	// How many sections, bodies and options say so.
	names       map[string]int
	declared    map[sectionKey]int
	refs        map[sectionKey]int
	words, maps map[string]int
	conditional int
	wrong       int
	unsure      int
	anyMap      int
	askMore     int

	// What phase 1 looked at last: the files, and the crt-lists that lack none of them.
	files    []dataplane.File
	complete map[string]bool // by path
}

type sectionKey struct{ kind, name string }

func newIndex() *index {
	return &index{bodies: map[string]*body{}, options: map[string]*options{}, lines: map[string]*options{}, names: map[string]int{}, declared: map[sectionKey]int{},
		refs: map[sectionKey]int{}, words: map[string]int{}, maps: map[string]int{}}
}

// move reads the sections that another configuration does not share with this one.
func (x *index) move(cfg *dataplane.Config) {
	if x.cfg == cfg {
		return
	}
	x.moving = true
	all := differencesOf(x.cfg, cfg)
	size, backends := len(x.digests), true
	for n := range all {
		c := &all[n]
		if c.j >= 0 {
			c.after = x.digestOf(c.section)
			x.count(c.after, 1)
			backends = backends && c.after.kind == "backend"
			size++
		}
		if c.i >= 0 {
			c.before = x.digests[c.i]
			x.count(c.before, -1)
			backends = backends && c.before.kind == "backend"
			size--
		}
	}
	if len(all) > 0 {
		x.digests = splice(x.digests, size, all)
	}
	if !backends {
		x.others = nil
		for j, d := range x.digests {
			if d.kind != "backend" {
				x.others = append(x.others, j)
			}
		}
	} else {
		shift(x.others, all)
	}
	x.from, x.cfg, x.differences, x.moving = x.cfg, cfg, all, false
}

// differencesFrom returns what differs from an earlier configuration, of which these are
// the digests.
func (x *index) differencesFrom(cfg *dataplane.Config, digests []*digest) []difference {
	if cfg == x.from {
		return x.differences
	}
	all := differencesOf(cfg, x.cfg)
	for n := range all {
		c := &all[n]
		if c.i >= 0 {
			c.before = digests[c.i]
		}
		if c.j >= 0 {
			c.after = x.digests[c.j]
		}
	}
	return all
}

// above returns how many sections that are no backends stand above a place.
func (x *index) above(j int) int {
	n, _ := slices.BinarySearch(x.others, j)
	return n
}

// count adds a digest, or takes it away.
func (x *index) count(d *digest, by int) {
	b := d.body
	x.wrong += by * one(d.wrong || b.wrong)
	addTo(x.names, d.name, by)
	addTo(x.declared, sectionKey{d.kind, d.name}, by)
	if d.kind == "listen" {
		addTo(x.declared, sectionKey{"frontend", d.name}, by)
		addTo(x.declared, sectionKey{"backend", d.name}, by)
	}
	for range b.tables {
		addTo(x.declared, sectionKey{"table", d.name}, by)
	}
	if b.uses {
		addTo(x.refs, sectionKey{"table", d.name}, by)
	}
	for _, r := range d.refs {
		addTo(x.refs, r, by)
	}
	for _, s := range d.servers {
		if s.options.users += by; crossed(s.options.users, by) {
			x.mark(&s.options.marks, by)
			if by < 0 {
				delete(x.options, s.options.text)
				clear(x.lines)
			}
		}
	}
	if b.users += by; crossed(b.users, by) {
		x.countBody(b, by)
	}
}

// crossed reports whether something came into use, or went out of it.
func crossed(users, by int) bool { return users == max(by, 0) }

func (x *index) countBody(b *body, by int) {
	x.mark(&b.marks, by)
	x.conditional += by * one(b.conditional)
	for _, table := range b.peers {
		addTo(x.declared, sectionKey{"table", table}, by)
	}
	for _, r := range b.refs {
		addTo(x.refs, r, by)
	}
	if by < 0 {
		delete(x.bodies, b.text)
	}
}

func (x *index) mark(m *marks, by int) {
	x.unsure += by * one(m.unsure)
	x.anyMap += by * one(m.anyMap)
	x.askMore += by * one(m.askMore)
	add(x.words, m.words, by)
	add(x.maps, m.maps, by)
}

func add(counts map[string]int, names []string, by int) {
	for _, name := range names {
		addTo(counts, name, by)
	}
}

func addTo[K comparable](counts map[K]int, k K, by int) {
	if counts[k] += by; counts[k] == 0 {
		delete(counts, k)
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// fine reports whether phase 1 certainly finds nothing.
func (x *index) fine(c *checker) bool {
	files := c.cfg.Files()
	if x.complete == nil || !slices.EqualFunc(x.files, files, func(a, b dataplane.File) bool {
		return a.Name == b.Name && a.Kind == b.Kind && (a.Kind != dataplane.CRTList || bytes.Equal(a.Content, b.Content))
	}) {
		x.files, x.complete = files, map[string]bool{}
	}
	if x.wrong > 0 || !x.inOrder() {
		return false
	}
	for k := range x.refs {
		if x.lacks(c, k) {
			return false
		}
	}
	return true
}

// lacks reports whether there is nothing of that name, or a crt-list of that name
// names a file that is missing.
func (x *index) lacks(c *checker, k sectionKey) bool {
	switch {
	case k.kind != "file":
		return x.declared[k] == 0
	case c.lacks(k.name):
		return true
	case x.complete[k.name]:
		return false
	}
	list, _ := c.listAt(k.name)
	for line := range strings.Lines(string(list.Content)) {
		if slices.ContainsFunc(listReferences(0, line), func(r reference) bool { return c.lacks(r.name) }) {
			return true
		}
	}
	x.complete[k.name] = true
	return false
}

// inOrder reports whether each defaults section that another one names stands above.
func (x *index) inOrder() bool {
	above := map[string]bool{}
	for _, d := range x.digests {
		for _, r := range d.body.refs {
			if r.kind == "defaults" && !above[r.name] {
				return false
			}
		}
		if d.kind == "defaults" {
			above[d.name] = true
		}
	}
	return true
}
