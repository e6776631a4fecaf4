package settings

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

// seeds is how many clusters TestRandomSettings makes.
var seeds = flag.Uint64("seeds", 4, "clusters that change at random")

// randomSettings read every kind of store with all, some and no keys. The words in capitals are
// replaced.
const randomSettings = `
watchedResources:
  ingresses: {apiVersion: networking.k8s.io/v1, resources: ingresses, indexBy: ["spec.rules[*].host"]}
  services: {apiVersion: v1, resources: services}
  slices: {apiVersion: discovery.k8s.io/v1, resources: endpointslices, indexBy: [metadata.namespace, INDEX]}
  routes: {apiVersion: example.test/v1, resources: routes, indexBy: ["spec.hosts[*]", metadata.namespace]}
  secrets: {apiVersion: v1, resources: secrets, store: on-demand}
haproxyConfig: {template: "# VERSION of {{ len(resources.slices.List()) }}\n"}
haproxySections:
  backends.cfg:
    each: {resource: services, as: svc}
    template: |
      backend {{ svc.Namespace }}_{{ svc.Name }}
          # {{ svc.Annotations["text"] }}
      {% for slice in resources.slices.Get(svc.Namespace, svc.Name) %}{% for e in slice.Endpoints %}
          server {{ replace(e.Addresses[0], ".", "-") }} {{ e.Addresses[0] }}:80
      {% end %}{% end %}
      {% if s := resources.secrets.GetSingle(svc.Namespace, svc.Name); s != nil %}
          # {{ string(s.Data["k"]) }}
      {% end %}
          # {{ SERVERS }}
  routes.cfg:
    each: {resource: routes, as: route}
    template: |
      # {{ route.metadata.name }} {{ len(resources.ingresses.Get(digString(route, "metadata.name"))) }}
  deployed.cfg:
    template: |
      # {{ SECTIONS }}
maps:
  hosts.map:
    each: {resource: ingresses, as: ing}
    template: |
      {% for r in ing.Spec.Rules %}{% for route in resources.routes.Get(r.Host) %}
      host.{{ r.Host }} {{ route.metadata.name }}_{{ ing.Name }}
      {% end %}{% end %}
  namespaces.map:
    template: |
      {% for ns in []string{"a", "b", "c"} %}
      {{ ns }} {% for slice in resources.slices.Get(ns) %}{{ slice.Name }},{% end %}{{ len(resources.services.Get(ns)) }}
      {% end %}
`

// cluster is one that changes at random, with a Live that renders it.
type cluster struct {
	*rand.Rand
	source   *k8swatchtest.Source
	live     *Live
	loop     *reconcile.Loop // nil: the test renders
	target   *fakeTarget
	stop     func()
	settings string // written last
	inUse    string
	version  int
	earlier  rendering.Objects // nil: none
}

func (c *cluster) one(in int) bool             { return c.IntN(in) == 0 }
func (c *cluster) pick(words ...string) string { return words[c.IntN(len(words))] }

func (c *cluster) meta(names int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.pick("a", "b"), Name: fmt.Sprint("n", c.IntN(names))}
}

// change changes or deletes an object.
func (c *cluster) change() {
	meta, kind := c.meta(4), metav1.TypeMeta{APIVersion: "v1"}
	meta.Annotations = map[string]string{"text": c.pick("x", "x", "x", "y", "y", "bad", "wrong\n")}
	var obj k8swatch.Object
	switch kind.Kind = c.pick("Service", "EndpointSlice", "EndpointSlice", "Ingress", "Route", "Secret"); kind.Kind {
	case "Service":
		obj = &corev1.Service{TypeMeta: kind, ObjectMeta: meta}
	case "EndpointSlice":
		kind.APIVersion, meta.Labels = "discovery.k8s.io/v1", map[string]string{discoveryv1.LabelServiceName: fmt.Sprint("n", c.IntN(4)), "other": fmt.Sprint("n", c.IntN(4))}
		obj = &discoveryv1.EndpointSlice{TypeMeta: kind, ObjectMeta: meta, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprint("192.0.2.", c.IntN(9))}}}}
	case "Ingress":
		kind.APIVersion = "networking.k8s.io/v1"
		rules := []networkingv1.IngressRule{{Host: c.pick("x", "y", "n0", "n1")}, {Host: c.pick("", "x", "z")}}
		obj = &networkingv1.Ingress{TypeMeta: kind, ObjectMeta: meta, Spec: networkingv1.IngressSpec{Rules: rules[:1+c.IntN(2)]}}
	case "Route":
		obj = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.test/v1", "kind": "Route",
			"metadata": map[string]any{"namespace": meta.Namespace, "name": meta.Name}, "spec": map[string]any{"hosts": []any{c.pick("x", "y", "z"), c.pick("", "x", "y")}}}}
	case "Secret":
		obj = &corev1.Secret{TypeMeta: kind, ObjectMeta: meta, Data: map[string][]byte{"k": []byte(c.pick("1", "2"))}}
	}
	if c.one(4) {
		c.source.Delete(obj)
	} else {
		c.source.Apply(obj)
	}
}

// wait waits until nothing happens any more.
func (c *cluster) wait() {
	if c.loop != nil {
		time.Sleep(5 * time.Second)
	}
	synctest.Wait()
}

// repair removes what no settings can render.
func (c *cluster) repair() {
	for _, obj := range c.source.List(services) {
		if obj.GetAnnotations()["text"] == "wrong\n" {
			c.source.Delete(obj)
		}
	}
	synctest.Wait()
}

