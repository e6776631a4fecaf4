package ingress

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/reconcile"
)

// Builder makes what [Build] makes, but remakes only what a change affects. If it is
// not certain what that is, it builds everything. The zero value is ready. Call its
// methods and [Routes.Accepted] from one goroutine at a time.
type Builder struct {
	Slots Slots

	last           *builder // nil: the next build builds everything
	routes         *Routes  // of the last build
	whole, changed int      // builds of everything, and of changes alone
}

// Change is an object that may have changed: in the last build and now. nil: it did
// not, or does not, exist.
type Change[T any] struct{ Was, Is *T }

// Changes has all objects that differ between the clusters of two builds, except
// IngressClasses. It may have other objects too.
type Changes struct {
	Ingresses []Change[networkingv1.Ingress]
	Services  []Change[corev1.Service]
	Slices    []Change[discoveryv1.EndpointSlice]
	Secrets   []Change[corev1.Secret]
}

// Build returns the routes of a cluster. changes are those since the cluster of the
// last call; nil: unknown. Parts that are equal to the last routes share their memory.
func (d *Builder) Build(c *Cluster, changes *Changes) *Routes {
	last := d.last
	d.last = nil // until the build succeeds: a panic leaves no half of one behind
	if last != nil && changes != nil && last.follows(c) {
		if routes := last.apply(c, changes); routes != nil {
			d.last, d.changed, d.routes = last, d.changed+1, routes
			return routes
		}
	}
	d.whole++
	b := build(c, &d.Slots)
	b.routes.Keep(d.routes)
	if d.routes = b.routes; c.Excluded.Empty() && c.Hosts != nil { // a build with quarantined resources leaves other slots behind
		d.last = b
	}
	return b.routes
}

// fast is the state for applying changes to a build.
type fast struct {
	is        bool                        // a change is being applied
	doubt     bool                        // the effect of the change is not certain
	accepted  bool                        // the routes were accepted
	revision  int                         // of Hosts, when these routes last read or wrote it
	waited    bool                        // some claims were not settled in the order of age
	contested map[claim]bool              // claims that several Ingresses asked for
	odd       map[serviceName]bool        // Ingresses that lack something they ask for, or depend on other objects
	ports     map[serviceName][]*madePort // nil: see index
	before    map[string]told             // what the last build reported
	mute      bool                        // report nothing
	step      step
	pending   int             // the last step of Ingresses, until it is accepted
	forget    map[string]bool // backends and certificates that the step removed
	accept    func()          // see Routes
	touched   map[string]bool // resources whose reports are made anew
	serve     []serving       // backends whose servers are assigned anew
}

// check causes doubt if a condition does not hold.
func (f *fast) check(is bool) bool {
	f.doubt = f.doubt || !is
	return is
}

func (f *fast) contest(c claim) {
	if f.contested == nil {
		f.contested = map[claim]bool{}
	}
	f.contested[c] = true
}

func (f *fast) isOdd(ing *networkingv1.Ingress) {
	if f.odd == nil {
		f.odd = map[serviceName]bool{}
	}
	f.odd[serviceName{ing.Namespace, ing.Name}] = true
}

// made adds a port to the index, if there is one.
func (f *fast) made(m *madePort) {
	if f.ports != nil {
		f.ports[m.serviceName] = append(f.ports[m.serviceName], m)
	}
}

// follows reports whether everything except the resources is as in the last build.
func (b *builder) follows(c *Cluster) bool {
	was, next := b.cluster, b.routes.Next
	return c.Excluded.Empty() && c.Hosts == was.Hosts && c.Addresses == was.Addresses && c.Limits == was.Limits &&
		c.Operator == was.Operator && c.ExpiryWarning == was.ExpiryWarning && c.AnyTime == was.AnyTime && (next.IsZero() || time.Now().Before(next)) &&
		c.Hosts.isAt(b.fast.revision) && (!b.fast.accepted || b.settled())
}

// settled reports whether the present holders would settle all claims as the former
// holders did.
func (b *builder) settled() bool {
	if b.fast.waited {
		same := len(b.had) == len(b.owner.base)
		for c, had := range b.had {
			now := b.owner.base[c]
			same = same && had.serves == now.serves && had.ing != nil && now.ing != nil && isSame(had.ing, now.ing)
		}
		b.fast.waited = !same
	}
	return !b.fast.waited
}

// apply returns the routes after some changes. nil: the effect is not certain, and
// everything must be built. Then this builder is useless.
func (b *builder) apply(c *Cluster, changes *Changes) *Routes {
	last, before := b.routes, b.told
	b.cluster, b.judge, b.routes = c, newJudge(c.Addresses), &Routes{FileOwners: map[dataplane.Position][]any{}, Expiry: last.Expiry, Next: last.Next}
	if !c.AnyTime {
		b.now = time.Now()
	}
	b.told, b.said = map[string]told{}, map[saying]bool{}
	b.fast.is, b.fast.touched, b.fast.serve = true, map[string]bool{}, nil
	b.fast.before = before
	b.fast.step = step{number: b.fast.step.number + 1, asked: map[string]bool{}, certs: map[*tlsFile]bool{}, orphans: map[string]*networkingv1.Ingress{}}
	b.index()
	b.fast.doubt = slices.ContainsFunc(changes.Secrets, b.isUsed)
	ingresses := b.withSayers(changes)
	b.changeIngresses(ingresses)
	for _, name := range b.touchedServices(changes) {
		b.remake(name)
	}
	b.reportCertificates()
	if b.fast.doubt {
		return nil
	}
	r := *last
	if r.Refused = b.sayAnew(last.Refused, before); b.fast.doubt {
		return nil
	}
	b.serveAnew()
	r.Backends = b.fast.step.backends.apply(last.Backends, (*Backend).compare, func(x, y *Backend) bool { return x == y })
	if len(ingresses) > 0 {
		b.finishStep(&r)
		number := b.fast.step.number
		b.fast.accepted, b.fast.pending, b.fast.accept = false, number, func() { b.acceptStep(number) }
	}
	b.fast.is, b.told, b.routes, r.accept = false, before, &r, nil
	if !b.fast.accepted {
		r.accept = b.fast.accept
	}
	return &r
}

