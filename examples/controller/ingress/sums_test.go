package ingress

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

var fullSums = flag.Bool("sums", false, "run HAProxy with all that ten namespaces may have")

// site adds a Service with endpoints to a namespace, and an Ingress that names it.
func (w *world) site(namespace, name string, endpoints int, change func(*networkingv1.Ingress)) {
	ing := ingress(name, rule(name+"."+namespace+".test", path(prefix, "/", name)))
	ing.Namespace = namespace
	if change != nil {
		change(ing)
	}
	w.ingresses = append(w.ingresses, ing)
	key := namespace + "/" + name
	w.services[key] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	var addresses []string
	for i := range endpoints {
		addresses = append(addresses, fmt.Sprintf("192.0.2.%d", 1+i))
	}
	w.slices[key] = []*discoveryv1.EndpointSlice{slice("http", 8080, addresses...)}
}

// closed asks for a password of a Secret with that many users.
func (w *world) closed(users int) func(*networkingv1.Ingress) {
	return func(ing *networkingv1.Ingress) {
		ing.Annotations = map[string]string{nginx + "auth-type": "basic", nginx + "auth-secret": ing.Name}
		var lines strings.Builder
		for i := range users {
			fmt.Fprintf(&lines, "u%d:%s\n", i, userHash)
		}
		w.secrets[ing.Namespace+"/"+ing.Name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ing.Namespace, Name: ing.Name}, Data: map[string][]byte{"auth": []byte(lines.String())}}
	}
}

// secured has a certificate of its own.
func (w *world) secured(crt, key []byte) func(*networkingv1.Ingress) {
	return func(ing *networkingv1.Ingress) {
		withTLS(ing, ing.Spec.Rules[0].Host, ing.Name+"-tls")
		s := secret(ing.Name+"-tls", crt, key)
		s.Namespace = ing.Namespace
		w.secrets[ing.Namespace+"/"+s.Name] = s
	}
}

// TestSumsOfNamespaces: many namespaces within their limits have no more than all may have
// together, and who asks for little gets it.
func TestSumsOfNamespaces(t *testing.T) {
	crt, key := certificate(t)
	w := newWorld()
	for _, namespace := range []string{"a", "b", "c", "shop"} {
		n := 20
		if namespace == "shop" {
			n = 2
		}
		for i := range n {
			w.site(namespace, fmt.Sprintf("plain%d", i), 3, nil)
			w.site(namespace, fmt.Sprintf("users%d", i), 1, w.closed(1))
			w.site(namespace, fmt.Sprintf("tls%d", i), 1, w.secured(crt, key))
			w.site(namespace, fmt.Sprintf("rate%d", i), 1, func(ing *networkingv1.Ingress) {
				ing.Annotations = map[string]string{nginx + "limit-rps": "5", tech + "rate-limit-size": "1k"}
			})
		}
	}
	build := func(l Limits) (r *Routes, ofShop int) {
		c := w.cluster()
		c.Limits = l
		r = Build(c, &Slots{})
		for _, b := range owned(r.Backends.Slice()) {
			if strings.HasPrefix(b.Name, "shop_") && len(b.Servers) > 0 {
				ofShop++
			}
		}
		for _, refused := range r.Refused {
			if !strings.Contains(refused.String(), "the certificate is for") {
				require.NotContains(t, refused.String(), " shop/", "%+v", l)
			}
		}
		return r, ofShop
	}
	whole, ofShop := build(Limits{})
	require.Equal(t, 8, ofShop)
	require.Len(t, whole.Backends.Slice(), 248)
	for flag, c := range map[string]struct {
		limits Limits
		count  func(*Routes) int
		most   int
		says   string
	}{
		"servers":  {Limits{ServersOfAll: 100}, countServers, 100, "its share of the 100 of all namespaces (servers-of-all)"},
		"backends": {Limits{BackendsOfAll: 98}, func(r *Routes) int { return len(r.Backends.Slice()) }, 98, "namespace a has more than 30 backends, its share of the 98 of all namespaces (backends-of-all)"},
		"paths":    {Limits{PathsOfAll: 130}, func(r *Routes) int { return len(r.Prefix.Slice()) }, 130, "more than 40 paths and TLS hosts, its share of the 130 of all"},
		"bytes": {Limits{MapBytesOfAll: 1000}, func(r *Routes) (n int) {
			for _, p := range r.Prefix.Slice() {
				n += len(p.Key)
			}
			return n
		}, 1000, "(map-bytes-of-all)"},
		"secrets": {Limits{SecretsOfAll: 32}, func(r *Routes) int { return len(r.Certificates) }, 32, "its share of the 32 of all namespaces (secrets-of-all)"},
		"users":   {Limits{UserMillisecondsOfAll: 50}, func(r *Routes) int { return 3 * len(r.Userlists.Slice()) / 2 }, 50, "its share of the 50 of all namespaces (user-milliseconds-of-all)"},
		"rates": {Limits{RateAddressesOfAll: 32 << 10}, func(r *Routes) (n int) {
			for _, b := range r.Backends.Slice() {
				if strings.Contains(b.Name, "_rate") {
					n += 1 << 10
				}
			}
			return n
		}, 32 << 10, "its share of the 32,768 of all namespaces (rate-addresses-of-all)"},
	} {
		r, ofShop := build(c.limits)
		require.LessOrEqual(t, c.count(r), c.most, flag)
		require.Equal(t, 8, ofShop, flag)
		require.True(t, isRefused(r.Refused, c.says), flag)
	}
}

