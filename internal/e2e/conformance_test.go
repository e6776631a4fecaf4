package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// TestConformance holds the controller against the rules of the API documentation for
// Ingress. Each file of testdata/conformance is a chapter, the type chapter says how to
// read it. One controller and one HAProxy serve them all.
func TestConformance(t *testing.T) {
	startBackends(t, backendPort)
	startBackends(t, backendPort+1)
	c, certs := startController(t, options{args: []string{"-min-interval", "100ms", "-publish-address", "203.0.113.10", "-host-grace", "1s"}}), newCertificates(t)
	files, err := filepath.Glob("testdata/conformance/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no chapters: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			if strings.HasSuffix(file, "ipv6.yaml") && env.noIPv6 != nil {
				t.Skip("the kernel has no IPv6: ", env.noIPv6)
			}
			newChapter(t, newKube(t), certs, file).run(c)
		})
	}
}

// chapter is a file of steps, one after another, and the cluster that they change. Names
// are those of a namespace of its own, "other/name" is in another one.
type chapter struct {
	Services []string `json:"services"` // have port 80 and one endpoint, whose answer is known by their name
	Steps    []step   `json:"steps"`

	t       *testing.T
	certs   *certificates
	client  *dynamic.DynamicClient
	spaces  map[string]*kube   // by the name in the file; "" is that of the chapter
	address map[string]string  // by Service
	issued  map[string]keyPair // by Secret
	classes sync.Once
}

// step changes the cluster, and says what is served then.
type step struct {
	Name         string              `json:"name"`
	Certificates map[string][]string `json:"certificates"` // Secret: names in its new certificate
	Paths        map[string]string   `json:"paths"`        // Ingress: lines "host type path Service"; host "*" is none
	Apply        []map[string]any    `json:"apply"`        // manifests, without apiVersion and namespace
	Delete       []string            `json:"delete"`       // "Kind name"
	Expect       string              `json:"expect"`       // lines, see asks
	Status       map[string]string   `json:"status"`       // Ingress: address in status.loadBalancer, "" for none
	Unmarked     bool                `json:"unmarked"`     // no Ingress with a class is served, see mark
}

// The API that serves each kind.
var kinds = map[string]schema.GroupVersionResource{
	"Ingress":       netv1.SchemeGroupVersion.WithResource("ingresses"),
	"IngressClass":  netv1.SchemeGroupVersion.WithResource("ingressclasses"),
	"Service":       {Version: "v1", Resource: "services"},
	"Secret":        {Version: "v1", Resource: "secrets"},
	"EndpointSlice": {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
}

// firstService is the address of the first Service of a chapter.
const firstService = 20

// newChapter reads a file, and makes its Services with one endpoint each.
func newChapter(t *testing.T, k *kube, certs *certificates, file string) *chapter {
	t.Helper()
	text, err := os.ReadFile(file)
	k.must(err)
	ch := &chapter{t: t, certs: certs, spaces: map[string]*kube{"": k}, address: map[string]string{}, issued: map[string]keyPair{}}
	k.must(yaml.Unmarshal(text, ch, yaml.DisallowUnknownFields))
	ch.client, err = dynamic.NewForConfig(env.cluster.config)
	k.must(err)
	for i, name := range append(ch.Services, markerName) {
		addr := host(fmt.Sprint(firstService + i))
		ch.address[name] = endpoint(addr, backendPort)
		space, service := ch.place(name)
		space.service(service, backendPort, addr)
	}
	return ch
}

// place returns the namespace that a name stands for, and the name in it.
func (ch *chapter) place(name string) (*kube, string) {
	space, base, found := strings.Cut(name, "/")
	if !found {
		space, base = "", name
	}
	if ch.spaces[space] == nil {
		ch.spaces[space] = newKube(ch.t)
	}
	return ch.spaces[space], base
}

// run changes the cluster step by step. The first that fails ends the chapter.
func (ch *chapter) run(c *controller) {
	for i := range ch.Steps {
		s := &ch.Steps[i]
		ok := ch.t.Run(s.Name, func(t *testing.T) {
			for _, k := range ch.spaces {
				k.t = t
			}
			asks := ch.asks(t, s.Expect)
			ch.change(s)
			if !s.Unmarked {
				ch.mark(c, i)
			}
			eventually(t, "what is documented is served", func() error {
				var errs []error
				for j := range asks {
					errs = append(errs, ch.check(c, &asks[j]))
				}
				for name, want := range s.Status {
					errs = append(errs, ch.checkStatus(name, want))
				}
				return errors.Join(errs...)
			})
		})
		for _, k := range ch.spaces {
			k.t = ch.t
		}
		if !ok {
			return
		}
	}
}

// change makes the changes of a step.
func (ch *chapter) change(s *step) {
	k := ch.spaces[""]
	for name, hosts := range s.Certificates {
		space, secret := ch.place(name)
		ch.issued[name] = ch.certs.issue(hosts...)
		space.secret(secret, ch.issued[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Paths)) {
		ch.apply(ingressOf(k.t, name, s.Paths[name]))
	}
	for _, manifest := range s.Apply {
		ch.apply(manifest)
	}
	for _, line := range s.Delete {
		kind, name, _ := strings.Cut(line, " ")
		resource, _ := ch.resource(kind, &name)
		k.must(resource.Delete(k.t.Context(), name, metav1.DeleteOptions{}))
	}
}

// ingressOf makes a manifest of lines "host type path service".
func ingressOf(t testing.TB, name, lines string) map[string]any {
	t.Helper()
	var rules []any
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
		if len(f) != 4 {
			t.Fatalf("%q: want host, type, path and Service", line)
		}
		rule := map[string]any{"http": map[string]any{"paths": []any{map[string]any{
			"pathType": f[1], "path": f[2],
			"backend": map[string]any{"service": map[string]any{"name": f[3], "port": map[string]any{"number": int64(servicePort)}}},
		}}}}
		if f[0] != "*" {
			rule["host"] = f[0]
		}
		rules = append(rules, rule)
	}
	return map[string]any{"kind": "Ingress", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"ingressClassName": className, "rules": rules}}
}

