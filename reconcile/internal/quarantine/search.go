package quarantine

import (
	"fmt"
	"slices"
	"time"

	"github.com/hapticsdk/haptic/internal/rendering"
)

// Search looks for the objects without whose changes the newest configuration is valid:
//
//  1. The suspects of each fault are the objects that its line was made of and that changed
//     since the last valid configuration; the most likely one comes first. If none changed,
//     it is the most likely of all. Each round sets back one suspect of each fault. If no
//     fault has objects, all that changed is suspected.
//  2. After a few rounds all changes of the namespaces named so far are set back in one step,
//     or all changes if none was named. If that is not valid, and there was a valid
//     configuration, all changes are set back.
//  3. The last resort: if something is in quarantine, one attempt holds nothing back.
//  4. If nothing is valid then, the templates are at fault.
type Search struct {
	q      *Quarantine
	Newest rendering.Objects
	found  map[Key]*suspect
	spaces map[string]bool // namespaces of suspects
	places map[string]map[Key]bool
	rounds int
	closed bool // their changes are set back
	blind  bool // no fault had objects: what is set back fails together
	freed  bool // nothing is held back any more: the last resort

	// Why says why no object is at fault, once Failed returned false.
	Why string

	// Gone are objects that left quarantine, as they were deleted.
	Gone []Change
}

// suspect is an object that a search holds back.
type suspect struct {
	good  any
	fault *Fault // nil: it is not known to be at fault
	round int    // in which it was suspected
}

// roundsPast is how many rounds a search takes once a valid configuration is there: a
// namespace with many bad objects must not hold up the others for a validation each.
const roundsPast = 3

// Begin begins a search with the newest objects.
func (q *Quarantine) Begin(newest rendering.Objects, now time.Time) *Search {
	return &Search{q: q, Newest: newest, found: map[Key]*suspect{}, spaces: map[string]bool{}, places: map[string]map[Key]bool{}, Gone: q.notice(newest, now)}
}

// Objects returns what the next attempt reads.
func (s *Search) Objects() rendering.Objects {
	if s.freed {
		return s.Newest
	}
	instead := s.q.instead(nil)
	for key, one := range s.found {
		instead[key] = one.good
	}
	return s.Newest.With(instead)
}

// Held is how many objects the next attempt reads as they were before. One whose earlier
// version was at fault, too, counts once.
func (s *Search) Held() int {
	if s.freed {
		return 0
	}
	n := len(s.q.All())
	for key := range s.found {
		if !s.q.Is(key) {
			n++
		}
	}
	return n
}

// Closed reports whether all changes of the namespaces named so far are set back: what the
// attempts from here on say is final, so they may take their time.
func (s *Search) Closed() bool { return s.closed }

// Failed says what was wrong with the last attempt. It reports whether another attempt may be
// valid.
func (s *Search) Failed(faults []Fault) (again bool) {
	s.rounds++
	if s.freed {
		return false
	}
	s.Why = s.templates(faults)
	if s.Why != "" {
		return false
	}
	most := s.q.Tries
	if s.q.good != nil {
		most = min(most, roundsPast)
	}
	if s.rounds <= most && !s.closed {
		located := false
		for i := range faults {
			located = located || len(faults[i].Objects) > 0
			again = s.suspect(&faults[i]) || again
		}
		if !located {
			s.blind = len(s.found) == 0
			again = s.all(func(Key) bool { return true }, faults)
		}
	}
	if !again && !s.closed {
		s.closed = true
		again = s.all(func(k Key) bool { return k.Namespace != "" && s.spaces[k.Namespace] || len(s.spaces) == 0 }, faults)
	}
	if !again && s.q.good != nil {
		again = s.all(func(Key) bool { return true }, faults)
	}
	if !again && len(s.q.instead(nil)) > 0 {
		s.freed, again = true, true
	}
	if !again && s.Why == "" {
		s.Why = "no resource is known to be at fault: correct the templates"
		if s.rounds > 1 {
			s.Why = "the configuration is invalid without the changed resources, too: correct the templates"
		}
	}
	return again
}

// suspect holds back the next object of a fault, and reports whether there is one.
func (s *Search) suspect(f *Fault) bool {
	var candidates []Key
	for _, obj := range f.Objects {
		if key, ok := s.q.KeyOf(obj); ok && !slices.Contains(candidates, key) {
			candidates = append(candidates, key)
		}
	}
	for _, key := range candidates {
		if one := s.found[key]; one != nil && one.round == s.rounds {
			return true // the next attempt tells
		}
	}
	for _, one := range s.found {
		if one.fault != nil && one.round < s.rounds && one.fault.about(f) {
			one.fault = nil // the fault is there without its change: a trial tells
		}
	}
	for _, which := range []func(Key) bool{s.changed, func(Key) bool { return true }} {
		for _, key := range candidates {
			if s.found[key] == nil && !s.q.Is(key) && s.Newest.Get(key) != nil && which(key) {
				s.hold(key, f)
				return true
			}
		}
	}
	for _, key := range candidates { // the version in its place is at fault, too
		if one := s.found[key]; one != nil && one.good != nil {
			one.good, one.fault, one.round = nil, f, s.rounds
			return true
		}
		if h := s.q.held[key]; s.found[key] == nil && s.q.Is(key) && h.Good != nil {
			s.found[key] = &suspect{nil, f, s.rounds}
			return true
		}
	}
	return false
}