// TestFullSums: HAProxy reads within 3 s all that ten namespaces may have, and two of its
// processes fit into the memory of the manifests beside the controller.
func TestFullSums(t *testing.T) {
	if !*fullSums {
		t.Skip("make hostile runs it")
	}
	needHAProxy(t)
	crt, key := certificate(t)
	w := newWorld()
	var list []string
	for i := range 500 {
		list = append(list, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
	}
	for n := range 10 {
		namespace := fmt.Sprintf("n%d", n)
		for i := range 150 {
			w.site(namespace, fmt.Sprintf("list%d", i), 1, func(ing *networkingv1.Ingress) {
				ing.Annotations = map[string]string{nginx + "whitelist-source-range": strings.Join(list, ",")}
			})
		}
		for i := range 30 {
			w.site(namespace, fmt.Sprintf("rate%d", i), 1, func(ing *networkingv1.Ingress) {
				ing.Annotations = map[string]string{nginx + "limit-rps": "5", tech + "rate-limit-size": "5k"}
			})
			w.site(namespace, fmt.Sprintf("users%d", i), 1, w.closed(6))
		}
		for i := range 300 {
			w.site(namespace, fmt.Sprintf("tls%d", i), 1, w.secured(crt, key))
		}
		for i := range 2000 {
			w.site(namespace, fmt.Sprintf("usual%d", i), 2, nil)
		}
	}
	routes := w.build()
	t.Logf("%d backends, %d servers, %d paths, %d certificates, %d lists of users, %d refused", len(routes.Backends.Slice()), countServers(routes),
		len(routes.Prefix.Slice()), len(routes.Certificates), len(routes.Userlists.Slice()), len(routes.Refused))
	layout := dataplane.Layout{Base: t.TempDir()}
	writeConfig(t, layout, renderAt(t, compiled(t, layout), layout, routes, freeAddress(t), freeAddress(t)))
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), "haproxy", "-db", "-f", layout.ConfigPath())
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("unix", filepath.Join(layout.Base, "run.sock"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	took, resident := time.Since(began), residentMB(t, cmd.Process.Pid)
	t.Logf("HAProxy starts in %v and has %d MB", took.Round(10*time.Millisecond), resident)
	require.Less(t, took, 3*time.Second)
	counted := 208 * Limits{}.InForce()["rate-addresses-of-all"] >> 20 // once clients come
	require.Less(t, 2*(resident+counted)+400, UsualMemory>>20, "400 MiB are the controller's")
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func residentMB(t *testing.T, pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kilobytes >> 10
}
