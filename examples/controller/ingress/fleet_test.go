package ingress

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	"github.com/hapticsdk/haptic/reconcile/endpoints"
)

// seeds is how many fleets TestRandomFleets makes.
var seeds = flag.Uint64("seeds", 16, "fleets that change at random")

// fleet is a cluster that changes at random.
type fleet struct {
	rand *rand.Rand
	all  struct {
		ingresses map[string]*networkingv1.Ingress
		services  map[string]*corev1.Service
		slices    map[string]*discoveryv1.EndpointSlice
		secrets   map[string]*corev1.Secret
	}
	world       *world
	version     int
	pairs       []*corev1.Secret // of other dates
	other       []byte
	namespaces  []string
	annotated   bool // Ingresses and Services have annotations of ours
	conflicting bool // hosts, Services and names are taken from a few
}

func newFleet(seed uint64) *fleet {
	w := &fleet{rand: rand.New(rand.NewPCG(seed, 7)), world: &world{}, namespaces: []string{"aaa", "evil", "shop"}}
	w.all.ingresses, w.all.services = map[string]*networkingv1.Ingress{}, map[string]*corev1.Service{}
	w.all.slices, w.all.secrets = map[string]*discoveryv1.EndpointSlice{}, map[string]*corev1.Secret{}
	return w
}

// put changes an object; nil deletes it.
func put[T any](w *fleet, all map[string]*T, name string, is *T) {
	if is == nil {
		delete(all, name)
		return
	}
	all[name] = is
	w.version++
	any(is).(metav1.Object).SetResourceVersion(fmt.Sprint(w.version))
	any(is).(metav1.Object).SetUID("u")
}

// cluster is the fleet at this instant.
func (w *fleet) cluster() *Cluster {
	now := &world{classes: w.world.classes, services: w.all.services, secrets: w.all.secrets, slices: map[string][]*discoveryv1.EndpointSlice{}}
	for _, name := range slices.Sorted(maps.Keys(w.all.ingresses)) {
		now.ingresses = append(now.ingresses, w.all.ingresses[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.all.slices)) {
		s := w.all.slices[name]
		of := s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]
		now.slices[of] = append(now.slices[of], s)
	}
	return &Cluster{world: now}
}

func (w *fleet) pick(words ...string) string { return words[w.rand.IntN(len(words))] }
func (w *fleet) one(in int) bool             { return w.rand.IntN(in) == 0 }

// odd is something wrong, now and then.
func (w *fleet) odd(good string, bad ...string) string {
	if w.conflicting && w.one(12) {
		return w.pick(bad...)
	}
	return good
}

func (w *fleet) service(ns string, i int) {
	name := fmt.Sprintf("s%d", i)
	if w.one(8) {
		put(w, w.all.services, ns+"/"+name, nil)
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
	put(w, w.all.services, ns+"/"+name, svc)
}

func (w *fleet) endpoints(ns string, i int) {
	name := fmt.Sprintf("s%d-%d", i, w.rand.IntN(2))
	if w.one(8) {
		put(w, w.all.slices, ns+"/"+name, nil)
		return
	}
	s := slice(w.odd("http", "", "more"), int32(8080+w.rand.IntN(2)))
	s.Namespace, s.Name = ns, name
	s.Labels = map[string]string{discoveryv1.LabelServiceName: w.odd(fmt.Sprintf("s%d", i), "s0", "none")}
	for range w.rand.IntN(4) {
		ready := !w.one(4)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{w.odd(fmt.Sprintf("192.0.2.%d", w.rand.IntN(9)), "127.0.0.1", "nonsense")}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	put(w, w.all.slices, ns+"/"+name, s)
}

func (w *fleet) ingress(ns string, i int) {
	name := fmt.Sprintf("i%d", i)
	if w.one(4) {
		put(w, w.all.ingresses, ns+"/"+name, nil)
		return
	}
	ing := by(ns, int64(i%3), ingress(name))
	if was := w.all.ingresses[ns+"/"+name]; w.one(3) && (was == nil || w.one(5)) {
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
	if tls := fmt.Sprintf("t%d", w.rand.IntN(4)); w.one(3) && (w.conflicting || w.all.secrets[ns+"/"+tls] != nil) {
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
	put(w, w.all.ingresses, ns+"/"+name, ing)
}

// annotations are a few, some of them wrong.
func (w *fleet) annotations() map[string]string {
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
func (w *fleet) users(ns string, i int) {
	name := fmt.Sprintf("u%d", i%2)
	if w.one(4) {
		put(w, w.all.secrets, ns+"/"+name, nil)
		return
	}
	put(w, w.all.secrets, ns+"/"+name, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{"auth": []byte(w.pick("a:", "b:") + w.odd(userHash, "bad"))}})
}

func (w *fleet) secret(ns string, i int) {
	name := fmt.Sprintf("t%d", i)
	if w.conflicting && w.one(5) {
		put(w, w.all.secrets, ns+"/"+name, nil)
		return
	}
	pair := w.pairs[w.rand.IntN(len(w.pairs))].Data
	crt := pair[corev1.TLSCertKey]
	if w.conflicting && w.one(6) {
		crt = w.other
	}
	s := secret(name, crt, pair[corev1.TLSPrivateKeyKey])
	s.Namespace = ns
	put(w, w.all.secrets, ns+"/"+name, s)
}

// step changes something at random, and says what.
func (w *fleet) step() (what string) {
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
		w.world.classes = nil
		if w.one(2) {
			w.world.classes = []*networkingv1.IngressClass{{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: networkingv1.IngressClassSpec{Controller: "x"}}}
		}
		return "class"
	}
	return "nothing"
}

// TestRandomFleets: after whatever changes, tries, rollbacks and restarts, the routes are those
// that come out if every item is computed again. What is not accepted leaves no trace.
func TestRandomFleets(t *testing.T) {
	var pairs []*corev1.Secret
	for n := range time.Duration(5) { // the first will expire soon, the last is not valid yet
		pairs = append(pairs, dated(t, "", (12*n-47)*day/2, (5+n*20)*day, "x.test", "*.test", "*.x.test", "*.y.test"))
	}
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomFleet(t, seed, pairs)
		})
	}
}