// about reports whether two faults are the same mistake, of some of the same objects.
func (f *Fault) about(other *Fault) bool {
	return f != other && f.Kind == other.Kind && slices.ContainsFunc(f.Objects, func(a any) bool {
		return slices.ContainsFunc(other.Objects, func(b any) bool { return Same(a, b) })
	})
}

// changed reports whether an object differs from the last valid configuration.
func (s *Search) changed(key Key) bool {
	return s.q.good == nil || !Same(s.q.good.Get(key), s.Newest.Get(key))
}

func (s *Search) hold(key Key, f *Fault) {
	s.spaces[key.Namespace] = true
	s.found[key] = &suspect{s.q.goodOf(key, s.Newest.Get(key)), f, s.rounds}
}

// goodOf returns the version that may stand in place of an object: that of the last valid
// configuration, if it is another version of the same object.
func (q *Quarantine) goodOf(key Key, is any) any {
	if q.good == nil {
		return nil
	}
	if good := q.good.Get(key); good != nil && uid(good) == uid(is) && !Same(good, is) {
		return good
	}
	return nil
}

// all holds back all changed objects that are selected, and reports whether there are any. A
// single one is at fault.
func (s *Search) all(selects func(Key) bool, faults []Fault) bool {
	var keys []Key
	for obj := range s.Newest.All() {
		if key, ok := s.q.KeyOf(obj); ok && s.found[key] == nil && !s.q.Is(key) && selects(key) && s.changed(key) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		var f *Fault
		if len(keys) == 1 && len(faults) > 0 && len(s.found) == 0 {
			f = &faults[0]
		}
		s.hold(key, f)
	}
	return len(keys) > 0
}

// templates says why a template is at fault, or "". It is if its line is wrong for every
// object of a kind, and there are several such objects, or the line prints nothing of the only
// one, or it was right for that one with the templates before. Templates that made a valid
// configuration are never at fault.
func (s *Search) templates(faults []Fault) string {
	if s.q.proven {
		return ""
	}
	for i := range faults {
		f := &faults[i]
		if f.Place == "" || len(f.Objects) == 0 {
			continue
		}
		key, ok := s.q.KeyOf(f.Objects[0])
		if !ok {
			continue
		}
		place := f.Place + " " + key.Kind
		if s.places[place] == nil {
			s.places[place] = map[Key]bool{}
		}
		s.places[place][key] = true
	}
	for i := range faults {
		f := &faults[i]
		key, ok := Key{}, false
		if len(f.Objects) > 0 {
			key, ok = s.q.KeyOf(f.Objects[0])
		}
		named := s.places[f.Place+" "+key.Kind]
		if !ok || len(named) == 0 || len(named) < s.count(key.Kind) {
			continue
		}
		if len(named) > 1 || f.Fixed || s.q.good != nil && s.q.good.Get(key) != nil {
			return fmt.Sprintf("%s is wrong for every %s: correct the template", f.Place, key.Kind)
		}
	}
	return ""
}

func (s *Search) count(kind string) (n int) {
	for obj := range s.Newest.All() {
		if key, ok := s.q.KeyOf(obj); ok && key.Kind == kind {
			n++
		}
	}
	return n
}

// blamesAbsence notes that an object was found while others of its namespace were left out: it
// is tried again with them.
func (s *Search) blamesAbsence(key Key) {
	for other, one := range s.found {
		if other != key && one.good == nil && other.Namespace == key.Namespace {
			s.q.held[key].reads[other] = s.Newest.Get(other)
		}
	}
}

// Valid ends a search whose last attempt was valid. read is what that attempt read.
func (s *Search) Valid(read rendering.Objects, now time.Time) (changes []Change) {
	q := s.q
	if s.freed { // with all that was found, too
		clear(s.found)
		for _, h := range q.All() {
			changes = append(changes, q.release(h, "", now))
		}
	}
	for key, one := range s.found {
		is := s.Newest.Get(key)
		if one.fault != nil {
			changes = append(changes, q.judge(key, is, one.good, *one.fault, nil, now)...)
			s.blamesAbsence(key)
		} else {
			q.holdBack(key, is, one.good, now)
		}
	}
	for space := range s.spaces {
		q.fails[space] = 0
		if s.blind && len(s.spaces) == 1 {
			q.fails[space] = len(s.found)
		}
	}
	q.good, q.base, q.proven = read, s.Newest, true
	slices.SortFunc(changes, func(a, b Change) int { return compare(a.Key, b.Key) })
	return changes
}