// apply makes an object what the manifest says.
func (ch *chapter) apply(manifest map[string]any) {
	k := ch.spaces[""]
	k.t.Helper()
	o := unstructured.Unstructured{Object: manifest}
	name := o.GetName()
	resource, kind := ch.resource(o.GetKind(), &name)
	o.SetAPIVersion(kind.GroupVersion().String())
	o.SetName(name)
	_, err := resource.Apply(k.t.Context(), name, &o, metav1.ApplyOptions{FieldManager: "conformance", Force: true})
	k.must(err)
}

// resource is the client for a kind, in the namespace of the name. Classes are put back
// when the chapter ends.
func (ch *chapter) resource(kind string, name *string) (dynamic.ResourceInterface, schema.GroupVersionResource) {
	of, known := kinds[kind]
	switch {
	case !known:
		ch.spaces[""].t.Fatalf("kind %q: want one of %v", kind, slices.Sorted(maps.Keys(kinds)))
	case kind == "IngressClass":
		ch.classes.Do(func() { ch.t.Cleanup(ch.restoreClasses) })
		return ch.client.Resource(of), of
	}
	space, base := ch.place(*name)
	*name = base
	return ch.client.Resource(of).Namespace(space.ns), of
}

// restoreClasses leaves the classes as the other tests expect them.
func (ch *chapter) restoreClasses() {
	ctx, classes := context.Background(), env.cluster.client.NetworkingV1().IngressClasses()
	err := classes.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err = errors.Join(err, env.cluster.createClass(ctx)); err != nil {
		ch.t.Error(err)
	}
}

// markerName is a Service of each chapter, and its host.
const markerName = "marker"

// mark returns when the controller has seen all Ingresses and EndpointSlices of a step:
// they come in order, and the last ones of a step say its number. Else what must not be
// served would be asked for before anybody knew of it.
func (ch *chapter) mark(c *controller, step int) {
	k := ch.spaces[""]
	k.t.Helper()
	addr, path := host(fmt.Sprint(200+step%50)), fmt.Sprintf("/%d", step)
	k.endpoints(markerName, backendPort, addr)
	ch.apply(ingressOf(k.t, markerName, "marker.test Exact "+path+" "+markerName))
	eventually(k.t, "the step is seen", c.visit().expect("marker.test", path, endpoint(addr, backendPort)))
}
