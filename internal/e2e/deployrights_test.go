package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// kustomized are the objects of a kustomization.
type kustomized struct{ objects []*unstructured.Unstructured }

// readKustomized reads a kustomization as kubectl apply -k does. It may have resources
// alone, so that nothing is applied that this does not see. instead says which folder is
// taken in the place of another.
func readKustomized(t testing.TB, folder string, instead func(string) string) *kustomized {
	t.Helper()
	m := &kustomized{}
	must(t, m.read(folder, instead))
	return m
}

func (m *kustomized) read(folder string, instead func(string) string) error {
	for _, o := range mustDocuments(filepath.Join(folder, "kustomization.yaml")) {
		resources, _, _ := unstructured.NestedStringSlice(o, "resources")
		if len(o) != 1 || len(resources) == 0 {
			return fmt.Errorf("%s/kustomization.yaml: want resources and nothing else", folder)
		}
		for _, name := range resources {
			path := instead(filepath.Join(folder, name))
			if filepath.Ext(name) == "" {
				if err := m.read(path, instead); err != nil {
					return err
				}
				continue
			}
			for _, doc := range mustDocuments(path) {
				m.objects = append(m.objects, &unstructured.Unstructured{Object: doc})
			}
		}
	}
	return nil
}

// mustDocuments reads all documents of a file; none is an error when it is applied.
func mustDocuments(path string) (all []map[string]any) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var doc map[string]any
		if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			panic(fmt.Errorf("%s: %w", path, err))
		}
		all = append(all, doc)
	}
}

// rename puts what is in one namespace into another.
func (m *kustomized) rename(from, to string) {
	for _, o := range m.objects {
		if o.GetNamespace() == from {
			o.SetNamespace(to)
		}
	}
}

func (m *kustomized) find(kind, name string) *unstructured.Unstructured {
	for _, o := range m.objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// apply creates all objects, and deletes them when the test ends, but for the namespace and
// the class, which other tests use as well.
func (m *kustomized) apply(t testing.TB) {
	t.Helper()
	config := rest.CopyConfig(env.cluster.config)
	config.ContentType = ""
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	lists, err := env.cluster.client.Discovery().ServerPreferredResources()
	must(t, err)
	resources := map[schema.GroupVersionKind]string{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			resources[schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind)] = r.Name
		}
	}
	for _, o := range m.objects {
		gvk := o.GroupVersionKind()
		at := client.Resource(gvk.GroupVersion().WithResource(resources[gvk])).Namespace(o.GetNamespace())
		if _, err := at.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "e2e", Force: true}); err != nil {
			t.Fatalf("%s %s: %v", gvk.Kind, o.GetName(), err)
		}
		if gvk.Kind == "Namespace" || gvk.Kind == "IngressClass" {
			continue
		}
		t.Cleanup(func() {
			if err := at.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
}

// request is what RBAC judges.
type request struct {
	verb, group, resource, namespace, name string // resource: with the subresource
}

func (r request) String() string {
	return fmt.Sprintf("%s %s.%s %s/%s", r.verb, r.resource, r.group, r.namespace, r.name)
}

// readRequest reads it as the API server does.
func readRequest(r *http.Request) request {
	words := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var is request
	switch {
	case words[0] == "apis" && len(words) > 3:
		is.group, words = words[1], words[3:]
	case words[0] == "api" && len(words) > 2:
		words = words[2:]
	default:
		return request{verb: r.Method, resource: r.URL.Path}
	}
	if words[0] == "namespaces" && len(words) > 2 {
		is.namespace, words = words[1], words[2:]
	}
	is.resource = words[0]
	if len(words) > 1 {
		is.name = words[1]
	}
	if len(words) > 2 {
		is.resource += "/" + words[2]
	}
	one := is.name != ""
	if name, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); ok {
		is.name = name
	}
	switch is.verb = map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "list"}[r.Method]; {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		is.verb = "watch"
	case r.Method == http.MethodGet && one:
		is.verb = "get"
	}
	return is
}

// apiGate is the way of a controller to the API server; it sees what is asked and what is
// refused.
type apiGate struct {
	*httptest.Server
	mu     sync.Mutex
	asked  map[request]bool
	denied map[request]bool
}

// newAPIGate starts a gate. An old API server does not stream lists.
func newAPIGate(t testing.TB, old bool) *apiGate {
	t.Helper()
	to, err := url.Parse(env.cluster.config.Host)
	must(t, err)
	anonymous := rest.AnonymousClientConfig(env.cluster.config)
	transport, err := rest.TransportFor(anonymous)
	must(t, err)
	g := &apiGate{asked: map[request]bool{}, denied: map[request]bool{}}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized {
				g.note(g.denied, r.Request)
			}
			return nil
		},
	}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.note(g.asked, r); old && r.URL.Query().Get("sendInitialEvents") != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","message":"sendInitialEvents is forbidden","code":422}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	g.EnableHTTP2 = true
	g.StartTLS() // client-go tells no token otherwise
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
		utilnet.CloseIdleConnectionsFor(transport)
	})
	return g
}

func (g *apiGate) note(in map[request]bool, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in[readRequest(r)] = true
}

func (g *apiGate) requests() []request { return g.listed(g.asked) }
func (g *apiGate) refusals() []request { return g.listed(g.denied) }

func (g *apiGate) listed(of map[request]bool) []request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(of))
}

// rights compares what Roles grant with what was asked.
type rights struct{ granted map[string]bool } // by Role, verb and resource; whether it was asked

func newRights() *rights { return &rights{map[string]bool{}} }

// add compares the Roles of some manifests with what was asked of them.
func (r *rights) add(m *kustomized, asked []request) {
	for _, o := range m.objects {
		if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.Role // a ClusterRole has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			panic(err)
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					key := fmt.Sprintf("%s %s: %s %s", o.GetKind(), role.Name, verb, resource)
					r.granted[key] = r.granted[key] || slices.ContainsFunc(asked, func(a request) bool {
						return a.verb == verb && a.resource == resource && a.group == rule.APIGroups[0] &&
							(role.Namespace == "" || a.namespace == role.Namespace) &&
							(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.name))
					})
				}
			}
		}
	}
}

func (r *rights) unused() (all []string) {
	for right, used := range r.granted {
		if !used {
			all = append(all, right)
		}
	}
	slices.Sort(all)
	return all
}
