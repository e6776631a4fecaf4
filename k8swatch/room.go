package k8swatch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// rooms counts what a watcher holds of each namespace, for [Options.BytesPerNamespace]. It is for
// the goroutine of the reflector.
type rooms struct {
	most   int64
	spaces map[string]int64
	bytes  map[types.NamespacedName]int64 // of what is held
}

// newRooms returns nil without a bound.
func newRooms(most int64) *rooms {
	if most == 0 {
		return nil
	}
	return &rooms{most: most, spaces: map[string]int64{}, bytes: map[types.NamespacedName]int64{}}
}

// take gives an object its room, or an error if there is none. It keeps what it had then.
func (r *rooms) take(p *prepared) {
	if r == nil || p.err != nil {
		return
	}
	size, had, used := sizeOf(p.entry.Object())+overhead, r.bytes[p.NamespacedName], r.spaces[p.Namespace]
	if used-had+size > r.most {
		p.err = fmt.Errorf("no room is left for its %s: namespace %s has %s, of %s at most; it is read again when it changes",
			mib(size), p.Namespace, mib(used), mib(r.most))
		return
	}
	r.set(p.NamespacedName, size)
}

// set changes what an object has; 0: it is gone.
func (r *rooms) set(of types.NamespacedName, bytes int64) {
	if r == nil {
		return
	}
	r.spaces[of.Namespace] += bytes - r.bytes[of]
	r.bytes[of] = bytes
	if bytes == 0 {
		delete(r.bytes, of)
	}
	if r.spaces[of.Namespace] == 0 {
		delete(r.spaces, of.Namespace)
	}
}

// list gives the objects of a list their room: first those that are held already.
func (r *rooms) list(all []*prepared) {
	if r == nil {
		return
	}
	listed, fresh := make(map[types.NamespacedName]bool, len(all)), all[:0:0]
	for _, p := range all {
		listed[p.NamespacedName] = true
	}
	for of := range r.bytes {
		if !listed[of] {
			r.set(of, 0)
		}
	}
	for _, p := range all {
		if r.bytes[p.NamespacedName] == 0 {
			fresh = append(fresh, p)
		} else {
			r.take(p)
		}
	}
	for _, p := range fresh {
		r.take(p)
	}
}
