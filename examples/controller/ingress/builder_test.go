package ingress

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/reconcile"
)

// seeds is how many worlds TestBuilderIsBuild makes.
var seeds = flag.Uint64("seeds", 16, "worlds whose changes go through a Builder")

// twoWays is a cluster whose changes go through a Builder, and through Build as well.
type twoWays struct {
	t         *testing.T
	rand      *rand.Rand
	ingresses map[string]*networkingv1.Ingress
	services  map[string]*corev1.Service
	slices    map[string]*discoveryv1.EndpointSlice
	secrets   map[string]*corev1.Secret
	classes   []*networkingv1.IngressClass
	limits    Limits
	addresses *Addresses
	excluded  []reconcile.Resource
	operator  *Operator
	version   int

	changes     Changes
	builder     Builder
	slots       Slots // of the one that builds all
	both        [2]Hosts
	last        *Routes
	unaccepted  bool
	pairs       []*corev1.Secret // of other dates
	other       []byte
	shared      []string
	fastOf      map[string]int // by what changed
	wholeOf     map[string]int
	namespaces  []string
	annotated   bool // Ingresses and Services have annotations of ours
	conflicting bool // hosts, Services and names are taken from a few
}

func newTwoWays(t *testing.T, seed uint64) *twoWays {
	return &twoWays{
		t: t, rand: rand.New(rand.NewPCG(seed, 7)),
		ingresses: map[string]*networkingv1.Ingress{}, services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{}, secrets: map[string]*corev1.Secret{},
		addresses: &Addresses{}, fastOf: map[string]int{}, wholeOf: map[string]int{}, namespaces: []string{"aaa", "evil", "shop"},
	}
}

// put changes an object; nil deletes it.
func put[T any](w *twoWays, all map[string]*T, list *[]Change[T], name string, is *T) {
	was := all[name]
	if was == nil && is == nil {
		return
	}
	if all[name] = is; is == nil {
		delete(all, name)
	} else {
		w.version++
		any(is).(metav1.Object).SetResourceVersion(fmt.Sprint(w.version))
		any(is).(metav1.Object).SetUID("u")
	}
	if list != nil {
		i := slices.IndexFunc(*list, func(c Change[T]) bool {
			return c.Is != nil && c.Is == was || c.Is == nil && c.Was != nil && any(c.Was).(metav1.Object).GetName() == name[strings.Index(name, "/")+1:] && strings.HasPrefix(name, any(c.Was).(metav1.Object).GetNamespace()+"/")
		})
		if i >= 0 {
			(*list)[i].Is = is
		} else {
			*list = append(*list, Change[T]{was, is})
		}
	}
}

func sorted[T any](all map[string]*T) (list []*T) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list
}

func (w *twoWays) cluster(hosts *Hosts) *Cluster {
	hosts.Shared = w.shared
	c := &Cluster{
		Ingresses: func() []*networkingv1.Ingress { return sorted(w.ingresses) },
		Classes:   w.classes,
		Service:   func(ns, name string) *corev1.Service { return w.services[ns+"/"+name] },
		Services: func(ns string) (all []*corev1.Service) {
			return slices.DeleteFunc(sorted(w.services), func(s *corev1.Service) bool { return s.Namespace != ns })
		},
		Secret: func(ns, name string) *corev1.Secret { return w.secrets[ns+"/"+name] },
		Slices: func(ns, name string) []*discoveryv1.EndpointSlice {
			return slices.DeleteFunc(sorted(w.slices), func(s *discoveryv1.EndpointSlice) bool {
				return s.Namespace != ns || s.Labels[discoveryv1.LabelServiceName] != name
			})
		},
		Addresses: w.addresses, Limits: w.limits, Hosts: hosts, Operator: w.operator,
	}
	if len(w.excluded) > 0 {
		c.Excluded = reconcile.Excluding(reconcile.WithExcluded(w.t.Context(), w.excluded...))
	}
	return c
}

