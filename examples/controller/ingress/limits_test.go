package ingress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/reconcile"
)

// evil puts an object into the namespace evil, which is newer than all others.
func evil(ing *networkingv1.Ingress) *networkingv1.Ingress {
	ing.Namespace, ing.CreationTimestamp = "evil", metav1.NewTime(time.Unix(1e9, 0))
	return ing
}

// addService adds a Service of the namespace evil with the ports 1 to ports.
func (w *world) addService(name string, ports, endpoints int) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: name}}
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	for i := range ports {
		port := fmt.Sprintf("p%d", i)
		number := int32(i + 1)
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: port, Port: number})
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &port, Port: &number})
	}
	for i := range endpoints {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}})
	}
	w.services["evil/"+name] = svc
	w.slices["evil/"+name] = []*discoveryv1.EndpointSlice{s}
}

// toPort is a path to a port of a Service of the namespace evil.
func toPort(p, service string, port int) networkingv1.HTTPIngressPath {
	to := path(exact, p, service)
	to.Backend.Service.Port.Number = int32(port)
	return to
}

// goodWorld has one Ingress of the namespace ns and those of the namespace evil.
func goodWorld(others ...*networkingv1.Ingress) *world {
	w := newWorld(ingress("good", rule("good.test", path(prefix, "/", "a"))))
	for _, ing := range others {
		w.ingresses = append(w.ingresses, evil(ing))
	}
	return w
}

func countServers(r *Routes) (n int) {
	for _, b := range r.Backends.Slice() {
		n += len(b.Servers)
	}
	return n
}

func requireGood(t *testing.T, r *Routes) {
	t.Helper()
	for _, b := range r.Backends.Slice() {
		if b.Name == "ns_a_80" {
			require.Equal(t, []Server{{Name: "s1", Address: "192.0.2.1:8080"}}, b.Servers)
			require.Contains(t, bare(r.Prefix.Slice()), Path{Key: "good.test/", Backend: "ns_a_80"})
			return
		}
	}
	t.Fatal("the other namespace is not served")
}

// TestAmplification: endpoints times ports of a Service make servers. 119 KB of
// manifests made 360,000, with 2 GB in HAProxy.
func TestAmplification(t *testing.T) {
	ing := ingress("x")
	for i := range 600 {
		ing.Spec.Rules = append(ing.Spec.Rules, rule("evil.test", toPort(fmt.Sprintf("/%d", i), "many", i+1)))
	}
	w := goodWorld(ing)
	w.addService("many", 600, 600)
	r := w.build()
	requireGood(t, r)
	require.LessOrEqual(t, countServers(r), 20_001)
	require.Len(t, r.Backends.Slice(), 601, "what has no servers left answers 503")
	require.LessOrEqual(t, len(r.Refused), 20, "ten of the Ingress, ten of the Service")
	require.True(t, isRefused(r.Refused, "Service evil/many: it has 600 endpoints on port 34, of which 199 serve: namespace evil has more than 19,999 servers, its share of the 20,000 of all namespaces (servers-of-all)"))
}

func TestServersOfABackend(t *testing.T) {
	w := goodWorld(ingress("x", rule("evil.test", toPort("/", "many", 1))))
	w.addService("many", 1, 12)
	slots, cluster := &Slots{}, w.cluster()
	cluster.Limits = Limits{ServersPerBackend: 10}
	r := Build(cluster, slots)
	require.Len(t, r.Refused, 1)
	require.Contains(t, r.Refused[0].String(), "Service evil/many: it has 12 endpoints on port 1, more than the 10 servers of a backend (servers-per-backend): 10 serve")
	first := r.Backends.Slice()[0].Servers
	require.Len(t, first, 10)

	// One that comes first in order takes the place of nobody, and the place of one
	// that goes is taken by one alone.
	s := w.slices["evil/many"][0]
	s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"1.1.1.1"}})
	require.Equal(t, first, Build(cluster, slots).Backends.Slice()[0].Servers)
	s.Endpoints = s.Endpoints[1:]
	next := Build(cluster, slots).Backends.Slice()[0].Servers
	require.Equal(t, first[1:], next[1:])
	require.Equal(t, Server{Name: "s1", Address: "1.1.1.1:1"}, next[0])

	// What is not ready is not read without end either.
	no := false
	for i := range s.Endpoints {
		s.Endpoints[i].Conditions.Ready = &no
	}
	w.addService("more", 1, 100)
	s.Endpoints = append(s.Endpoints, w.slices["evil/more"][0].Endpoints...)
	r = Build(cluster, slots)
	require.Contains(t, r.Refused[0].String(), "Service evil/many: it has 112 endpoints on port 1, of which 20 are read, twice as many as may serve: 8 of them are ready")
}

