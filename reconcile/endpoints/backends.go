package endpoints

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// Port is a port of a Service that a backend leads to.
type Port struct {
	Of      types.NamespacedName
	Service *corev1.Service     // nil: it does not exist
	Port    *corev1.ServicePort // nil: none can be used
}

// hasSlices reports whether the endpoints of a port are in EndpointSlices.
func (p *Port) hasSlices() bool {
	return p.Service != nil && p.Service.Spec.Type != corev1.ServiceTypeExternalName
}

// Options are what stays the same while backends are in use.
type Options struct {
	PerBackend   int // bounds the servers of a backend
	PerNamespace int // bounds the servers of all backends of a namespace
	OfAll        int // bounds the servers of all namespaces, see [limits.Quota]; 0: no bound
	Spare        int // the step of [Slots.Servers]

	// Earlier returns the slots that a backend had in an earlier process, see [ReadSlots]. It
	// counts for backends without slots. Nil: there was no earlier process.
	Earlier func(backend string) Slots
}

// Backends find the servers of backends. They belong to the goroutine of their graph.
type Backends struct {
	opts     Options
	judge    derive.Value[Judge]
	slicesOf *derive.Collection[types.NamespacedName, []*discoveryv1.EndpointSlice] // by Service
	reads    *limits.Budget[string]
	found    *derive.Collection[string, *found]
	servers  *limits.Budget[string]
}

// Judges makes the [Judge] of the rules in an input; without a value, that of the zero value.
func Judges(g *derive.Graph, rules *derive.Collection[struct{}, *Addresses]) derive.Value[Judge] {
	return derive.One(g, "addresses in force", func(at *derive.Reads, _ Judge) Judge {
		a, _ := rules.Get(at, struct{}{})
		return NewJudge(a)
	}).Equal(func(a, b Judge) bool { return false })
}

// NewBackends makes the backends of a collection. port returns the port that one leads to.
// order says which backends of a namespace get servers if it has too many. Backends report
// what is not served to its EndpointSlice or Service: see [limits.Refusals].
func NewBackends[V any](from *derive.Collection[string, V], port func(*derive.Reads, V) Port,
	all *derive.Collection[types.NamespacedName, *discoveryv1.EndpointSlice], judge derive.Value[Judge], order limits.Order[string], opts Options) *Backends {
	b := &Backends{opts: opts, judge: judge}
	b.slicesOf = derive.GroupBy("slices of a Service", all, byService, func(x, y *discoveryv1.EndpointSlice) int { return cmp.Compare(x.Name, y.Name) })
	sized := derive.Each("pods", from, func(at *derive.Reads, _ string, v V, _ *sizedPort) (*sizedPort, bool) {
		now := &sizedPort{to: port(at, v)}
		if now.to.Port != nil && now.to.hasSlices() {
			slices, _ := b.slicesOf.Get(at, now.to.Of)
			now.size = sizeOf(slices, now.to.Port.Name)
		}
		return now, true
	})
	b.reads = limits.NewBudget("endpoints read", sized, func(_ string, p *sizedPort) (string, int) {
		return p.to.Of.Namespace, min(p.size, 2*opts.PerBackend)
	}, order, limits.Bound{Name: "servers", Namespace: 3 * opts.PerNamespace, All: 3 * opts.OfAll, Scale: 3}, limits.Part)
	b.found = derive.Each("addresses", sized, b.find)
	b.servers = limits.NewBudget("servers", b.found, func(_ string, f *found) (string, int) {
		if !f.to.hasSlices() {
			return "", 0
		}
		return f.to.Of.Namespace, min(len(f.addresses), opts.PerBackend)
	}, order, limits.Bound{Name: "servers", Namespace: opts.PerNamespace, All: opts.OfAll}, limits.Part)
	return b
}

// byService adds an EndpointSlice to those of its Service.
func byService(n types.NamespacedName, s *discoveryv1.EndpointSlice, add func(types.NamespacedName, *discoveryv1.EndpointSlice)) {
	add(types.NamespacedName{Namespace: n.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}, s)
}

// sizedPort is a port with the size of its endpoints.
type sizedPort struct {
	to   Port
	size int // what reading them takes
}

// sizeOf counts the endpoints behind a port and the slices, without reading addresses.
func sizeOf(all []*discoveryv1.EndpointSlice, port string) (size int) {
	for _, s := range all {
		for i := range s.Ports {
			for j := 0; isNamed(&s.Ports[i], port) && j < len(s.Endpoints); j++ {
				size += len(s.Endpoints[j].Addresses)
			}
		}
	}
	return size + len(all)
}

// found are the addresses behind a port that may serve.
type found struct {
	*sizedPort
	addresses   []string
	read, total int // how many endpoints were read, and how many there are
}

