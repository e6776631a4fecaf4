// Package quarantine decides which objects renders read as they were before, and when these
// are tried again. It is pure: what happened and the time go in, and what to do comes out.
//
// An object is in one of four states:
//
//	state        renders read          until
//	free         the object            it is suspected
//	HeldBack     its good version      a trial, which is due at once, and after a cut one later
//	Quarantined  its good version      it or something that it read changes, no instance refuses it, or its time comes; then a trial
//	Released     the object, if any    it fails again, or Max passes
//
// A deleted object that was quarantined is Released, too: if it comes back and fails, that is a
// relapse. The good version is the one in the last valid configuration, the one that a refusing
// instance has, or nothing. The last resort releases all. docs/quarantine.md has the rules for users.
package quarantine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/rendering"
)

// Key names an object, whatever its version.
type Key = rendering.Key

// Status is the state of an object that is not free.
type Status uint8

// The states.
const (
	HeldBack    Status = iota // it changed together with what was at fault, and waits for a trial
	Quarantined               // the configuration is not valid with it
	Released                  // it is valid again; a relapse waits longer
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	Objects []any  // that the faulty line was made of: the most likely first
	Place   string // the template line; "": not known
	Kind    string // equal for what may be one and the same mistake
	Fixed   bool   // the template line prints nothing of any object
	Soon    bool   // try the object again at once, and with more time
	About   any    // of the caller
}

// Held is an object with its state.
type Held struct {
	Key
	Status
	Bad       any      // the version that was at fault
	Good      any      // the version that renders read; nil: none
	About     any      // of the fault; nil if it is not known to be at fault
	Instances []string // that refuse it; none: the validator does
	Since     time.Time
	RetryAt   time.Time
	Tries     int // failed trials of this version

	seen     any         // the newest version
	reads    map[Key]any // what it was made of when it failed, besides itself
	judged   time.Time   // when it was last at fault; zero: never
	relapses int         // how often it was at fault again after a change or a release
	changed  bool        // since it was judged
	released time.Time
	noLonger bool // no instance refuses it any more
	soon     bool // its fault was to be tried again at once
}

// Options of a [Quarantine].
type Options struct {
	Tries     int           // rounds of a search
	Base, Max time.Duration // waits between two trials of an object that does not change
	KeyOf     func(obj any) (Key, bool)
}

// Quarantine is what is held back and why.
type Quarantine struct {
	Options
	held   map[Key]*Held
	good   rendering.Objects // of the last valid configuration, as renders read them; nil: none
	base   rendering.Objects // the same, as they were
	proven bool              // the current templates made a valid configuration
	turns  map[string]int    // the number of the last trial of a namespace
	trials int
	fails  map[string]int // by namespace: so many of those that are due next are known to fail together
}

// New returns a quarantine without objects.
func New(o Options) *Quarantine {
	return &Quarantine{Options: o, held: map[Key]*Held{}, turns: map[string]int{}, fails: map[string]int{}}
}

// relapse is how long a changed object waits after the first relapse, doubling with each. It
// never waits longer than one that does not change.
const relapse = time.Second

// lateFactor times Max is the longest wait of an object that an instance refuses: each trial
// of it changes all instances.
const lateFactor = 24

// Proven reports whether the current templates made a valid configuration.
func (q *Quarantine) Proven() bool { return q.proven }

// Good returns the objects of the last valid configuration, as renders read them; nil: none.
func (q *Quarantine) Good() rendering.Objects { return q.good }

// Get returns an object that is held back, or nil.
func (q *Quarantine) Get(key Key) *Held {
	if !q.Is(key) {
		return nil
	}
	return q.held[key]
}

// All returns what is held back, sorted by kind and name.
func (q *Quarantine) All() []*Held {
	all := slices.DeleteFunc(slices.Collect(maps.Values(q.held)), func(h *Held) bool { return h.Status == Released })
	slices.SortFunc(all, func(a, b *Held) int { return compare(a.Key, b.Key) })
	return all
}