// TestLimits: each limit names what is beyond it, with the number and the bound,
// and the other namespace is served as before.
func TestLimits(t *testing.T) {
	crt, key := certificate(t)
	for name, c := range map[string]struct {
		limits Limits
		ings   []*networkingv1.Ingress
		why    []string
		served int // paths of all
	}{
		"ports of a Service": {Limits{PortsPerService: 2}, []*networkingv1.Ingress{ingress("x", rule("evil.test", toPort("/", "s", 2), toPort("/b", "s", 3)))},
			[]string{"spec.rules[0].http.paths[1].backend.service.port.number: answers 503: Service evil/s has 3 ports, more than the 2 that can be used (ports-per-service), and port 3 is not among the first 2"}, 3},
		"backends of a namespace": {Limits{BackendsPerNamespace: 1}, []*networkingv1.Ingress{ingress("x", rule("evil.test", toPort("/", "s", 2), toPort("/b", "s", 3)))},
			[]string{"spec.rules[0].http.paths[1].backend: namespace evil has more than the 1 backends of one namespace (backends-per-namespace): Service evil/s port 3 is not served"}, 2},
		"paths of an Ingress": {Limits{PathsPerIngress: 2}, []*networkingv1.Ingress{ingress("x", rule("evil.test", toPort("/", "s", 2), toPort("/b", "s", 3)), rule("evil.test", toPort("/c", "s", 3)), rule("", toPort("/d", "s", 3)))},
			[]string{"spec.rules[1].http.paths[0]: the Ingress has 4 paths and TLS hosts, more than the 2 of one Ingress (paths-per-ingress): the first 2 are served"}, 3},
		"paths of a namespace": {Limits{PathsPerNamespace: 2}, []*networkingv1.Ingress{ingress("x", rule("evil.test", toPort("/", "s", 2), toPort("/b", "s", 3), toPort("/c", "s", 3))), ingress("y", rule("evil.test", toPort("/d", "s", 3)))},
			[]string{"Ingress evil/x: spec.rules[0].http.paths[2]: namespace evil has more than the 2 paths and TLS hosts of one namespace (paths-per-namespace): this and what follows is not served",
				"Ingress evil/y: spec: namespace evil has more than the 2 paths and TLS hosts of one namespace (paths-per-namespace): it is not served"}, 3},
		"bytes of maps": {Limits{MapBytesPerNamespace: 30}, []*networkingv1.Ingress{ingress("x", rule("evil.test", toPort("/"+strings.Repeat("a", 20), "s", 2), toPort("/b", "s", 3)))},
			[]string{"spec.rules[0].http.paths[1]: hosts and paths of namespace evil have more than the 30 bytes of one namespace (map-bytes-per-namespace): this and what follows is not served"}, 2},
		"hosts of a Secret": {Limits{HostsPerSecret: 1}, []*networkingv1.Ingress{withTLS(withTLS(ingress("x"), "a.test", "one"), "b.test", "one")},
			[]string{"spec.tls[1].hosts: Secret evil/one is used for 1 TLS hosts, the most that one can have (hosts-per-secret): b.test is not served with it"}, 1},
		"Secrets of a namespace": {Limits{SecretsPerNamespace: 1}, []*networkingv1.Ingress{withTLS(withTLS(ingress("x"), "a.test", "one"), "b.test", "two")},
			[]string{"spec.tls[1].secretName: namespace evil has more than the 1 Secrets of one namespace (secrets-per-namespace): Secret evil/two is not used"}, 1},
		"length of a chain": {Limits{CertificatesPerSecret: 2}, []*networkingv1.Ingress{withTLS(ingress("x"), "a.test", "chain")},
			[]string{"Secret evil/chain: a chain of 3 certificates, more than the 2 of one Secret (certificates-per-secret)"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := goodWorld(c.ings...)
			w.addService("s", 3, 1)
			w.secrets["evil/one"], w.secrets["evil/two"] = secret("one", crt, key), secret("two", crt, key)
			w.secrets["evil/chain"] = secret("chain", []byte(strings.Repeat(string(crt), 3)), key)
			w.secrets["evil/chain"].Namespace = "evil"
			cluster := w.cluster()
			cluster.Limits = c.limits
			r := Build(cluster, &Slots{})
			requireGood(t, r)
			require.Len(t, r.Refused, len(c.why))
			for i, why := range c.why {
				require.Contains(t, r.Refused[i].String(), why)
			}
			require.Equal(t, c.served, r.Exact.Len()+r.Prefix.Len())
		})
	}
}

