package k8swatch

import (
	"fmt"
)

// overhead is what an object takes beside its content.
const overhead = 1 << 10

// budget counts what a watcher with [OnlyNamed] holds.
type budget struct {
	perNamespace, most int64
	spaces             map[string]*spent
	all                spent
	idle               map[*want]struct{} // held, and nothing names them
	withheld           map[*want]struct{}
	idled              uint64 // how many became idle so far
}

// spent are bytes, and how many of them are idle.
type spent struct{ bytes, idle int64 }

// held is the part of an object in the budget.
type held struct {
	bytes int64
	needs int64  // bytes of an object that is withheld
	left  uint64 // when it became idle: the number of those before it
}

func newBudget(perNamespace, most int64) budget {
	return budget{perNamespace: perNamespace, most: most, spaces: map[string]*spent{}, idle: map[*want]struct{}{}, withheld: map[*want]struct{}{}}
}

// of returns what a namespace has spent.
func (b *budget) of(namespace string) *spent {
	s := b.spaces[namespace]
	if s == nil {
		s = &spent{}
		b.spaces[namespace] = s
	}
	return s
}

// room reports whether an object can have so many bytes, if all make room that nothing names. If
// not, it says why.
func (b *budget) room(w *want, bytes int64) (why string) {
	inSpace, inAll := b.left(w)
	s := b.of(w.of.Namespace)
	switch {
	case bytes > inSpace:
		return fmt.Sprintf("no room is left for its %s: what is named of namespace %s has %s, of %s at most",
			mib(bytes), w.of.Namespace, mib(s.bytes-s.idle), mib(b.perNamespace))
	case bytes > inAll:
		return fmt.Sprintf("no room is left for its %s: what is named of all namespaces has %s, of %s at most",
			mib(bytes), mib(b.all.bytes-b.all.idle), mib(b.most))
	}
	return ""
}

// left returns how much an object can have in its namespace and in all, if all make room that
// nothing names.
func (b *budget) left(w *want) (inSpace, inAll int64) {
	named, s := w.bytes, b.of(w.of.Namespace)
	if _, idle := b.idle[w]; idle {
		named = 0
	}
	return b.perNamespace - (s.bytes - s.idle - named), b.most - (b.all.bytes - b.all.idle - named)
}

// mib prints bytes, rounded up.
func mib(bytes int64) string {
	const tenth = 1 << 20 / 10
	return fmt.Sprintf("%.1f MiB", float64((bytes+tenth-1)/tenth)/10)
}

// tooMuch returns the object that makes room next for what w grows by; nil: there is enough.
func (b *budget) tooMuch(w *want, grown int64) (first *want) {
	inSpace := b.of(w.of.Namespace).bytes+grown > b.perNamespace
	if !inSpace && b.all.bytes+grown <= b.most {
		return nil
	}
	for one := range b.idle {
		if one != w && (!inSpace || one.of.Namespace == w.of.Namespace) && (first == nil || one.left < first.left) {
			first = one
		}
	}
	return first
}

// fitting returns objects that are withheld, and have room by now: together no more than has
// room.
func (b *budget) fitting() (all []*want) {
	spent := map[string]int64{}
	var sum int64
	for w := range b.withheld {
		inSpace, inAll := b.left(w)
		grown := w.needs - w.bytes
		if w.waits || w.needs > inSpace-spent[w.of.Namespace] || w.needs > inAll-sum {
			continue
		}
		spent[w.of.Namespace] += grown
		sum += grown
		all = append(all, w)
	}
	return all
}

// set changes the bytes of an object.
func (b *budget) set(w *want, bytes int64) {
	s, grown := b.of(w.of.Namespace), bytes-w.bytes
	s.bytes += grown
	b.all.bytes += grown
	if _, idle := b.idle[w]; idle {
		s.idle += grown
		b.all.idle += grown
	}
	if s.bytes == 0 {
		delete(b.spaces, w.of.Namespace)
	}
	w.bytes = bytes
	delete(b.withheld, w)
}

// withhold notes that there is no room for an object.
func (b *budget) withhold(w *want, needs int64) {
	w.needs = needs
	b.withheld[w] = struct{}{}
}

// remove drops an object.
func (b *budget) remove(w *want) {
	b.use(w)
	b.set(w, 0)
}

// leave notes that nothing names an object any longer.
func (b *budget) leave(w *want) {
	b.idled++
	w.left = b.idled
	b.idle[w] = struct{}{}
	b.of(w.of.Namespace).idle += w.bytes
	b.all.idle += w.bytes
}

// use notes that an object is named.
func (b *budget) use(w *want) {
	if _, idle := b.idle[w]; idle {
		delete(b.idle, w)
		b.of(w.of.Namespace).idle -= w.bytes
		b.all.idle -= w.bytes
	}
}
