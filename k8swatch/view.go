package k8swatch

import (
	"iter"
	"maps"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/k8swatch/internal/store"
)

// View is what the renders of a loop read: all objects at one instant. Give it to the loop as
// reconcile.Options.View. The loop chooses the instant. If an object makes the configuration
// invalid, the loop holds it back: the view has its last good version, or none. Renders notice
// nothing of that. All methods may be called concurrently.
type View struct {
	snapshot func() *GroupSnapshot

	mu      sync.Mutex
	shown   *GroupSnapshot // nil: nothing was shown yet
	made    uint64         // snapshots with other objects
	pending Changes        // that a Feed may lack
	reread  bool
}

// NewView makes a view of snapshots, such as those of [Group.Snapshot].
//
//	view := k8swatch.NewView(group.Snapshot)
func NewView(snapshot func() *GroupSnapshot) *View { return &View{snapshot: snapshot} }

// Snapshot returns the objects that renders read now: those that the loop shows or, without a
// loop, the newest ones.
func (v *View) Snapshot() *GroupSnapshot {
	v.mu.Lock()
	shown := v.shown
	v.mu.Unlock()
	if shown != nil {
		return shown
	}
	return v.newest()
}

// Changed notes changes of the group, for a [Feed]: its next Fill sets these alone.
func (v *View) Changed(c Changes) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pending = v.pending.And(c)
}

// Reread makes the next Fill of a [Feed] set all objects as they are then, after a
// [Group.Refresh]: changes that wait may be older.
func (v *View) Reread() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reread = true
}

// newest returns the snapshot to which the noted changes lead or, without any, a new one.
func (v *View) newest() *GroupSnapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.pending.Snapshot; s != nil && !v.reread && (v.shown == nil || s.revision >= v.shown.real().revision) {
		return s
	}
	return v.snapshot()
}

// take returns the noted changes, and whether they have all that differs between two
// snapshots. last is nil for none.
func (v *View) take(last, now *GroupSnapshot) (changes []Change, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.pending
	switch {
	case last == nil || v.reread || p.More > 0:
	case now.real().revision == last.real().revision:
		known = true
	default:
		known = p.From <= last.real().revision && now.real().revision <= p.To
	}
	v.reread = false
	if !known || now.real().revision >= p.To {
		v.pending = Changes{Snapshot: p.Snapshot}
	}
	return p.Objects, known
}

// In returns a snapshot of any watchers as the view has it: with the objects that stand in place
// of those that are held back.
func (v *View) In(s *GroupSnapshot) *GroupSnapshot {
	instead := v.Snapshot().instead
	if len(instead) == 0 {
		return s
	}
	return (&instant{v, s}).With(instead).(*instant).GroupSnapshot
}

// Newest is for the loop: it returns the objects as they are now.
func (v *View) Newest() rendering.Objects { return &instant{v, v.newest()} }

// Show is for the loop: renders read these objects from here on.
func (v *View) Show(objects rendering.Objects) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shown = objects.(*instant).GroupSnapshot
}

// instant implements rendering.Objects.
type instant struct {
	view *View
	*GroupSnapshot
}

func (i *instant) Get(key rendering.Key) any {
	for _, s := range i.of {
		if o := s.ByName(key.Namespace, key.Name); o != nil && isNamed(o, key) {
			return o
		}
	}
	return nil
}

func isNamed(o Object, key rendering.Key) bool {
	version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return kind == key.Kind && (version == key.APIVersion || key.APIVersion == "") && o.GetName() == key.Name && o.GetNamespace() == key.Namespace
}

func (i *instant) All() iter.Seq[any] {
	return func(yield func(any) bool) {
		for _, s := range i.of {
			for o := range s.All() {
				if !yield(o) {
					return
				}
			}
		}
	}
}

func (i *instant) With(instead map[rendering.Key]any) rendering.Objects {
	if len(instead) == 0 {
		return i
	}
	return &instant{i.view, i.with(instead, i.view.revision())}
}

// revision returns a revision that no other snapshot has.
func (v *View) revision() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.made++
	return overlaid | v.made
}

// overlaid is set in the revisions of snapshots that no store ever had.
const overlaid = 1 << 62

// with returns a snapshot with other objects in place of some.
func (s *GroupSnapshot) with(instead map[rendering.Key]any, revision uint64) *GroupSnapshot {
	now := &GroupSnapshot{of: map[*Watcher]*Snapshot{}, byGVR: maps.Clone(s.byGVR), revision: s.revision, base: s, instead: instead}
	for w, part := range s.of {
		now.of[w] = part.with(instead, revision)
		if s.byGVR[w.resource] == part {
			now.byGVR[w.resource] = now.of[w]
		}
	}
	return now
}

// with replaces the objects that the snapshot has. An earlier version stands where the object
// is now.
func (s *Snapshot) with(instead map[rendering.Key]any, revision uint64) *Snapshot {
	var entries []*store.Entry
	var gone [][2]string
	for key, other := range instead {
		if o := s.ByName(key.Namespace, key.Name); o == nil || !isNamed(o, key) {
			continue
		}
		o, ok := other.(Object)
		if !ok || reflect.TypeOf(o) != s.typ {
			gone = append(gone, [2]string{key.Namespace, key.Name})
			continue
		}
		if keys, err := s.paths.keys(o); err == nil { // it was stored with them once
			entries = append(entries, store.NewEntry(o, keys))
		}
	}
	if len(entries)+len(gone) == 0 {
		return s
	}
	other := *s
	other.held = s.held.With(entries, gone, revision)
	return &other
}

// names yields the objects that stand in place of others.
func (s *GroupSnapshot) names(yield func(types.NamespacedName) bool) {
	for key := range s.instead {
		if !yield(types.NamespacedName{Namespace: key.Namespace, Name: key.Name}) {
			return
		}
	}
}
