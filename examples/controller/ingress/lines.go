package ingress

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// held is a line that an Ingress has.
type held struct {
	line
	host   string
	ing    *networkingv1.Ingress
	serves string // the backend
	split  Canary // zero: none
	memory holder
}

// holder is who had a thing, and what served it. While that Ingress is quarantined, others may
// be served, and get the thing only for the time being.
type holder struct {
	ing    *networkingv1.Ingress // nil: only an earlier configuration shows it
	serves string                // a backend, or the file of a certificate
	secret Name                  // of that file, if known
}

// remember returns who has a thing from now on, for the next transaction.
func (m *Model) remember(at *derive.Reads, was, now holder) holder {
	if was.ing != nil && m.isOut(at, "Ingress", nameOf(was.ing)) {
		return was
	}
	return now
}

// turn orders those who want a thing: first those that are served with it as before, then the
// one that had it, then all others by age. Otherwise a file whose name sorts first could take
// a path from a live one. serves is what would serve it now, and had who had it before.
func turn(ing *networkingv1.Ingress, serves string, had holder) int {
	switch {
	case had.serves == "" || had.serves == serves:
		return 0
	case had.ing != nil && isSame(had.ing, ing):
		return 1
	}
	return 2
}

// why says why another Ingress has a thing.
func why(first, ing *networkingv1.Ingress) string {
	if byAge(first, ing) < 0 {
		return "which is older"
	}
	return "which has it already"
}

// give gives a line to one of the Ingresses that ask for it, and refuses it to the others. On
// a host of all namespaces, the line belongs to the namespace that claimed it first.
func (m *Model) give(at *derive.Reads, of line, all []*candidate, was held) (held, bool) {
	had := was.memory
	if had.serves == "" {
		had.serves = m.earlier.holder(of)
	}
	owner := ""
	if m.isShared(all[0].host) && of.kind != passedHost {
		owner = all[0].ing.Namespace
		last, _, _ := strings.Cut(had.serves, "_")
		for _, c := range all {
			if c.ing.Namespace == last {
				owner = last
			}
		}
	}
	var first *candidate
	best := 3
	fits := map[*candidate]bool{}
	for _, c := range all {
		if owner != "" && c.ing.Namespace != owner {
			refuse(at, c.ing, c.endOfField(), fmt.Sprintf("%s path %s belongs to namespace %s, which claimed it first", of.kind, of.key, owner))
			continue
		}
		if problem := m.backendProblem(at, c.ing.Namespace, c.serves); problem != "" && of.kind != passedHost {
			tellOnce(at, "Ingress", c.ing, refusalOf(c.field.sub(".backend"), problem))
			continue
		}
		fits[c] = true
		if t := turn(c.ing, c.serves, had); t < best {
			first, best = c, t
		}
	}
	for _, c := range all {
		if c != first && fits[c] {
			refuse(at, c.ing, c.endOfField(), of.taken(first.ing, c.ing))
		}
	}
	if first == nil {
		return held{}, false
	}
	now := held{line: of, host: first.host, ing: first.ing, serves: first.serves}
	now.memory = m.remember(at, had, holder{ing: now.ing, serves: now.serves})
	if first.split != nil {
		now.split = *first.split
	}
	return now, true
}

// endOfField is the field of the claim: a path, or the default backend.
func (c *candidate) endOfField() fieldPath {
	if c.line == (line{}) || c.kind == passedHost {
		return c.field
	}
	return c.field.sub(".path")
}

// taken says who has the line.
func (l line) taken(first, ing *networkingv1.Ingress) string {
	what := "the default backend"
	if l.key != "" {
		what = fmt.Sprintf("%s path %s", l.kind, l.key)
	}
	if first == ing {
		return what + " is given twice"
	}
	return fmt.Sprintf("%s belongs to Ingress %s/%s, %s", what, first.Namespace, first.Name, why(first, ing))
}

// printed makes the entry of a line in a map. The default backend has none.
func printed(_ *derive.Reads, of line, h held, was *Path) (*Path, bool) {
	now := Path{of.key, h.serves, h.ing, of.kind}
	if was != nil && *was == now {
		return was, true
	}
	return &now, of != line{}
}

// byKind adds a path to those of its map.
func byKind(of line, p *Path, add func(networkingv1.PathType, *Path)) { add(of.kind, p) }
