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
	left               uint64 // how many became idle so far
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
	grown, own, s := bytes-w.bytes, int64(0), b.of(w.of.Namespace)
	if _, idle := b.idle[w]; idle {
		own = w.bytes
	}
	switch {
	case s.bytes-s.idle+own+grown > b.perNamespace:
		return fmt.Sprintf("no room is left for its %s: what is named of namespace %s has %s, of %s at most",
			mib(bytes), w.of.Namespace, mib(s.bytes-s.idle), mib(b.perNamespace))
	case b.all.bytes-b.all.idle+own+grown > b.most:
		return fmt.Sprintf("no room is left for its %s: what is named of all namespaces has %s, of %s at most",
			mib(bytes), mib(b.all.bytes-b.all.idle), mib(b.most))
	}
	return ""
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

// next returns an object that is withheld, and has room by now; nil: there is none.
func (b *budget) next() (first *want) {
	for w := range b.withheld {
		if !w.waits && (first == nil || w.of.String() < first.of.String()) && b.room(w, w.needs) == "" {
			first = w
		}
	}
	return first
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
	b.left++
	w.left = b.left
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