// build compares both ways.
func (w *twoWays) build(what string) {
	w.t.Helper()
	fast := w.builder.changed
	changes := &w.changes
	now := w.builder.Build(w.cluster(&w.both[0]), changes)
	want := Build(w.cluster(&w.both[1]), &w.slots)
	if w.builder.changed > fast {
		w.fastOf[what]++
	} else {
		w.wholeOf[what]++
	}
	plain := func(r Routes) *Routes { r.accept, r.lists = nil, nil; return &r }
	require.Equal(w.t, plain(*want), plain(*now), what)
	require.Equal(w.t, tidy(w.slots.held), tidy(w.builder.Slots.held), what)
	w.changes = Changes{}
	if w.last != nil && w.builder.changed > fast {
		require.True(w.t, len(now.Exact) == 0 || !slices.Equal(now.Exact, w.last.Exact) || &now.Exact[0] == &w.last.Exact[0], "what is equal is the same memory")
		require.True(w.t, len(now.Hosts) == 0 || !slices.Equal(now.Hosts, w.last.Hosts) || &now.Hosts[0] == &w.last.Hosts[0], "what is equal is the same memory")
	}
	if w.last = now; !w.unaccepted {
		now.Accepted()
		want.Accepted()
		require.Equal(w.t, w.slots.held, w.builder.Slots.held, what)
		require.Equal(w.t, slices.Sorted(maps.Keys(w.slots.checked)), slices.Sorted(maps.Keys(w.builder.Slots.checked)), what)
		require.Equal(w.t, have(&w.both[1]), have(&w.both[0]), what)
		require.Equal(w.t, w.both[1].holders, w.both[0].holders, what)
		require.Equal(w.t, w.both[1].last.wildcards, w.both[0].last.wildcards, what)
	}
}

// tidy leaves out backends without servers.
func tidy(held map[string][]string) map[string][]string {
	all := maps.Clone(held)
	maps.DeleteFunc(all, func(_ string, servers []string) bool { return len(servers) == 0 })
	return all
}

func (w *twoWays) pick(words ...string) string { return words[w.rand.IntN(len(words))] }
func (w *twoWays) one(in int) bool             { return w.rand.IntN(in) == 0 }

// odd is something wrong, now and then.
func (w *twoWays) odd(good string, bad ...string) string {
	if w.conflicting && w.one(12) {
		return w.pick(bad...)
	}
	return good
}

func (w *twoWays) service(ns string, i int) {
	name := fmt.Sprintf("s%d", i)
	if w.one(8) {
		put(w, w.services, &w.changes.Services, ns+"/"+name, nil)
		return
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: w.odd("http", "grpc", ""), Port: 80}}}}
	if w.one(3) {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "more", Port: []int32{80, 81}[w.rand.IntN(2)]})
	}
	if w.annotated && w.one(5) {
		svc.Annotations = map[string]string{annotation.HAProxy + w.pick("load-balance", "load-balance", "allow-list", "server-ca", "server-ssl", "path-rewrite", "request-set-header"): w.pick("leastconn", "random", "bad", "true", "/x", "X-A b")}
	}
	if w.annotated && w.one(6) {
		svc.Spec.Ports[0].AppProtocol = &[]string{"https", "kubernetes.io/h2c", "tcp"}[w.rand.IntN(3)]
	}
	if w.conflicting && w.one(20) {
		svc.Spec.Type, svc.Spec.ExternalName = corev1.ServiceTypeExternalName, w.pick("a.example.com", "localhost", "127.0.0.1", "b.example.com.")
	}
	put(w, w.services, &w.changes.Services, ns+"/"+name, svc)
}