func compare(a, b Key) int {
	return cmp.Or(
		strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.APIVersion, b.APIVersion),
	)
}

// Is reports whether an object is held back.
func (q *Quarantine) Is(key Key) bool {
	h := q.held[key]
	return h != nil && h.Status != Released
}

// Next returns when the next trial is due; zero: never.
func (q *Quarantine) Next() (at time.Time) {
	for _, h := range q.All() {
		if at.IsZero() || h.RetryAt.Before(at) {
			at = h.RetryAt
		}
	}
	return at
}

// Forget has everything tried at once, as after a change of the templates: nothing is proven
// with them.
func (q *Quarantine) Forget() {
	q.proven = false
	for _, h := range q.held {
		h.RetryAt, h.Tries, h.relapses = time.Time{}, 0, 0
	}
}

// Change says that an object entered quarantine, or left it.
type Change struct {
	*Held
	Reason string // of a release; "": it entered, or another version is at fault or is read now
}

// The reasons of releases.
const (
	ReasonChanged   = "it changed or was deleted"
	ReasonValid     = "the configuration is valid with it again"
	ReasonNoLonger  = "no instance refuses it any more"
	ReasonInstances = "the controller tries it again at the instances that refused it"
)

// notice looks at the newest objects. It releases deleted ones, whose relapses it keeps until
// Max has passed, and makes those due that changed, or whose reads changed.
func (q *Quarantine) notice(newest rendering.Objects, now time.Time) (gone []Change) {
	for key, h := range q.held {
		is := newest.Get(key)
		switch {
		case h.Status == Released && now.Sub(h.released) > q.Max, h.Status == Released && h.judged.IsZero():
			delete(q.held, key)
		case h.Status == Released:
		case is == nil || uid(is) != uid(h.seen):
			gone = append(gone, q.release(h, ReasonChanged, now))
			if h.judged.IsZero() {
				delete(q.held, key)
			}
		case !Same(is, h.seen):
			h.seen, h.changed, h.Tries = is, true, 0
			q.hurry(h, now)
			q.fails[key.Namespace] = 0
		case h.readsChanged(newest):
			q.hurry(h, now)
		}
	}
	return gone
}

// hurry makes an object due as soon as its relapses allow.
func (q *Quarantine) hurry(h *Held, now time.Time) {
	at := now
	if h.relapses > 0 {
		at = h.judged.Add(backOff(relapse, q.Max, h.relapses))
	}
	if at.Before(h.RetryAt) {
		h.RetryAt = at
	}
}

func (h *Held) readsChanged(newest rendering.Objects) (changed bool) {
	for key, was := range h.reads {
		if is := newest.Get(key); !Same(is, was) {
			h.reads[key], changed = is, true
		}
	}
	return changed
}

// instead returns what renders read in place of the held objects, except for some.
func (q *Quarantine) instead(except []Key) map[Key]any {
	all := map[Key]any{}
	for key, h := range q.held {
		if h.Status != Released && !slices.Contains(except, key) {
			all[key] = h.Good
		}
	}
	return all
}

// holdBack holds an object until its trial, which is due at once.
func (q *Quarantine) holdBack(key Key, is, good any, now time.Time) {
	h := q.held[key]
	if h == nil {
		h = &Held{Key: key}
		q.held[key] = h
	}
	h.Status, h.Bad, h.seen, h.Good, h.About, h.Instances, h.Since, h.RetryAt, h.Tries, h.changed = HeldBack, is, is, good, nil, nil, now, now, 0, false
}