// index lists the ports that lead to each Service.
func (b *builder) index() {
	if b.fast.ports == nil {
		b.fast.ports = make(map[serviceName][]*madePort, len(b.made))
		for _, m := range b.made {
			b.fast.made(m)
		}
	}
}

func (b *builder) isUsed(s Change[corev1.Secret]) bool {
	for _, secret := range []*corev1.Secret{s.Was, s.Is} {
		if secret != nil && (b.read[secret.Namespace+"/"+secret.Name] || secret.Namespace+"/"+secret.Name == b.operator().Certificate) {
			return true
		}
		if secret != nil && b.certs[certificateName(secret.Namespace, secret.Name)] != nil {
			return true
		}
	}
	return false
}

// touchedServices returns the Services that changed, or whose endpoints changed.
func (b *builder) touchedServices(changes *Changes) (names []serviceName) {
	names = b.fast.step.again
	touch := func(name serviceName) {
		b.fast.check(!b.pinned[name])
		if len(b.fast.ports[name]) > 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, s := range changes.Slices {
		for _, slice := range []*discoveryv1.EndpointSlice{s.Was, s.Is} {
			if slice != nil {
				touch(serviceName{slice.Namespace, slice.Labels[discoveryv1.LabelServiceName]})
				b.fast.touched[resourceName("EndpointSlice", slice)] = true
			}
		}
	}
	for _, s := range changes.Services {
		for _, svc := range []*corev1.Service{s.Was, s.Is} {
			if svc == nil {
				continue
			}
			touch(serviceName{svc.Namespace, svc.Name})
			if s.Was == nil || s.Is == nil {
				b.fast.check(!b.mayBeMeant(svc) && !b.pinned[serviceName{namespace: svc.Namespace}])
			}
		}
	}
	return names
}

// mayBeMeant reports whether a Service that comes or goes has a name like a missing one.
func (b *builder) mayBeMeant(svc *corev1.Service) bool {
	sp := b.spaces[svc.Namespace]
	if sp == nil || sp.guesses == 0 {
		return false
	}
	for _, made := range b.made {
		if made.guessed && made.namespace == svc.Namespace && annotation.Near(made.serviceName.name, svc.Name) {
			return true
		}
	}
	return len(b.cluster.Services(svc.Namespace)) >= maxGuessed
}

// remake makes everything that depends on a Service and its endpoints.
func (b *builder) remake(of serviceName) {
	if b.space = b.spaceOf(of.namespace); !b.isWithin(b.space) {
		b.fast.doubt = true
		return
	}
	b.fast.touched["Service "+of.namespace+"/"+of.name] = true
	for _, s := range b.cluster.Slices(of.namespace, of.name) {
		b.fast.touched[resourceName("EndpointSlice", s)] = true
	}
	for _, made := range b.fast.ports[of] {
		back := b.backends[made.name]
		if back != nil && back.fresh == b.fast.step.number {
			continue
		}
		if made.guessed {
			b.space.guesses--
		}
		now, svc, used, _ := b.findBackend(made.portRef)
		if now.name != made.name || !now.problem.equal(made.problem) {
			b.fast.doubt = true
			return
		}
		if back == nil || back.of != made.portRef {
			continue
		}
		b.fast.serve = append(b.fast.serve, b.serving(back, made.name, svc, used, back.ing))
	}
	b.fast.doubt = b.fast.doubt || !b.isWithin(b.space)
}

// serveAnew assigns servers to the remade backends.
func (b *builder) serveAnew() {
	e := &b.fast.step.backends
	for _, s := range b.fast.serve {
		was := s.Backend
		if s.assign(b.slots); was != nil {
			e.gone = append(e.gone, was)
		}
		e.come = append(e.come, s.Backend)
	}
}

// table is a map with pending changes. The zero value of V means that a key is absent.
type table[K, V comparable] struct {
	base map[K]V
	over map[K]V // nil: changes apply at once
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

// commit applies the pending changes.
func (t *table[K, V]) commit() {
	var none V
	for key, v := range t.over {
		if t.base[key] = v; v == none {
			delete(t.base, key)
		}
	}
	t.over = nil
}

// edits are entries that leave a sorted list, and entries that join it.
type edits[T any] struct{ gone, come []T }

// apply returns the list after the edits. If nothing changes, it returns the same memory.
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

// sayAnew replaces the reports on the touched resources.
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
