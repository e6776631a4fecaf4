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
	rate      int // in thousandths of a check a second
}

// deriveChecks takes the health checks from backends that have no share of them.
func (m *Model) deriveChecks(served *derive.Collection[string, *Backend]) *derive.Collection[string, *Backend] {
	l, asked := &m.Limits, derive.Each("checks", served, m.askChecks)
	order := limits.OrderOf("checks by age", asked, func(_ string, c *checks) (string, *backendAsk) {
		return c.namespace, c.ask
	}, (*backendAsk).compare, cmp.Compare[string])
	m.checkBudget = limits.NewBudget("checks of a namespace", asked, func(_ string, c *checks) (string, int) {
		return c.namespace, c.servers
	}, order, limits.Bound{Name: "checks", Namespace: l.ChecksPerNamespace, All: l.ChecksOfAll}, limits.Whole)
	m.checkRateBudget = limits.NewBudget("rate of checks", asked, func(_ string, c *checks) (string, int) {
		return c.namespace, c.rate
	}, order, limits.Bound{Name: "checks-per-second", Namespace: 1000 * l.ChecksPerSecondPerNamespace, All: 1000 * l.ChecksPerSecondOfAll, Item: 500, Scale: 1000}, limits.Whole)
	return derive.Each("backends within checks", served, func(at *derive.Reads, name string, b *Backend, was *Backend) (*Backend, bool) {
		return m.withinChecks(at, name, b, asked, was), true
	})
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
	why := ""
	switch {
	case m.checkBudget.Share(at, c.namespace, name) < c.servers:
		why = m.checkBudget.Over(at, c.namespace, "servers with health checks")
	case m.checkRateBudget.Share(at, c.namespace, name) < c.rate:
		why = m.checkRateBudget.Over(at, c.namespace, "health checks a second")
	default:
		return b
	}
	limits.Refuse(at, "Service", b.Service, reconcile.Refusal{Reason: fmt.Sprintf("namespace %s has %s: the %s servers of port %s are used without checks",
		c.namespace, why, figure(c.servers), strings.Split(name, "_")[2])})
	now := *b
	now.Options = b.Options.WithoutChecks()
	if was != nil && was.equal(&now) {
		return was
	}
	return &now
}