// judge quarantines an object. If a trial of the same version failed again, that is no change.
func (q *Quarantine) judge(key Key, is, good any, f Fault, instances []string, now time.Time) (changes []Change) {
	h := q.held[key]
	again := h != nil && h.Status == Quarantined && Same(h.Bad, is)
	same := again && Same(h.Good, good) && h.soon == f.Soon
	switch {
	case h == nil:
		h = &Held{Key: key, Since: now}
		q.held[key] = h
	case again:
		h.Tries++
	default:
		h.Tries = 0
		if !h.judged.IsZero() {
			h.relapses++
		}
		if h.Status == Released {
			h.Since = now
		}
	}
	h.Status, h.Bad, h.seen, h.Good, h.About, h.Instances, h.judged, h.changed, h.noLonger = Quarantined, is, is, good, f.About, instances, now, false, false
	h.soon, h.reads = f.Soon, map[Key]any{}
	for _, obj := range f.Objects {
		if k, ok := q.KeyOf(obj); ok && k != key {
			h.reads[k] = obj
		}
	}
	if q.postpone(h, now); f.Soon {
		h.RetryAt = now
	}
	if !same {
		changes = append(changes, Change{Held: h})
	}
	return changes
}

// postpone sets the next trial of an object that does not change.
func (q *Quarantine) postpone(h *Held, now time.Time) {
	most, failures := q.Max, h.Tries+1
	if len(h.Instances) > 0 { // a trial releases it first, so each failure is a relapse
		most, failures = lateFactor*most, h.relapses+1
	}
	h.RetryAt = now.Add(backOff(q.Base, most, failures))
}

// release frees an object.
func (q *Quarantine) release(h *Held, reason string, now time.Time) Change {
	switch {
	case reason != "":
	case h.changed:
		reason = ReasonChanged
	case h.noLonger:
		reason = ReasonNoLonger
	case len(h.Instances) > 0:
		reason = ReasonInstances
	default:
		reason = ReasonValid
	}
	was := *h
	h.Status, h.Good, h.RetryAt, h.released = Released, nil, time.Time{}, now
	return Change{&was, reason}
}

// Refuse quarantines an object that an instance refuses. good is the version that the instance
// has; nil: none.
func (q *Quarantine) Refuse(key Key, is, good any, f Fault, instance string, now time.Time) []Change {
	if Same(is, good) {
		good = nil
	}
	return q.judge(key, is, good, f, []string{instance}, now)
}

// AlsoRefuse notes that another instance refuses a held object, or the version in its place.
func (q *Quarantine) AlsoRefuse(key Key, version any, instance string) {
	h := q.held[key]
	if h.Good != nil && Same(h.Good, version) {
		h.Good = nil
	}
	if len(h.Instances) > 0 && !slices.Contains(h.Instances, instance) {
		h.Instances = append(slices.Clone(h.Instances), instance)
		slices.Sort(h.Instances)
	}
}

// Withdraw takes back what an instance refused. Objects that no other instance refuses are due
// at once.
func (q *Quarantine) Withdraw(instance string) {
	for _, h := range q.All() {
		if !slices.Contains(h.Instances, instance) {
			continue
		}
		h.Instances = slices.DeleteFunc(slices.Clone(h.Instances), func(n string) bool { return n == instance })
		if len(h.Instances) == 0 {
			h.noLonger, h.RetryAt, h.relapses, h.Tries = true, time.Time{}, 0, 0
		}
	}
}

// Same reports whether two objects are the same version of the same object; nil is none.
func Same(a, b any) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	x, ok := a.(metav1.Object)
	y, is := b.(metav1.Object)
	return ok && is && x.GetResourceVersion() != "" && x.GetResourceVersion() == y.GetResourceVersion() &&
		x.GetUID() == y.GetUID() && x.GetName() == y.GetName() && x.GetNamespace() == y.GetNamespace()
}

func uid(obj any) string {
	if o, ok := obj.(metav1.Object); ok {
		return string(o.GetUID())
	}
	return ""
}

// backOff doubles a wait with each failure, from the first.
func backOff(base, most time.Duration, failures int) time.Duration {
	wait := base
	for ; failures > 1 && wait < most; failures-- {
		wait *= 2
	}
	return min(wait, most)
}