// optionsOf varies what a fleet runs with.
func (w *fleet) optionsOf(seed uint64) (c Cluster, slots Slots, shared []string) {
	c.Addresses = &endpoints.Addresses{}
	switch w.conflicting = seed%4 > 0; seed % 8 {
	case 2:
		c.Limits = Limits{ServersPerBackend: 2, ServersPerNamespace: 6, OptionBytesPerNamespace: 1500}
	case 3:
		c.Limits = Limits{BackendsPerNamespace: 4, PathsPerNamespace: 12, SecretsPerNamespace: 2, HostsPerSecret: 1}
	case 5:
		c.Limits = Limits{PathsPerIngress: 3, MapBytesPerNamespace: 150, PortsPerService: 1, UserMillisecondsPerNamespace: 2, PatternsPerNamespace: 2, CanariesPerNamespace: 1}
	case 6:
		shared = []string{"x.test", "*.y.test"}
	case 7:
		slots.Step = 2
	}
	if seed%4 > 1 {
		c.Operator = &Operator{ExternalName: seed%2 == 0, Certificate: "shop/t1", Backend: ServiceRef{"shop", "s1", networkingv1.ServiceBackendPort{Number: 80}}}
		ports := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "tcp"}, Data: map[string]string{"9000": "shop/s2:http", "9001": "aaa/s1:80:PROXY", "80": "shop/s1:80"}}
		c.Operator.TCP = ReadTCP(ports, "edge/tcp", ":8080", c.Addresses)
		c.Addresses = c.Operator.TCP.Addresses
	}
	return c, slots, shared
}

func randomFleet(t *testing.T, seed uint64, pairs []*corev1.Secret) {
	w := newFleet(seed)
	w.annotated, w.pairs, w.other = seed%3 == 1, pairs, []byte("no certificate")
	with, slots, shared := w.optionsOf(seed)
	hosts := &Hosts{Shared: shared}
	var accepted *Routes
	var held map[reconcile.ObjectKey]any
	for step := range 150 {
		w.step()
		for w.one(4) {
			w.step()
		}
		if w.conflicting && w.one(25) {
			for _, ing := range w.all.ingresses {
				if held = without(ing); w.one(3) {
					break
				}
			}
		} else if w.one(3) {
			held = nil
		}
		c := w.cluster()
		c.Addresses, c.Limits, c.Operator, c.Hosts, c.Held = with.Addresses, with.Limits, with.Operator, hosts, held
		now := Build(c, &slots)
		if w.one(3) {
			require.NoError(t, hosts.g.RunAll(t.Context()))
			again := *hosts.model.routes.Get(nil)
			again.Next = now.Next
			require.Equal(t, now, &again, "seed %d, step %d: all items computed again", seed, step)
		}
		if w.one(6) {
			hosts.g.Rollback()
			hosts.set = map[any]any{}
			if before := hosts.model.routes.Get(nil); accepted != nil {
				before.Next, accepted.Next = time.Time{}, time.Time{}
				require.Equal(t, accepted, before, "seed %d, step %d: rolled back", seed, step)
			}
			continue
		}
		now.Accepted()
		accepted = now
		if w.conflicting && w.one(40) {
			hosts.Remember(renderRoutes(t, dataplane.Layout{Base: t.TempDir()}, now))
			accepted = nil
		}
	}
}
