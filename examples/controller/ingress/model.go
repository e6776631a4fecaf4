// Package ingress says what Ingress resources mean. A [Model] computes [Routes] out of the
// resources of a cluster, which the templates print. It refuses by name what cannot be
// served, so that one resource never stops the others.
//
// NewModel is a list of functions: each computes one kind of item, and a change computes
// only the items again that read something which changed. In the order of the files:
// classes.go says which Ingresses are ours, admission.go what their namespace has room for,
// hosts.go who claims a host, paths.go what a path asks for, lines.go who gets it, backends.go
// which servers it leads to, certificates.go, options.go and secrets.go what comes
// beside that, and operator.go what the operator serves besides. routes.go has the result.
package ingress

import (
	"cmp"
	"context"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// Name is the name of an object.
type Name = types.NamespacedName

func nameOf(o metav1.Object) Name { return Name{Namespace: o.GetNamespace(), Name: o.GetName()} }

// Options are what stays the same while a Model is in use. The zero value is usable.
type Options struct {
	Limits Limits

	// Shared are hosts that all namespaces may use. There each path belongs to the
	// namespace that claimed it first. "*.demo.test" stands for all names below
	// demo.test, and "*" for all hosts.
	Shared []string

	// HostGrace is how long a namespace keeps a host that only others claim by now; zero: not
	// at all.
	HostGrace time.Duration

	// SpareServers rounds the number of servers up to a multiple, by disabled spare ones.
	// A Dataplane API cannot add a server to a running HAProxy, but it can give a spare
	// one an address. Zero means no spare ones.
	SpareServers int

	NoPassthrough bool // TLS ends at HAProxy for all hosts

	Annotations annotation.Reader // what annotations may ask for

	ExpiryWarning time.Duration // how long before its end to warn of a certificate; zero: 7 days, or a sixth of its life if that is shorter
	AnyTime       bool          // ignore the dates of certificates, as in cases, whose fixtures grow old
}

// Inputs are the resources of a cluster. All are collections of one graph.
type Inputs struct {
	Ingresses *derive.Input[Name, *networkingv1.Ingress]
	Classes   *derive.Input[Name, *networkingv1.IngressClass]
	Services  *derive.Input[Name, *corev1.Service]
	Slices    *derive.Input[Name, *discoveryv1.EndpointSlice]
	Secrets   *derive.Input[Name, *corev1.Secret]
	Out       *derive.Input[Out, k8swatch.Object]           // quarantined, without a version to use
	Operator  *derive.Input[struct{}, *Operator]            // none: the zero value
	Addresses *derive.Input[struct{}, *endpoints.Addresses] // which endpoints may be served; none: the zero value
}

// Out names an object that is left out. A quarantined Ingress still claims its hosts.
type Out = k8swatch.Left

// NewInputs makes the inputs, without resources.
func NewInputs(g *derive.Graph) Inputs {
	return Inputs{
		Ingresses: derive.NewInput[Name, *networkingv1.Ingress](g, "Ingress"),
		Classes:   derive.NewInput[Name, *networkingv1.IngressClass](g, "IngressClass"),
		Services:  derive.NewInput[Name, *corev1.Service](g, "Service"),
		Slices:    derive.NewInput[Name, *discoveryv1.EndpointSlice](g, "EndpointSlice"),
		Secrets:   derive.NewInput[Name, *corev1.Secret](g, "Secret"),
		Out:       derive.NewInput[Out, k8swatch.Object](g, "quarantined"),
		Operator:  derive.NewInput[struct{}, *Operator](g, "operator"),
		Addresses: derive.NewInput[struct{}, *endpoints.Addresses](g, "addresses"),
	}
}

// Model computes the routes of a cluster. It is for one goroutine at a time.
type Model struct {
	Options
	Inputs
	graph   *derive.Graph
	earlier earlier // until the first configuration is accepted
	last    *Routes // of the open transaction; nil: none

	sortedClasses   derive.List[*networkingv1.IngressClass]
	classes         derive.Value[*classes]
	pathsOfSpace    *derive.Collection[string, int]
	bytesOfSpace    *derive.Collection[string, int]
	pathQuota       *limits.Quota
	byteQuota       *limits.Quota
	room            *derive.Collection[string, *room]
	mine            *derive.Collection[Name, *networkingv1.Ingress] // with what its namespace has room for
	hosts           *claims.Hosts
	judge           derive.Value[endpoints.Judge]
	servicesOfSpace *derive.Collection[string, derive.Ordered[string]]
	patterns        *limits.Budget[Name]
	canaryOf        *derive.Collection[canaryPath, *canary]
	hasCanaries     derive.Value[bool]
	canaryBudget    *limits.Budget[Name]
	canaryUses      *derive.Collection[canaryPath, int]
	userlists       *derive.Collection[secretRef, *users]
	userBudget      *limits.Budget[secretRef]
	authorities     *derive.Collection[caRef, *authorities]
	guesses         *derive.Collection[string, map[string]string]
	backendBudget   *limits.Budget[string]
	optionBudget    *limits.Budget[string]
	rateBudget      *limits.Budget[string]
	checkBudget     *limits.Budget[string]
	checkRateBudget *limits.Budget[string]
	backendAsks     *derive.Collection[string, []*backendAsk]
	servers         *endpoints.Backends
	lines           *derive.Collection[line, held]
	linesOfHost     *derive.Collection[string, int]
	passedTo        *derive.Collection[string, int]
	secretBudget    *limits.Budget[Name]
	certificates    *derive.Collection[Name, *checkedSecret]
	tlsHosts        *derive.Collection[string, *tlsHost]
	mustCover       *derive.Collection[Name, []mustCover]
	listing         *claims.Listing
	refused         derive.Value[[]reconcile.Refusal]
	routes          derive.Value[*Routes]
}

// NewModel makes a model of inputs. previous is the configuration that an earlier process
// deployed; nil: none.
func NewModel(g *derive.Graph, in Inputs, opts Options, previous *dataplane.Config) *Model {
	opts.Limits = opts.Limits.orUsual()
	m := &Model{Options: opts, Inputs: in, graph: g, earlier: readEarlier(previous)}
	ingresses := m.deriveIngresses()
	asks := m.deriveAsks(ingresses)
	backends := m.deriveBackends(asks)
	m.deriveLines(asks)
	backends.streams = derive.Each("streams", asks.backends, m.serveStream)
	certificates := m.deriveCertificates()
	derive.Each("missing", derive.GroupBy("with missing Services", asks.ofIngress, onlyMissing, missing.compare), m.refuseMissing)
	derive.Each("unused canaries", derive.GroupBy("canary Ingresses", ingresses.all, onlyCanaries, (*annotated).compare), m.warnOfUnusedCanary)
	m.refused = limits.Refusals(g)
	m.deriveRoutes(ingresses, asks, backends, certificates)
	return m
}

// Routes computes the routes of the inputs as they are now. Call [Model.Accept] once they are
// the valid configuration. Otherwise leave the transaction open: a [k8swatch.Feed] sets what
// differs from it next.
func (m *Model) Routes(ctx context.Context) (*Routes, error) {
	if err := m.graph.Run(ctx); err != nil {
		return nil, err
	}
	r := *m.routes.Get(nil)
	r.Next, m.last = m.graph.Next(), &r
	return &r, nil
}

// Accept makes the owners of hosts and lines, the servers of endpoints and the certificates in
// use those of some routes. A bad edit that drops a host must not free it, because the earlier
// version still serves it. Routes that a later call of [Model.Routes] replaced leave no trace:
// all calls since the last Accept share one open transaction.
func (m *Model) Accept(r *Routes) error {
	if r != m.last {
		return nil
	}
	err := m.graph.Commit()
	if err == nil {
		m.last, m.earlier = nil, earlier{}
	}
	return err
}

// Alone returns the routes of one Ingress in a cluster that has nothing else but these Secrets.
func Alone(ing *networkingv1.Ingress, secrets ...*corev1.Secret) *Routes {
	g := derive.New()
	m := NewModel(g, NewInputs(g), Options{}, nil)
	m.Ingresses.Set(nameOf(ing), ing)
	for _, s := range secrets {
		m.Secrets.Set(nameOf(s), s)
	}
	r, err := m.Routes(context.Background())
	if err != nil {
		panic(err) // a mistake of this package
	}
	return r
}

// isOut reports whether an object is quarantined, without a version to use.
func (m *Model) isOut(at *derive.Reads, kind string, name Name) bool {
	_, out := m.Inputs.Out.Get(at, Out{Input: kind, Of: name})
	return out
}

// ofIngresses are the collections with what Ingresses say of themselves.
type ofIngresses struct {
	all     *derive.Collection[Name, *annotated]
	ordered *derive.Collection[string, derive.Ordered[*networkingv1.Ingress]] // of a namespace, by age
	users   *derive.Collection[secretRef, *users]
}

// order lists the Ingresses of a namespace by age.
func (o *ofIngresses) order(at *derive.Reads, namespace string) iter.Seq[Name] {
	all, _ := o.ordered.Get(at, namespace)
	return func(yield func(Name) bool) {
		for ing := range all.All() {
			if !yield(nameOf(ing)) {
				return
			}
		}
	}
}

// deriveIngresses finds the Ingresses that are ours, what their namespaces have room for, the
// owners of their hosts, and what their annotations say.
func (m *Model) deriveIngresses() *ofIngresses {
	g := m.graph
	m.sortedClasses = derive.Sorted("sorted classes", m.Classes.Collection, func(a, b *networkingv1.IngressClass) int { return cmp.Compare(a.Name, b.Name) })
	m.classes = derive.One(g, "classes", m.readClasses).Equal((*classes).equal)
	ours := derive.Each("ours", m.Ingresses.Collection, m.isOurs)
	bySpace := func(name Name, ing *networkingv1.Ingress, add func(string, *networkingv1.Ingress)) {
		add(name.Namespace, ing)
	}
	ordered := derive.SortBy("by age", ours, bySpace, byAge)
	m.deriveRoom(ours)
	m.room = derive.Each("room", ordered, m.rooms).Equal((*room).equal)
	m.mine = derive.Each("mine", ours, m.admit)
	m.deriveHosts()
	all := derive.Each("annotated", m.mine, m.readAnnotations)
	of := &ofIngresses{all: all, ordered: ordered}
	l := &m.Limits
	m.patterns = limits.NewBudget("patterns", all, weighPatterns, of.order,
		limits.Bound{Name: "patterns", Namespace: l.PatternsPerNamespace, All: l.PatternsOfAll}, limits.Part)
	m.canaryBudget = limits.NewBudget("canaries of a namespace", all, countCanaries, of.order,
		limits.Bound{Name: "canaries", Namespace: l.CanariesPerNamespace, All: l.CanariesOfAll}, limits.Part)
	m.canaryOf = derive.Each("canaries", derive.GroupBy("canary paths", all, findCanaries, (*canary).compare), firstCanary)
	some := derive.Sum("number of canaries", all, func(n Name, a *annotated, add func(struct{}, int)) { _, c := countCanaries(n, a); add(struct{}{}, c) })
	m.hasCanaries = derive.One(g, "any canary", func(at *derive.Reads, _ bool) bool { _, has := some.Get(at, struct{}{}); return has })
	m.deriveSecrets(of)
	return of
}

// first is the first of a group.
func first[K comparable, V any](_ *derive.Reads, _ K, all []V, _ V) (V, bool) { return all[0], true }

func boolToInt(is bool) int {
	if is {
		return 1
	}
	return 0
}

// ofAsks are the collections with what Ingresses and the operator ask for.
type ofAsks struct {
	ofIngress  *derive.Collection[Name, *asks]
	candidates *derive.Collection[line, []*candidate]
	backends   *derive.Collection[string, []*backendAsk]
	operator   *derive.Collection[struct{}, *operatorAsks]
}

// deriveAsks reads the rules of Ingresses.
func (m *Model) deriveAsks(in *ofIngresses) *ofAsks {
	m.judge = endpoints.Judges(m.graph, m.Addresses.Collection)
	m.servicesOfSpace = derive.SortBy(
		"Services of a namespace",
		m.Services.Collection,
		func(n Name, _ *corev1.Service, add func(string, string)) { add(n.Namespace, n.Name) },
		cmp.Compare[string],
	)
	of := &ofAsks{ofIngress: derive.Each("asks", in.all, m.read), operator: derive.Each("asks of the operator", m.Operator.Collection, m.askOperator)}
	of.candidates = derive.GroupBy("candidates", of.ofIngress, func(_ Name, a *asks, add func(line, *candidate)) {
		for _, c := range a.candidates {
			add(c.line, c)
		}
	}, (*candidate).compare)
	byIngresses := derive.GroupBy(
		"backends named",
		of.ofIngress,
		func(_ Name, a *asks, add func(string, *backendAsk)) { addBackends(a.backends, add) },
		(*backendAsk).compare,
	)
	byOperator := derive.GroupBy(
		"backends of the operator",
		of.operator,
		func(_ struct{}, a *operatorAsks, add func(string, *backendAsk)) { addBackends(a.backends, add) },
		(*backendAsk).compare,
	)
	of.backends = derive.Merge("all backends named", byIngresses, byOperator)
	absent := derive.GroupBy("missing Services", of.ofIngress, func(n Name, a *asks, add func(string, string)) {
		for _, one := range a.missing {
			add(n.Namespace, one.service)
		}
	}, cmp.Compare[string])
	m.guesses = derive.Each("guesses", absent, m.guess)
	m.canaryUses = derive.Sum("uses of canaries", of.ofIngress, func(_ Name, a *asks, add func(canaryPath, int)) {
		for _, c := range a.canaries {
			add(c, 1)
		}
	})
	return of
}
