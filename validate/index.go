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

	// Phase 1 found nothing in a configuration before this one, and since then it must
	// look at these: what was named or is missing now, and what came to its order.
	valid    bool
	files    []dataplane.File // of the configuration that phase 1 took
	doubtful []sectionKey
	reorders bool
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
	if len(x.doubtful) > len(x.refs)+len(x.declared) {
		x.valid, x.doubtful = false, nil
	}
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
	x.reorders = x.reorders || d.kind == "defaults" || slices.ContainsFunc(b.refs, func(r sectionKey) bool { return r.kind == "defaults" })
	x.wrong += by * one(d.wrong || b.wrong)
	x.names[d.name] += by
	if x.names[d.name] == 0 {
		delete(x.names, d.name)
	}
	x.declare(sectionKey{d.kind, d.name}, by)
	if d.kind == "listen" {
		x.declare(sectionKey{"frontend", d.name}, by)
		x.declare(sectionKey{"backend", d.name}, by)
	}
	for range b.tables {
		x.declare(sectionKey{"table", d.name}, by)
	}
	if b.uses {
		x.refer(sectionKey{"table", d.name}, by)
	}
	for _, r := range d.refs {
		x.refer(r, by)
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
		x.declare(sectionKey{"table", table}, by)
	}
	for _, r := range b.refs {
		x.refer(r, by)
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
		if counts[name] += by; counts[name] == 0 {
			delete(counts, name)
		}
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (x *index) declare(k sectionKey, by int) {
	if x.declared[k] += by; x.declared[k] == 0 {
		delete(x.declared, k)
		x.doubtful = append(x.doubtful, k)
	}
}

func (x *index) refer(k sectionKey, by int) {
	x.refs[k] += by
	switch {
	case x.refs[k] == 0:
		delete(x.refs, k)
	case x.refs[k] == by:
		x.doubtful = append(x.doubtful, k)
	}
}

// fine reports whether phase 1 certainly finds nothing. It looks at what changed since
// it found nothing.
func (x *index) fine(c *checker) bool {
	files := c.cfg.Files()
	sameFiles := x.valid && slices.EqualFunc(x.files, files, func(a, b dataplane.File) bool {
		return a.Name == b.Name && a.Kind == b.Kind && (a.Kind != dataplane.CRTList || bytes.Equal(a.Content, b.Content))
	})
	ok := x.wrong == 0 && (!x.reorders || x.inOrder())
	if x.valid {
		ok = ok && !slices.ContainsFunc(x.doubtful, func(k sectionKey) bool { return x.refs[k] > 0 && x.lacks(c, k) })
	}
	if !sameFiles {
		for k := range x.refs {
			if ok = ok && (x.valid && k.kind != "file" || !x.lacks(c, k)); !ok {
				break
			}
		}
	}
	x.valid = ok
	if ok {
		x.files, x.doubtful, x.reorders = files, x.doubtful[:0], false
	}
	return ok
}

// lacks reports whether there is nothing of that name, or a crt-list of that name
// names a file that is missing.
func (x *index) lacks(c *checker, k sectionKey) bool {
	if k.kind != "file" {
		return x.declared[k] == 0
	}
	if c.lacks(k.name) {
		return true
	}
	list, _ := c.listAt(k.name)
	for line := range strings.Lines(string(list.Content)) {
		if slices.ContainsFunc(listReferences(0, line), func(r reference) bool { return c.lacks(r.name) }) {
			return true
		}
	}
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
