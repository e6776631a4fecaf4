package derive

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Graph holds collections and computes them again in transactions. Make one with [New]. A
// Graph and its collections are for one goroutine at a time.
type Graph struct {
	nodes    []node // in the order in which they were made, which is the order of computing
	due      deadlines
	mostDue  int           // of them before those of the past are dropped
	indexes  []reportIndex // collections of reports
	number   int           // of the transaction
	now      time.Time     // of the running transaction
	open     bool
	failed   bool
	computed int
	fresh    bool  // nothing was ever committed
	broken   error // see Collection.put
}

// New returns a graph without collections.
func New() *Graph { return &Graph{fresh: true} }

// node is a collection, whatever its types.
type node interface {
	label() string
	key(slot int32) any
	mark(slot int32, why ref)
	compute(ctx context.Context) []error
	isDirty() bool
	addReader(slot int32, r ref)
	dropReader(slot int32, r ref)
	changedNow(slot int32) bool
	settle()
	rollback()
	deadline(slot int32) time.Time
	expire(slot int32)
	markAll()
}

// ref names an item by the number of its collection and its place there.
type ref uint64

const noRef = ^ref(0)

func refOf(node int, slot int32) ref { return ref(node)<<32 | ref(uint32(slot)) }

func (r ref) node() int   { return int(r >> 32) }
func (r ref) slot() int32 { return int32(uint32(r)) }

// Read names an item of a collection.
type Read struct {
	Collection string
	Key        any  // of the item
	Changed    bool // it changed in the open transaction
}

func (r Read) String() string { return fmt.Sprintf("%s %v", r.Collection, r.Key) }

func (g *Graph) read(r ref) Read {
	n := g.nodes[r.node()]
	return Read{n.label(), n.key(r.slot()), n.changedNow(r.slot())}
}

func (g *Graph) add(n node) int {
	if g.open || g.number > 0 {
		panic("derive: collection " + n.label() + " is made after the first transaction: make all collections before it")
	}
	g.nodes = append(g.nodes, n)
	return len(g.nodes) - 1
}

// begin opens a transaction, if none is open.
func (g *Graph) begin() {
	if !g.open {
		g.open, g.number = true, g.number+1
	}
}

// Run computes every item again that read something which changed, each at most once, and
// stops where an answer is equal. It opens a transaction if [Input.Set] did not. If it
// returns an error, or ctx ends, call it again with other inputs, or roll back.
//
// Failed items are [*ItemError]s. Run computes all items of a collection before it returns
// the errors of that collection together.
func (g *Graph) Run(ctx context.Context) error {
	g.begin()
	g.now, g.computed, g.failed = time.Now(), 0, true
	if g.broken != nil {
		return g.broken
	}
	g.markDue()
	for _, n := range g.nodes {
		if errs := n.compute(ctx); len(errs) > 0 {
			return errors.Join(errs...)
		}
	}
	g.failed = false
	return nil
}

// RunAll is Run, and computes every item again, whether or not it read something that changed.
// The values must be those of Run: a test that compares them finds functions that read
// something without noting it.
func (g *Graph) RunAll(ctx context.Context) error {
	g.begin()
	for _, n := range g.nodes {
		n.markAll()
	}
	return g.Run(ctx)
}

// Commit makes the open transaction the last accepted one. It returns an error, and changes
// nothing, if the last [Graph.Run] failed or an input changed after it.
func (g *Graph) Commit() error {
	if g.failed || g.broken != nil || slices.ContainsFunc(g.nodes, node.isDirty) {
		return errors.New("derive: the transaction is not computed: call Run without an error before Commit, or Rollback")
	}
	for _, n := range g.nodes {
		n.settle()
	}
	g.open, g.fresh = false, false
	return nil
}

// Rollback undoes all that happened since the last Commit: inputs, items, what they read and
// reported. It leaves no trace. Without an open transaction it does nothing.
func (g *Graph) Rollback() {
	if !g.open {
		return
	}
	if g.fresh {
		g.due = nil
	}
	for _, n := range slices.Backward(g.nodes) {
		n.rollback()
	}
	for _, n := range g.nodes {
		n.settle()
	}
	g.open, g.failed, g.broken = false, false, nil
}

// Open reports whether there is a transaction that is neither committed nor rolled back.
func (g *Graph) Open() bool { return g.open }

// Computed is the number of items that the last Run computed.
func (g *Graph) Computed() int { return g.computed }

// Next returns when Run has work to do although no input changed; zero: never. See
// [Reads.Again].
func (g *Graph) Next() time.Time {
	for len(g.due) > 0 {
		if d := g.due[0]; g.nodes[d.of.node()].deadline(d.of.slot()).Equal(d.at) {
			return d.at
		}
		heap.Pop(&g.due) // computed again since
	}
	return time.Time{}
}

// markDue marks the items whose time has come.
func (g *Graph) markDue() {
	for next := g.Next(); !next.IsZero() && !next.After(g.now); next = g.Next() {
		d := heap.Pop(&g.due).(due)
		g.nodes[d.of.node()].expire(d.of.slot())
	}
}

// addDue adds a deadline. An item that is computed again and again leaves former ones behind.
func (g *Graph) addDue(d due) {
	heap.Push(&g.due, d)
	if len(g.due) <= g.mostDue {
		return
	}
	seen := map[ref]bool{}
	g.due = slices.DeleteFunc(g.due, func(d due) bool {
		stale := seen[d.of] || !g.nodes[d.of.node()].deadline(d.of.slot()).Equal(d.at)
		seen[d.of] = seen[d.of] || !stale
		return stale
	})
	heap.Init(&g.due)
	g.mostDue = 1000 + 2*len(g.due)
}

// due is an item that must be computed again at an instant.
type due struct {
	at time.Time
	of ref
}

type deadlines []due

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(due)) }
func (d *deadlines) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}
