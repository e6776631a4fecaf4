package validate

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// index describes all sections of one configuration. Its move to the next configuration
// reads only the sections that differ.
type index struct {
	cfg     *dataplane.Config
	digests []*digest // of its sections
	others  []int     // indexes of the sections that are no backends

	moving bool // true for good after a panic

	bodies  map[string]*body    // by their texts
	options map[string]*options // by their texts
	lines   map[string]*options // by the text behind an address
	buffer  []byte

	// How many sections, bodies and options have each property.
	names       map[string]int
	declared    map[sectionKey]int
	refs        map[sectionKey]int
	words, maps map[string]int
	conditional int
	wrong       int
	unsure      int
	anyMap      int
	askMore     int

	// The state of phase 1. dangling counts references to missing names. filesFound says
	// that no file was missing among files, and that no new file name came since then.
	// reorders says that defaults sections, or references to them, came or went since the
	// last check of their order.
	dangling   int
	files      []dataplane.File
	filesFound bool
	reorders   bool
}

type sectionKey struct{ kind, name string }

func newIndex() *index {
	return &index{bodies: map[string]*body{}, options: map[string]*options{}, lines: map[string]*options{}, names: map[string]int{}, declared: map[sectionKey]int{},
		refs: map[sectionKey]int{}, words: map[string]int{}, maps: map[string]int{}}
}

// move moves the index to another configuration, and reads the sections that differ.
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
	x.cfg, x.moving = cfg, false
}

// differencesFrom returns the sections that differ from an earlier configuration, cfg;
// digests belong to cfg.
func (x *index) differencesFrom(cfg *dataplane.Config, digests []*digest) []difference {
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

// above returns how many sections of other kinds than backend stand above section j.
func (x *index) above(j int) int {
	n, _ := slices.BinarySearch(x.others, j)
	return n
}

// count adds a digest, or removes it.
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

// crossed reports whether the first user came, or the last one went.
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

func (x *index) declare(k sectionKey, by int) { x.name(x.declared, k, by) }

func (x *index) refer(k sectionKey, by int) {
	x.name(x.refs, k, by)
	x.filesFound = x.filesFound && (k.kind != "file" || x.refs[k] != by) // otherwise the file name is new
}

// name counts a declaration of a name, or a reference to it.
func (x *index) name(counts map[sectionKey]int, k sectionKey, by int) {
	dangles := func() int { return one(k.kind != "file" && x.refs[k] > 0 && x.declared[k] == 0) }
	before := dangles()
	if counts[k] += by; counts[k] == 0 {
		delete(counts, k)
	}
	x.dangling += dangles() - before
}

// fine reports whether phase 1 certainly finds no error.
func (x *index) fine(c *checker) bool {
	if x.wrong > 0 || x.dangling > 0 || x.reorders && !x.inOrder() {
		return false
	}
	x.reorders = false
	files := c.cfg.Files()
	if x.filesFound && slices.EqualFunc(x.files, files, func(a, b dataplane.File) bool {
		return a.Name == b.Name && a.Kind == b.Kind && (a.Kind != dataplane.CRTList || bytes.Equal(a.Content, b.Content))
	}) {
		return true
	}
	x.files, x.filesFound = files, true
	for k := range x.refs {
		x.filesFound = x.filesFound && (k.kind != "file" || !x.lacks(c, k.name))
	}
	return x.filesFound
}

// lacks reports whether the file is missing, or is a crt-list that names a missing file.
func (x *index) lacks(c *checker, name string) bool {
	if c.lacks(name) {
		return true
	}
	list, _ := c.listAt(name)
	for line := range strings.Lines(string(list.Content)) {
		if slices.ContainsFunc(listReferences(0, line), func(r reference) bool { return c.lacks(r.name) }) {
			return true
		}
	}
	return false
}

// inOrder reports whether each defaults section stands above the sections that name it.
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
