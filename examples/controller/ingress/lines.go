package ingress

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// deriveLines gives lines to Ingresses.
func (m *Model) deriveLines(of *ofAsks) {
	m.lines = derive.Each("lines", of.candidates, m.give)
	m.linesOfHost = derive.Sum("lines of a host", m.lines, func(_ line, h held, add func(string, int)) { add(h.host, 1) })
	m.passedTo = derive.Sum("hosts passed through", m.lines, func(of line, h held, add func(string, int)) {
		if of.kind == passedHost {
			add(h.serves, 1)
		}
	})
}

// held is a line that an Ingress has.
type held struct {
	line
	host   string
	ing    *networkingv1.Ingress
	serves string // the backend
	split  Canary // zero: none
	memory claims.Holder[string]
}

// isAway reports whether the Ingress that has a thing is quarantined: others have it only for
// the time being.
func (m *Model) isAway(at *derive.Reads, by claims.Claimant) bool {
	return by.Name != "" && m.isOut(at, by.Kind, Name{Namespace: by.Namespace, Name: by.Name})
}

func (c *candidate) namespace() string { return c.ing.Namespace }

func (c *candidate) asks() claims.Holder[string] {
	return claims.Holder[string]{By: claimantOf(c.ing), Serves: c.serves}
}

// give gives a line to one of the Ingresses that ask for it, and refuses it to the others. On
// a host of all namespaces, they may be of several.
func (m *Model) give(at *derive.Reads, of line, all []*candidate, was held) (held, bool) {
	had := was.memory
	if had.Serves == "" {
		had = m.earlier.holders[of]
	}
	owner := claims.Owner(had.By.Namespace, all, (*candidate).namespace)
	var fits []*candidate
	for _, c := range all {
		problem := m.backendProblem(at, c.ing.Namespace, c.serves)
		switch {
		case c.ing.Namespace != owner:
			refuse(at, c.ing, c.endOfField(), fmt.Sprintf("%s path %s belongs to namespace %s, which claimed it first", of.kind, of.key, owner))
		case problem != "" && of.kind != passedHost:
			limits.RefuseOnce(at, "Ingress", c.ing, refusalOf(c.field.sub(".backend"), problem))
		default:
			fits = append(fits, c)
		}
	}
	first, ok := claims.First(had, fits, (*candidate).asks)
	if !ok {
		return held{}, false
	}
	for _, c := range fits {
		if c != first {
			refuse(at, c.ing, c.endOfField(), of.taken(first.ing, c.ing))
		}
	}
	now := held{line: of, host: first.host, ing: first.ing, serves: first.serves, memory: had.Then(first.asks(), m.isAway(at, had.By))}
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
	why := "which has it already"
	if byAge(first, ing) < 0 {
		why = "which is older"
	}
	return fmt.Sprintf("%s belongs to %s, %s", what, claimantOf(first), why)
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
