package k8swatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch/internal/store"
)

// Changes is what happened since the last delivery. An object that was deleted and
// created again under its name counts as both.
//
// A consumer that keeps something for each object makes anew what Objects names, from
// Snapshot, where More is 0 and From is no later than the revision of what it read
// before. Otherwise it reads everything again. One that waits between deliveries adds
// them up with [Changes.And].
type Changes struct {
	Created, Modified, Deleted int
	InitialSync                bool     // the objects that were there at the start
	From, To                   Revision // the store went from one to the other

	// ByResource are the same numbers of each resource that changed.
	ByResource map[schema.GroupVersionResource]Counts

	// Objects says which objects changed, each once: by resource, namespace and name,
	// up to [Options.MaxChanges]. More is how many changes of others there were; 0: the
	// list is complete.
	Objects []Change
	More    int

	// Snapshot is the state at To, of the watcher or of all in the group, and never a
	// later one.
	Snapshot *GroupSnapshot
}

// Counts are numbers of changes.
type Counts struct{ Created, Modified, Deleted int }

// Change is an object that changed, by comparison of the two ends of a [Changes].
type Change struct {
	Watcher         *Watcher // Changes.Snapshot.Of(Watcher) has it as it is now
	Namespace, Name string   // Namespace is "" where the resource has none
	Kind            ChangeKind
}

// ChangeKind says what happened to an object.
type ChangeKind string

// The kinds. Who is told may not have taken what it was told before, as its callback
// failed. So an object that came and went is Deleted, and one that went and came
// again is Modified, with another uid. Neither Created nor Modified promises that the
// object was or was not there before.
const (
	Created  ChangeKind = "created"
	Modified ChangeKind = "modified"
	Deleted  ChangeKind = "deleted"
)

var kinds = [...]ChangeKind{store.Created: Created, store.Modified: Modified, store.Deleted: Deleted}

// Resource says what the object is one of.
func (c Change) Resource() schema.GroupVersionResource { return c.Watcher.resource }

// String reads "ingresses shop/web created".
func (c Change) String() string {
	return fmt.Sprintf("%s %s %s", c.Watcher.resource.Resource, strings.TrimPrefix(c.Namespace+"/"+c.Name, "/"), c.Kind)
}

// String says "1 created, 2 modified", without what is zero.
func (c Changes) String() string {
	var parts []string
	for _, part := range []struct {
		count int
		what  ChangeKind
	}{{c.Created, Created}, {c.Modified, Modified}, {c.Deleted, Deleted}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no changes")
}

// Total is the number of changes. It is 0 after ForceSync where nothing changed.
func (c Changes) Total() int { return c.Created + c.Modified + c.Deleted }

// And adds what came later, of the same watcher or group. The list has as many objects
// as the longer of both, or [DefaultMaxChanges].
func (c Changes) And(later Changes) Changes {
	sum := newPending(max(len(c.Objects), len(later.Objects), DefaultMaxChanges))
	for _, changes := range []Changes{c, later} {
		sum.sum(changes)
		for _, o := range changes.Objects {
			sum.see(objectOf{o.Watcher, o.Namespace, o.Name}, o.Kind)
		}
	}
	return sum.changes()
}

// DefaultMaxChanges is how many objects [Changes] lists unless options say otherwise.
const DefaultMaxChanges = 1000

func maxChanges(n int) int { return max(cmp.Or(n, DefaultMaxChanges), 0) }

// batch is what one commit of a store changed.
type batch struct {
	Changes
	watcher *Watcher
	objects []store.Changed // not to be kept
}

// pending adds changes up. The zero value lists no objects.
type pending struct {
	Changes
	any     bool // something was added, maybe without changes
	max     int
	objects map[objectOf]ChangeKind
}

type objectOf struct {
	watcher         *Watcher
	namespace, name string
}

func newPending(max int) pending { return pending{max: max} }

func (p *pending) add(b batch) {
	p.sum(b.Changes)
	p.count(b.watcher.resource, Counts{b.Created, b.Modified, b.Deleted})
	for _, o := range b.objects {
		p.see(objectOf{b.watcher, o.Namespace, o.Name}, kinds[o.Kind])
	}
}

// join adds what came later.
func (p *pending) join(later pending) {
	p.any = p.any || later.any
	p.sum(later.Changes)
	for o, kind := range later.objects {
		p.see(o, kind)
	}
}

// sum adds all but the objects.
func (p *pending) sum(c Changes) {
	if p.Total() == 0 && c.Total() > 0 || p.To == 0 {
		p.From = c.From
	}
	p.any = true
	p.Created += c.Created
	p.Modified += c.Modified
	p.Deleted += c.Deleted
	p.InitialSync = p.InitialSync || c.InitialSync
	p.To = max(p.To, c.To)
	p.More += c.More
	if c.Snapshot != nil {
		p.Snapshot = c.Snapshot
	}
	for gvr, n := range c.ByResource {
		p.count(gvr, n)
	}
}

func (p *pending) count(gvr schema.GroupVersionResource, n Counts) {
	if p.ByResource == nil {
		p.ByResource = map[schema.GroupVersionResource]Counts{}
	}
	c := p.ByResource[gvr]
	p.ByResource[gvr] = Counts{c.Created + n.Created, c.Modified + n.Modified, c.Deleted + n.Deleted}
}

// see notes one object, or that there is one more.
func (p *pending) see(o objectOf, kind ChangeKind) {
	before, known := p.objects[o]
	switch {
	case !known && len(p.objects) >= p.max:
		p.More++
		return
	case kind == Deleted || !known:
	case before == Created:
		kind = Created
	default:
		kind = Modified
	}
	if p.objects == nil {
		p.objects = map[objectOf]ChangeKind{}
	}
	p.objects[o] = kind
}

// changes is what a callback is told.
func (p *pending) changes() Changes {
	c := p.Changes
	c.ByResource = maps.Clone(c.ByResource)
	for o, kind := range p.objects {
		c.Objects = append(c.Objects, Change{o.watcher, o.namespace, o.name, kind})
	}
	slices.SortFunc(c.Objects, func(a, b Change) int {
		if a.Watcher != b.Watcher {
			x, y := a.Watcher, b.Watcher
			if order := cmp.Or(cmp.Compare(x.resource.Resource, y.resource.Resource), cmp.Compare(x.resource.String(), y.resource.String()),
				cmp.Compare(x.namespace, y.namespace)); order != 0 {
				return order
			}
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return c
}
