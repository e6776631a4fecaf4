package ingress

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// checks are the health checks that a backend asks for.
type checks struct {
	namespace string
	ask       *backendAsk
	servers   int
	rate      int // a thousandth of a check in a second
}

// checkBudget shares health checks among backends. Those without a share are not checked.
type checkBudget struct {
	*limits.Budget[string]
	space func(*checks) string
	asks  func(*checks) int
	limit int    // as the message has it
	says  string // with the namespace and the limit
}

// refuses reports whether a backend has no share.
func (b *checkBudget) refuses(at *derive.Reads, backend string, c *checks) bool {
	return b.Share(at, b.space(c), backend) < b.asks(c)
}

// deriveChecks takes the health checks from backends that have no share of them.
func (m *Model) deriveChecks(served *derive.Collection[string, *Backend]) *derive.Collection[string, *Backend] {
	l, ofOne, ofAll := &m.Limits, func(c *checks) string { return c.namespace }, func(*checks) string { return "" }
	servers, rate := func(c *checks) int { return c.servers }, func(c *checks) int { return c.rate }
	asked := derive.Each("checks", served, m.askChecks)
	m.budgetChecks("checks of a namespace", asked,
		&checkBudget{space: ofOne, asks: servers, limit: l.ChecksPerNamespace,
			says: "namespace %s has more than the %s servers with health checks of one namespace (checks-per-namespace)"},
		&checkBudget{space: ofOne, asks: rate, limit: l.ChecksPerSecondPerNamespace,
			says: "namespace %s has more than the %s health checks a second of one namespace (checks-per-second-per-namespace)"})
	// Checks beyond the share of a namespace take nothing from the others.
	within := derive.Each("checks within shares", asked, func(at *derive.Reads, name string, c *checks, _ *checks) (*checks, bool) {
		for _, b := range m.checkBudgets[:2] {
			if b.refuses(at, name, c) {
				return nil, false
			}
		}
		return c, true
	})
	m.budgetChecks("checks of all", within,
		&checkBudget{space: ofAll, asks: servers, limit: l.ChecksOfAll,
			says: "with namespace %s, all have more than the %s servers with health checks of all namespaces (checks-of-all)"},
		&checkBudget{space: ofAll, asks: rate, limit: l.ChecksPerSecondOfAll,
			says: "with namespace %s, all have more than the %s health checks a second of all namespaces (checks-per-second-of-all)"})
	return derive.Each("backends within checks", served, func(at *derive.Reads, name string, b *Backend, was *Backend) (*Backend, bool) {
		return m.withinChecks(at, name, b, asked, was), true
	})
}

// budgetChecks makes budgets for the number of checks and for their rate.
func (m *Model) budgetChecks(name string, from *derive.Collection[string, *checks], number, rate *checkBudget) {
	order := limits.OrderOf(name+", by age", from, func(_ string, c *checks) (string, *backendAsk) {
		return number.space(c), c.ask
	}, (*backendAsk).compare, cmp.Compare[string])
	for _, b := range []*checkBudget{number, rate} {
		most := b.limit
		if b == rate {
			most *= 1000
		}
		b.Budget = limits.NewBudget(b.says, from, func(_ string, c *checks) (string, int) { return b.space(c), b.asks(c) }, order, most, limits.Whole)
		m.checkBudgets = append(m.checkBudgets, b)
	}
}

// askChecks counts the health checks of a backend.
func (m *Model) askChecks(at *derive.Reads, name string, b *Backend, _ *checks) (*checks, bool) {
	every := b.Options.CheckInterval()
	if every == 0 || len(b.Servers) == 0 {
		return nil, false
	}
	all, _ := m.backendAsks.Get(at, name)
	perSecond := int((time.Duration(len(b.Servers))*1000*time.Second + every - 1) / every)
	return &checks{all[0].ref.Namespace, all[0], len(b.Servers), perSecond}, true
}

// withinChecks returns a backend without its checks if it has no share of them.
func (m *Model) withinChecks(at *derive.Reads, name string, b *Backend, asked *derive.Collection[string, *checks], was *Backend) *Backend {
	if b.Options.CheckInterval() == 0 {
		return b
	}
	c, ok := asked.Get(at, name)
	if !ok {
		return b
	}
	for _, budget := range m.checkBudgets {
		if !budget.refuses(at, name, c) {
			continue
		}
		words := strings.Split(name, "_")
		limits.Refuse(at, "Service", b.Service, reconcile.Refusal{Reason: fmt.Sprintf(budget.says, c.namespace, figure(budget.limit)) +
			fmt.Sprintf(": the %s servers of port %s are used without checks", figure(c.servers), words[2])})
		now := *b
		now.Options = b.Options.WithoutChecks()
		if was != nil && was.equal(&now) {
			return was
		}
		return &now
	}
	return b
}