// find reads the endpoints of a backend. It also reads those that are not ready, so reading has
// bounds of its own: twice the servers of a backend, three times those of a namespace.
func (b *Backends) find(at *derive.Reads, backend string, p *sizedPort, _ *found) (*found, bool) {
	now, svc := &found{sizedPort: p}, p.to.Service
	switch {
	case p.to.Port == nil:
		return now, true
	case !p.to.hasSlices():
		now.addresses = []string{net.JoinHostPort(ExternalName(svc), strconv.Itoa(int(p.to.Port.Port)))}
		return now, true
	}
	most := min(2*b.opts.PerBackend, b.reads.Share(at, svc.Namespace, backend))
	if most <= 0 && p.size > 0 {
		limits.Refuse(at, "Service", svc, reconcile.Refusal{Reason: fmt.Sprintf("the endpoints of this Service are not read, and requests get 503: "+
			"namespace %s has endpoints and EndpointSlices for three times %s", svc.Namespace, b.reads.Over(at, svc.Namespace, "servers"))})
		return now, true
	}
	all, _ := b.slicesOf.Get(at, p.to.Of)
	result := Find(b.judge.Get(at), all, p.to.Port.Name, most)
	now.addresses, now.read, now.total = result.Addresses, result.Read, result.Total
	reportEndpoints(at, p.to, all, &result)
	return now, true
}

// reportEndpoints reports the endpoints behind a port of a Service. Each EndpointSlice gets its
// refused endpoints. If there is no server and no refused endpoint, the Service gets the reason.
func reportEndpoints(at *derive.Reads, p Port, all []*discoveryv1.EndpointSlice, result *Found) {
	others := "no other endpoint of Service " + p.Of.String() + " is ready, requests get 503"
	if len(result.Addresses) > 0 {
		others = "the other endpoints of Service " + p.Of.String() + " serve"
	}
	for _, s := range result.Refused {
		limits.Refuse(at, "EndpointSlice", s.Slice, reconcile.Refusal{Field: s.Field, Reason: s.Reason + "; " + others, More: s.More})
	}
	if len(result.Addresses)+len(result.Refused) == 0 { // a warning: the backend exists, and no rule refuses a server
		field, reason, detail := Unusable(p.Service, p.Port, all, result.Read)
		limits.Refuse(at, "Service", p.Service, reconcile.Refusal{Field: field, Reason: reason, Detail: detail, Warning: true})
	}
}

// Served is what a backend serves with.
type Served struct {
	Service *corev1.Service // nil: it does not exist
	Servers []Server
	Slots   Slots // for the next transaction
}

// Serve returns the servers of a backend, and false if it does not exist. Its endpoints keep
// the servers that they have in slots, the last accepted ones.
func (b *Backends) Serve(at *derive.Reads, backend string, slots Slots) (Served, bool) {
	f, ok := b.found.Get(at, backend)
	if slots == nil && b.opts.Earlier != nil {
		slots = b.opts.Earlier(backend)
	}
	if !ok || f.to.Service == nil {
		return Served{Slots: slots}, ok
	}
	limit := b.opts.PerBackend
	if f.to.hasSlices() {
		limit = min(limit, b.servers.Share(at, f.to.Of.Namespace, backend))
		b.reportServers(at, f, limit)
	}
	slots = slots.Assign(f.addresses, limit)
	return Served{f.to.Service, slots.Servers(b.opts.Spare), slots}, true
}

// reportServers reports endpoints that a limit keeps from serving.
func (b *Backends) reportServers(at *derive.Reads, f *found, limit int) {
	has := len(f.addresses)
	if f.read < f.total {
		has = f.total
	}
	if f.to.Port == nil || has <= limit && f.read == f.total {
		return
	}
	reason, port := "", f.to.Port.Port
	switch {
	case limit == b.opts.PerBackend && len(f.addresses) >= limit:
		reason = fmt.Sprintf("it has %s endpoints on port %d, more than the %s servers of a backend (servers-per-backend): %[3]s serve",
			limits.Figure(has), port, limits.Figure(limit))
	case len(f.addresses) >= limit:
		reason = fmt.Sprintf("it has %s endpoints on port %d, of which %s serve: namespace %s has %s",
			limits.Figure(has), port, limits.Figure(limit), f.to.Of.Namespace, b.servers.Over(at, f.to.Of.Namespace, "servers"))
	default:
		reason = fmt.Sprintf("it has %s endpoints on port %d, of which %s are read, twice as many as may serve: %s of them are ready",
			limits.Figure(f.total), port, limits.Figure(f.read), limits.Figure(len(f.addresses)))
	}
	limits.Refuse(at, "Service", f.to.Service, reconcile.Refusal{Reason: reason})
}
