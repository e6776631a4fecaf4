package settings

import "github.com/hapticsdk/haptic/k8swatch"

// changed returns the calls that objects can answer which differ from those in the stores of
// an earlier render. A call gives all index keys of such an object, the first ones or none. It
// returns false if a store does not know what differs. With 5,000 Services, asking each call
// again takes most of a render.
func (r *reads) changed(before any) (calls []any, known bool) {
	was := before.(Stores)
	seen := map[call]bool{}
	for name, store := range r.stores {
		keys, known := store.changedSince(was[name])
		if !known {
			return nil, false
		}
		for _, key := range keys {
			for n := range len(key) + 1 {
				if c := callOf(name, key[:n]); !seen[c] {
					seen[c] = true
					calls = append(calls, c)
				}
			}
		}
	}
	return calls, len(was) == len(r.stores)
}

// changedSince returns the index keys of the objects that differ, and whether it knows them.
func (s Store) changedSince(before Store) (keys [][]string, known bool) {
	if s.Revision == 0 || before.Revision == 0 {
		return nil, false
	}
	keys, known = s.snapshot.ChangedSince(before.snapshot)
	if known {
		return keys, true
	}
	return nil, s.snapshot == nil && s.Revision == before.Revision
}

// eachItems has the objects of a resource as the last render had them, for templates with
// each. A render shares them while the store has the same revision.
type eachItems map[string]revised

type revised struct {
	revision k8swatch.Revision
	items    []any
}

// itemsOf returns all objects of a resource.
func (r *reads) itemsOf(resource string) ([]any, error) {
	revision := r.stores[resource].Revision
	if last := r.items[resource]; revision != 0 && last.revision == revision {
		return last.items, nil
	}
	objs, err := r.get(resource, nil)
	if err != nil {
		return nil, err
	}
	items := make([]any, len(objs))
	for i, o := range objs {
		items[i] = o
	}
	r.items[resource] = revised{revision, items}
	return items, nil
}