// TestALongLineOfTLSHosts: HAProxy reads a crt-list by lines of 65,536 bytes and
// 2,048 words, and stops at a longer one. A runtime command has 16,384 bytes.
func TestALongLineOfTLSHosts(t *testing.T) {
	crt, key := certificate(t)
	x := ingress("x")
	x.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "one"}}
	for i := range 900 {
		x.Spec.TLS[0].Hosts = append(x.Spec.TLS[0].Hosts, fmt.Sprintf("%s%d.test", strings.Repeat("a", 58), i))
	}
	w := goodWorld(x)
	w.secrets["evil/one"] = secret("one", crt, key)
	cluster := w.cluster()
	cluster.Limits.HostsPerSecret = 100_000
	r := Build(cluster, &Slots{})
	require.LessOrEqual(t, len(strings.Join(r.Certificates[0].Hosts, " ")), 12_000)
	require.Len(t, r.Refused, 10)
	require.Equal(t, 710, r.Refused[9].More)
	require.Contains(t, r.Refused[0].Reason, "Secret evil/one is used for 180 TLS hosts, and HAProxy reads 12,000 bytes of them: aaa")
}

func TestLimitsAreFlags(t *testing.T) {
	var l Limits
	require.NoError(t, l.Set("servers-per-backend=7"))
	require.Equal(t, 7, l.orUsual().ServersPerBackend)
	require.Equal(t, 20_000, l.orUsual().ServersPerNamespace)
	require.ErrorContains(t, l.Set("servers-per-backend=-1"), `"-1" is not a number above 0`)
	require.ErrorContains(t, l.Set("server=1"), "there is no limit \"server\"")
	require.ErrorContains(t, l.Set("server=1"), "-h lists all")
	require.ErrorContains(t, l.Set("path-per-ingres=1"), "did you mean paths-per-ingress?")
	require.Contains(t, LimitsUsage(), "paths-per-ingress=1000\tpaths, empty rules and TLS hosts of an Ingress\n")
	for _, row := range l.table() {
		require.NotNil(t, row.Value)
		require.Positive(t, row.Usual)
	}
}

// TestManySlices: slices with many ports and hardly an endpoint took 8.7 s of a render.
func TestManySlices(t *testing.T) {
	const services, slices = 10, 5000
	w := goodWorld()
	w.addService("many", 100, 1)
	all := make([]*discoveryv1.EndpointSlice, slices)
	for i := range all {
		all[i] = w.slices["evil/many"][0]
	}
	for i := range services {
		name := fmt.Sprintf("many%d", i)
		ing := ingress(name)
		w.addService(name, 100, 0)
		w.slices["evil/"+name] = all
		for port := range 100 {
			ing.Spec.Rules = append(ing.Spec.Rules, rule("evil.test", toPort(fmt.Sprintf("/%d-%d", i, port), name, port+1)))
		}
		w.ingresses = append(w.ingresses, evil(ing))
	}
	r := w.build()
	requireGood(t, r)
	require.True(t, isRefused(r.Refused, "Service evil/many0: it has 5,000 endpoints on port 1, of which 2,000 are read"))
	require.True(t, isRefused(r.Refused, "the endpoints of this Service are not read, and requests get 503: namespace evil has endpoints and EndpointSlices for three times more than 19,99"))
}

func isRefused(refused []reconcile.Refusal, text string) bool {
	for _, r := range refused {
		if strings.Contains(r.String(), text) {
			return true
		}
	}
	return false
}
