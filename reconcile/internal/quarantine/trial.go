package quarantine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/rendering"
)

// Trial is an attempt with some objects that are held back. It begins with the objects of the
// last valid configuration, so that no newer change can spoil it.
type Trial struct {
	q      *Quarantine
	Keys   []Key
	Tries  int  // failed ones of the first object
	Others bool // objects of other namespaces are due, too
	Hangs  bool // a render or a validation hung with the first object
	read   rendering.Objects
}

// Trial returns the next trial, nil if none is due. The namespaces take turns: the one whose
// last trial is oldest comes first, then the one with the fewest objects.
func (q *Quarantine) Trial(now time.Time) *Trial {
	if q.base == nil {
		return nil
	}
	due := map[string][]Key{}
	for _, h := range q.All() {
		if !h.RetryAt.After(now) {
			due[h.Namespace] = append(due[h.Namespace], h.Key)
		}
	}
	if len(due) == 0 {
		return nil
	}
	maps.DeleteFunc(q.turns, func(space string, _ int) bool { return due[space] == nil })
	first := slices.MinFunc(slices.Collect(maps.Keys(due)), func(a, b string) int {
		return cmp.Or(cmp.Compare(q.turns[a], q.turns[b]), len(due[a])-len(due[b]), strings.Compare(a, b))
	})
	q.trials++
	q.turns[first] = q.trials
	t := &Trial{q: q, Keys: due[first], Others: len(due) > 1}
	if n := q.fails[first]; n > 1 {
		t.Keys = t.Keys[:min(len(t.Keys), (n+1)/2)]
	} else if n == 1 {
		t.Keys = t.Keys[:1]
	}
	t.Tries, t.Hangs = q.held[t.Keys[0]].Tries, q.held[t.Keys[0]].soon
	t.read = q.base.With(q.instead(t.Keys))
	return t
}

// Objects returns what the attempt reads.
func (t *Trial) Objects() rendering.Objects { return t.read }

// Passed ends a trial whose attempt was valid.
func (t *Trial) Passed(now time.Time) (changes []Change) {
	q, space := t.q, t.Keys[0].Namespace
	for _, key := range t.Keys {
		changes = append(changes, q.release(q.held[key], "", now))
	}
	q.fails[space] = max(0, q.fails[space]-len(t.Keys))
	q.good = t.read
	return changes
}

// Failed ends a trial whose attempt was not valid. For each fault it quarantines the first
// object of the trial that the fault names. The others stay due. If no fault names one, a
// single object is quarantined. If there are several, the next trial takes half of them.
func (t *Trial) Failed(faults []Fault, now time.Time) (changes []Change) {
	q, space := t.q, t.Keys[0].Namespace
	named := map[Key]*Fault{}
	for i := range faults {
		for _, obj := range faults[i].Objects {
			if key, ok := q.KeyOf(obj); ok && slices.Contains(t.Keys, key) {
				if named[key] == nil {
					named[key] = &faults[i]
				}
				break
			}
		}
	}
	if len(named) == 0 && len(t.Keys) == 1 && len(faults) > 0 {
		named[t.Keys[0]] = &faults[0]
	}
	for _, key := range t.Keys {
		if f := named[key]; f != nil {
			h := q.held[key]
			changes = append(changes, q.judge(key, h.seen, h.Good, *f, nil, now)...)
		}
	}
	q.fails[space] = 0
	if len(named) == 0 {
		q.fails[space] = len(t.Keys)
	}
	return changes
}

// Cut ends a trial that took too long. It says nothing about the objects, which wait 1 s, and
// twice as long after each further trial that failed or was cut. If there are several, the next trial takes half of them.
func (t *Trial) Cut(now time.Time) {
	for _, key := range t.Keys {
		h := t.q.held[key]
		h.Tries++
		h.RetryAt = now.Add(backOff(relapse, t.q.Max, h.Tries))
	}
	if n := len(t.Keys); n > 1 {
		t.q.fails[t.Keys[0].Namespace] = n
	}
}