func (w *twoWays) endpoints(ns string, i int) {
	name := fmt.Sprintf("s%d-%d", i, w.rand.IntN(2))
	if w.one(8) {
		put(w, w.slices, &w.changes.Slices, ns+"/"+name, nil)
		return
	}
	s := slice(w.odd("http", "", "more"), int32(8080+w.rand.IntN(2)))
	s.Namespace, s.Name = ns, name
	s.Labels = map[string]string{discoveryv1.LabelServiceName: w.odd(fmt.Sprintf("s%d", i), "s0", "none")}
	for range w.rand.IntN(4) {
		ready := !w.one(4)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{w.odd(fmt.Sprintf("192.0.2.%d", w.rand.IntN(9)), "127.0.0.1", "nonsense")}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	put(w, w.slices, &w.changes.Slices, ns+"/"+name, s)
}

func (w *twoWays) ingress(ns string, i int) {
	name := fmt.Sprintf("i%d", i)
	if w.one(4) {
		put(w, w.ingresses, &w.changes.Ingresses, ns+"/"+name, nil)
		return
	}
	ing := by(ns, int64(i%3), ingress(name))
	if was := w.ingresses[ns+"/"+name]; w.one(3) && (was == nil || w.one(5)) {
		ing.CreationTimestamp = metav1.Unix(int64(10+w.version), 0)
	} else if was != nil {
		ing.CreationTimestamp = was.CreationTimestamp
	}
	own := fmt.Sprintf("%s-%d.test", ns, i)
	hosts := []string{own, own, own, "www." + own}
	if w.conflicting {
		hosts = append(hosts, "x.test", "a.x.test", "*.x.test", "", "b.y.test", "*.y.test", "*."+own)
	}
	for range 1 + w.rand.IntN(2) {
		r := rule(w.odd(w.pick(hosts...), "X.test", "1.2.3.4"))
		for range 1 + w.rand.IntN(2) {
			p := path([]networkingv1.PathType{prefix, exact, specific}[w.rand.IntN(3)], w.odd(w.pick("/", "/a", "/b"), "bad", "/c*"), fmt.Sprintf("s%d", w.rand.IntN(4)))
			if !w.conflicting {
				p.Path, p.Backend = fmt.Sprintf("/%d/%d", len(ing.Spec.Rules), len(r.HTTP.Paths)), backendOf(fmt.Sprintf("s%d", i))
			} else if w.one(4) {
				p.Backend.Service.Port = networkingv1.ServiceBackendPort{Name: w.odd("http", "more", "Bad")}
			}
			if w.conflicting && w.one(12) {
				p.PathType = nil
			}
			r.HTTP.Paths = append(r.HTTP.Paths, p)
		}
		ing.Spec.Rules = append(ing.Spec.Rules, r)
	}
	if tls := fmt.Sprintf("t%d", w.rand.IntN(4)); w.one(3) && (w.conflicting || w.secrets[ns+"/"+tls] != nil) {
		ing = withTLS(ing, w.odd(w.pick(ing.Spec.Rules[0].Host, own), "x.test", "X"), tls)
	}
	if w.conflicting && w.one(12) {
		ing.Spec.TLS = append(ing.Spec.TLS, networkingv1.IngressTLS{SecretName: "t0"})
	}
	if w.conflicting && w.one(12) {
		b := backendOf("s0")
		ing.Spec.DefaultBackend = &b
	}
	if w.annotated && w.one(3) {
		ing.Annotations = w.annotations()
	}
	if w.conflicting && w.one(20) {
		class := "other"
		ing.Spec.IngressClassName = &class
	}
	if w.conflicting && w.one(10) {
		ing.Annotations = map[string]string{w.pick(annotation.HAProxy, annotation.NGINX) + "ssl-passthrough": w.pick("true", "true", "false", "maybe")}
	}
	put(w, w.ingresses, &w.changes.Ingresses, ns+"/"+name, ing)
}

// annotations are a few, some of them wrong.
func (w *twoWays) annotations() map[string]string {
	all := [][2]string{
		{"ssl-redirect", w.pick("true", "false", "wrong")}, {"use-regex", "true"}, {"rewrite-target", w.pick("/x", "/$1", "bad")},
		{"whitelist-source-range", w.pick("10.0.0.0/8", "bad")}, {"canary", "true"}, {"canary-weight", w.pick("10", "50")}, {"canary-by-header", "X-Canary"},
		{"proxy-read-timeout", w.pick("5", "7")}, {"unknown", ""}, {"auth-type", "basic"}, {"auth-secret", w.pick("t0", "t1", "other/t1", "u0", "u1")},
		{"proxy-ssl-secret", w.pick("t0", "t1", "u0")}, {"proxy-ssl-verify", "on"}, {"affinity", "cookie"}, {"limit-rps", w.pick("5", "bad")}, {"enable-cors", "true"},
	}
	given := map[string]string{}
	for range 1 + w.rand.IntN(3) {
		a := all[w.rand.IntN(len(all))]
		given[annotation.NGINX+a[0]] = a[1]
	}
	return given
}

// users changes a Secret with users.
func (w *twoWays) users(ns string, i int) {
	name := fmt.Sprintf("u%d", i%2)
	if w.one(4) {
		put(w, w.secrets, &w.changes.Secrets, ns+"/"+name, nil)
		return
	}
	put(w, w.secrets, &w.changes.Secrets, ns+"/"+name, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{"auth": []byte(w.pick("a:", "b:") + w.odd(userHash, "bad"))}})
}