// write writes other settings.
func (c *cluster) write(looping bool) {
	c.version++
	servers, sections := `len(currentConfig.Servers("backend", svc.Namespace + "_" + svc.Name))`, `len(currentConfig.Sections("backend"))`
	if looping {
		servers, sections = "0", "0" // the loop rendered before it deployed
	}
	c.settings = strings.NewReplacer("VERSION", fmt.Sprint(c.version), "SERVERS", servers, "SECTIONS", sections,
		"INDEX", c.pick(`"metadata.labels['kubernetes.io/service-name']"`, "metadata.labels.other")).Replace(randomSettings)
	if c.one(3) { // a store fewer
		c.settings = strings.Replace(c.settings, "  routes: {", "  roads: {", 1)
		c.settings = strings.NewReplacer("resource: routes", "resource: roads", "resources.routes", "resources.roads").Replace(c.settings)
	}
}

// apply gives the settings to the Live.
func (c *cluster) apply(t *testing.T) {
	err := c.live.ApplyYAML(t.Context(), "s.yaml", []byte(c.settings))
	var trial *trialError
	if errors.As(err, &trial) { // an object is wrong
		c.repair()
		c.earlier = nil
		c.show()
		err = c.live.ApplyYAML(t.Context(), "s.yaml", []byte(c.settings))
	}
	require.NoError(t, err)
	c.inUse, c.earlier = c.settings, nil
}

// start runs a new Live, as after a restart.
func (c *cluster) start(t *testing.T, looping bool) {
	var err error
	c.live, err = NewLive(LiveOptions{Source: c.source})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.live.Run(ctx) })
	if looping {
		c.target = &fakeTarget{name: "a"}
		c.loop, err = c.live.NewLoop(reconcile.Options{Targets: []reconcile.Target{c.target}, Validator: reconcile.ValidatorFunc(refuseBad)})
		require.NoError(t, err)
		running.Go(func() { _ = c.loop.Run(ctx) })
	}
	c.stop = func() { stop(); running.Wait() }
	c.apply(t)
}

// refuseBad is a validator.
func refuseBad(_ context.Context, cfg *dataplane.Config) error {
	v := &verdict{}
	for i, line := range strings.Split(cfg.Main(), "\n") {
		if strings.HasSuffix(line, "# bad") {
			v.lines = append(v.lines, i+1)
		}
	}
	if len(v.lines) > 0 {
		return v
	}
	return nil
}

// show chooses what renders read, as a loop does: most often all objects as they are, and
// sometimes as they were, or with some of them held back.
func (c *cluster) show() {
	if c.loop != nil || c.live.Program() == nil {
		return
	}
	now := c.live.view.Newest()
	held := map[rendering.Key]any{}
	if c.earlier != nil && c.one(3) {
		for obj := range now.All() {
			o := obj.(k8swatch.Object)
			version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
			key := rendering.Key{APIVersion: version, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
			if c.one(6) {
				held[key] = c.earlier.Get(key)
			}
		}
	}
	if c.earlier != nil && c.one(12) {
		c.live.view.Show(c.earlier)
	} else {
		c.live.view.Show(now.With(held))
	}
	if c.one(3) {
		c.earlier = now
	}
}

// fromNothing is the text of the stores as a program renders them that has rendered nothing.
func (c *cluster) fromNothing(t *testing.T) (string, error) {
	p, err := ParseProgram("s.yaml", []byte(c.inUse), nil)
	require.NoError(t, err)
	p.templates.SetPrevious(c.live.deployed)
	return rendered(p.Render(t.Context(), c.live.stores()))
}

func rendered(r *reconcile.Rendered, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return allOf(r.Config), nil
}

func allOf(cfg *dataplane.Config) string {
	text := cfg.Main()
	for _, f := range cfg.Files() {
		text += fmt.Sprintf("--- %s\n%s", f.Name, f.Content)
	}
	return text
}

// check compares what the Live renders with what a program renders that remembers nothing.
func (c *cluster) check(t *testing.T, about string) {
	c.wait()
	if c.loop != nil {
		want, err := c.fromNothing(t)
		require.NoError(t, err, about)
		require.Equal(t, want, allOf(c.target.synced[len(c.target.synced)-1]), about)
		return
	}
	want, wantErr := c.fromNothing(t)
	made, err := c.live.Render(t.Context())
	got, err := rendered(made, err)
	require.Equal(t, want, got, about)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error(), about)
		return
	}
	require.NoError(t, err, about)
	if c.one(2) {
		c.live.Settle(made.Config, nil)
	}
}

// TestRandomSettings: after whatever changes, is held back, fails or is restarted, a
// configuration is the one of a program that has rendered nothing before.
func TestRandomSettings(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomCluster(t, seed) })
		})
	}
}

func randomCluster(t *testing.T, seed uint64) {
	c := &cluster{Rand: rand.New(rand.NewPCG(seed, 11)), source: k8swatchtest.NewSource()}
	c.source.Apply(&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "good"}}) // so that no line is wrong for every Service
	looping := seed%3 == 2
	c.write(looping)
	c.start(t, looping)
	defer func() { c.stop() }()
	for step := range 60 {
		about := fmt.Sprintf("seed %d, step %d", seed, step)
		for range c.IntN(4) {
			c.change()
		}
		switch c.wait(); {
		case c.one(20):
			c.stop()
			c.start(t, looping)
		case c.one(12):
			c.write(looping)
			c.apply(t)
		}
		c.show()
		c.check(t, about)
	}
}
