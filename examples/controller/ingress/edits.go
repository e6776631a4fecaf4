package ingress

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/reconcile"
)

// table is a map with changes that do not count yet. The zero value of V stands for
// what is not there.
type table[K, V comparable] struct {
	base map[K]V
	over map[K]V // nil: changes count at once
}

func (t *table[K, V]) get(key K) V {
	if v, ok := t.over[key]; ok {
		return v
	}
	return t.base[key]
}

func (t *table[K, V]) set(key K, v V) {
	if t.over != nil {
		t.over[key] = v
	} else {
		t.base[key] = v
	}
}

// commit makes the changes count.
func (t *table[K, V]) commit() {
	var none V
	for key, v := range t.over {
		if t.base[key] = v; v == none {
			delete(t.base, key)
		}
	}
	t.over = nil
}

// edits are what goes from a sorted list, and what comes.
type edits[T any] struct{ gone, come []T }

// apply returns the list after the edits: the same memory where that is equal.
func (e *edits[T]) apply(list []T, compare func(x, y T) int, equal func(x, y T) bool) []T {
	gone, come := e.gone, e.come
	slices.SortFunc(gone, compare)
	slices.SortFunc(come, compare)
	if slices.EqualFunc(gone, come, equal) {
		return list
	}
	var now []T
	if n := len(list) + len(come) - len(gone); n > 0 {
		now = make([]T, 0, n)
	}
	for len(gone)+len(come) > 0 {
		goes := len(come) == 0 || len(gone) > 0 && compare(gone[0], come[0]) <= 0
		next := &come
		if goes {
			next = &gone
		}
		at, found := slices.BinarySearchFunc(list, (*next)[0], compare)
		now, list = append(now, list[:at]...), list[at:]
		if goes && found {
			list = list[1:]
		} else if !goes {
			now = append(now, come[0])
		}
		*next = (*next)[1:]
	}
	return append(now, list...)
}

// sayAnew puts what was said now in the place of all that was said before of the resources
// that were touched.
func (b *builder) sayAnew(last []reconcile.Refusal, before map[string]told) []reconcile.Refusal {
	e := edits[reconcile.Refusal]{come: b.routes.Refused}
	for resource, now := range b.told {
		if _, _, is := strings.Cut(resource, " "); is && now.count > 0 && !b.fast.touched[resource] {
			b.fast.touched[resource] = true
			b.fast.doubt = b.fast.doubt || before[resource].count > 0
		}
	}
	for resource := range b.fast.touched {
		was, is := before[resource].count, b.told[resource].count
		if was+is == 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(last, resource, func(r reconcile.Refusal, name string) int { return strings.Compare(r.Resource, name) })
		e.gone = append(e.gone, last[at:at+was]...)
		_, name, _ := strings.Cut(resource, " ")
		namespace, _, _ := strings.Cut(name, "/")
		space := before[namespace]
		full := was >= reconcile.MaxRefusals || is >= reconcile.MaxRefusals || space.count >= toldResources
		if space.count += min(is, 1) - min(was, 1); full || space.count >= toldResources {
			b.fast.doubt = true
		}
		before[namespace], before[resource] = space, told{count: is}
		if is == 0 {
			delete(before, resource)
		}
	}
	return e.apply(last, compareRefused, func(x, y reconcile.Refusal) bool { return x == y })
}