func (w *twoWays) secret(ns string, i int) {
	name := fmt.Sprintf("t%d", i)
	if w.conflicting && w.one(5) {
		put(w, w.secrets, &w.changes.Secrets, ns+"/"+name, nil)
		return
	}
	pair := w.pairs[w.rand.IntN(len(w.pairs))].Data
	crt := pair[corev1.TLSCertKey]
	if w.conflicting && w.one(6) {
		crt = w.other
	}
	s := secret(name, crt, pair[corev1.TLSPrivateKeyKey])
	s.Namespace = ns
	put(w, w.secrets, &w.changes.Secrets, ns+"/"+name, s)
}

// step changes something at random, and says what.
func (w *twoWays) step() (what string) {
	ns, i := w.pick(w.namespaces...), w.rand.IntN(6)
	switch n := w.rand.IntN(20); {
	case n < 8:
		w.endpoints(ns, i)
		return "endpoints"
	case n < 11:
		w.service(ns, i)
		return "service"
	case n < 12 && w.annotated:
		w.users(ns, i)
		return "secret"
	case n < 13:
		w.secret(ns, i%4)
		return "secret"
	case n < 19:
		w.ingress(ns, i)
		return "ingress"
	}
	if w.conflicting && w.one(6) {
		w.classes = nil
		if w.one(2) {
			w.classes = []*networkingv1.IngressClass{{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: networkingv1.IngressClassSpec{Controller: "x"}}}
		}
		w.builder.last = nil // as who watches classes says that nobody knows what changed
		return "class"
	}
	return "nothing"
}

// TestBuilderIsBuild: after whatever changes a Builder says what Build says.
func TestBuilderIsBuild(t *testing.T) {
	var pairs []*corev1.Secret
	for n := range time.Duration(5) { // the first will expire soon, the last is not valid yet
		pairs = append(pairs, dated(t, "", (12*n-47)*day/2, (5+n*20)*day, "x.test", "*.test", "*.x.test", "*.y.test"))
	}
	for seed := range *seeds {
		w := newTwoWays(t, seed)
		w.annotated = seed%3 == 1
		w.pairs, w.other = pairs, []byte("no certificate")
		switch w.conflicting = seed%4 > 0; seed % 8 {
		case 2:
			w.limits = Limits{ServersPerBackend: 2, ServersPerNamespace: 6, OptionBytesPerNamespace: 1500}
		case 3:
			w.limits = Limits{BackendsPerNamespace: 4, PathsPerNamespace: 12, SecretsPerNamespace: 2, HostsPerSecret: 1}
		case 5:
			w.limits = Limits{PathsPerIngress: 3, MapBytesPerNamespace: 150, PortsPerService: 1, UserMillisecondsPerNamespace: 2, PatternsPerNamespace: 2, CanariesPerNamespace: 1}
		case 6:
			w.shared = []string{"x.test", "*.y.test"}
		case 7:
			w.slots.Step, w.builder.Slots.Step = 2, 2
		}
		if seed%4 > 1 {
			w.operator = &Operator{ExternalName: seed%2 == 0}
			w.operator.Certificate, w.operator.Backend = "shop/t1", ServiceRef{"shop", "s1", networkingv1.ServiceBackendPort{Number: 80}}
			ports := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "tcp"}, Data: map[string]string{"9000": "shop/s2:http", "9001": "aaa/s1:80:PROXY", "80": "shop/s1:80"}}
			w.operator.TCP = ReadTCP(ports, "edge/tcp", ":8080", w.addresses)
			w.addresses = w.operator.TCP.Addresses
		}
		for step := range 150 {
			what := w.step()
			for w.one(4) {
				if w.step() != what {
					what = "several"
				}
			}
			if w.conflicting && w.one(25) {
				for _, ing := range w.ingresses {
					r, _ := reconcile.ResourceOf(ing)
					if w.excluded = []reconcile.Resource{r}; w.one(3) {
						break
					}
				}
			} else if w.one(3) {
				w.excluded = nil
			}
			w.unaccepted = w.conflicting && w.one(8)
			w.build(what)
			if w.conflicting && w.one(40) {
				cfg := renderRoutes(t, dataplane.Layout{Base: t.TempDir()}, w.last)
				w.both[0].Remember(cfg)
				w.both[1].Remember(cfg)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d: %s", seed, step, what)
			}
		}
		t.Log(seed, w.fastOf, w.wholeOf)
		if !w.conflicting {
			for _, what := range []string{"endpoints", "ingress"} {
				require.Greater(t, w.fastOf[what], w.wholeOf[what], "%s: most changes are certain", what)
			}
		}
	}
}
