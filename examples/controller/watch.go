package main

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// newWatchers makes the source and the watchers of all resources.
func (c *controller) newWatchers() (err error) {
	if c.fixtures != nil {
		c.source = c.fixtures
	} else if c.cfg.manifests != "" {
		opts := &k8swatch.FolderOptions{}
		if c.cfg.local != "" && !c.cfg.once {
			opts.LastGood = filepath.Join(c.cfg.local, "manifests")
		}
		folder, e := k8swatch.NewFolder(c.cfg.manifests, opts)
		c.folder, c.source, err = &kit.Manifests{Folder: folder}, folder, kit.OfFlag("manifests", e)
	} else {
		c.cluster, err = k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: c.cfg.kubeconfig})
		c.source, err = c.cluster, kit.OfCluster(err)
	}
	if err != nil {
		return err
	}
	// The loop already holds back renders: one hold is enough.
	c.watchers = observe.NewGroup(c.bus, &k8swatch.GroupOptions{Debounce: -1, OnChange: c.changed, Logger: c.log})
	add := func(resource schema.GroupVersionResource, opts k8swatch.Options) *k8swatch.Watcher {
		opts.Logger = c.log
		w, e := k8swatch.New(c.source, resource, &opts)
		if e == nil {
			e = c.watchers.Add(w)
		}
		err = errors.Join(err, e)
		return w
	}
	each := func(resource schema.GroupVersionResource, opts k8swatch.Options) watched {
		return c.watchEach(func(namespace string) *k8swatch.Watcher {
			opts.Namespace = namespace
			return add(resource, opts)
		})
	}
	c.ingresses = each(networkingv1.SchemeGroupVersion.WithResource("ingresses"), k8swatch.Options{IgnoreFields: []string{"status"}})
	c.classes = add(networkingv1.SchemeGroupVersion.WithResource("ingressclasses"), k8swatch.Options{})
	c.services = each(corev1.SchemeGroupVersion.WithResource("services"), k8swatch.Options{IgnoreFields: []string{"status"}})
	c.slices = each(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), k8swatch.Options{
		IndexBy:      []string{"metadata.namespace", "metadata.labels['kubernetes.io/service-name']"},
		IgnoreFields: []string{"metadata.ownerReferences", "endpoints[*].targetRef", "endpoints[*].nodeName", "endpoints[*].zone", "endpoints[*].hints"}}) // no template uses them
	c.secrets = each(corev1.SchemeGroupVersion.WithResource("secrets"), k8swatch.Options{FieldSelector: "type=kubernetes.io/tls"})
	if c.cfg.opaqueSecrets {
		c.opaque = each(corev1.SchemeGroupVersion.WithResource("secrets"), k8swatch.Options{FieldSelector: "type=Opaque"})
	}
	if namespace, name, ok := strings.Cut(c.cfg.tcp, "/"); ok {
		c.configMaps = add(corev1.SchemeGroupVersion.WithResource("configmaps"), k8swatch.Options{Namespace: namespace, FieldSelector: "metadata.name=" + name})
	}
	return err
}

// newModel makes the model of a process that knows the configuration that is deployed; nil:
// none. Its first render reads all resources.
func (c *controller) newModel(previous *dataplane.Config) {
	g := derive.New()
	feed := k8swatch.NewFeed(g, c.watchers)
	secrets := append(c.secrets.all(), c.opaque.all()...)
	c.model = ingress.NewModel(g, ingress.Inputs{
		Ingresses: k8swatch.Input[*networkingv1.Ingress](feed, "Ingress", c.ingresses.all()...),
		Classes:   k8swatch.Input[*networkingv1.IngressClass](feed, "IngressClass", c.classes),
		Services:  k8swatch.Input[*corev1.Service](feed, "Service", c.services.all()...),
		Slices:    k8swatch.Input[*discoveryv1.EndpointSlice](feed, "EndpointSlice", c.slices.all()...),
		Secrets:   k8swatch.Input[*corev1.Secret](feed, "Secret", secrets...),
		Out:       feed.Left(),
		Operator:  derive.NewInput[struct{}, *ingress.Operator](g, "operator"),
		Addresses: derive.NewInput[struct{}, *endpoints.Addresses](g, "addresses"),
	}, ingress.Options{
		Limits: c.cfg.limits, Shared: c.cfg.sharedHosts, SpareServers: c.cfg.spareSlots, ExpiryWarning: c.cfg.expiryWarning, AnyTime: c.fixtures != nil,
	}, previous)
	c.feed.Store(feed)
}

// input makes the routes of all watched resources at one instant, for one render.
func (c *controller) input(ctx context.Context) (*render.Input, error) {
	if previous := c.previous.Swap(nil); previous != nil {
		c.newModel(*previous)
	}
	model := c.model
	all := c.feed.Load().Fill(ctx)
	operator, addresses := c.serving(all)
	model.Operator.Set(struct{}{}, operator)
	model.Addresses.Set(struct{}{}, addresses)
	routes, err := model.Routes(ctx)
	if err != nil {
		return nil, err
	}
	c.routes.Store(routes)
	in := routes.Input(c.settings)
	in.Accepted = func() {
		if err := model.Accept(routes); err != nil {
			c.log.Error("the next render does not know what is deployed", "error", err)
		}
	}
	in.Files = append(in.Files[:len(in.Files):len(in.Files)], c.pages...)
	maps.DeleteFunc(in.Each, func(entry string, _ render.Each) bool { return !c.each[entry] })
	in.Resources = map[string]int{"ingresses": c.ingresses.count(all), "services": c.services.count(all), "endpointslices": c.slices.count(all), "secrets": c.secrets.count(all) + c.opaque.count(all)}
	return in, nil
}

// changed receives the changes of watched resources. Its calls do not overlap.
func (c *controller) changed(_ context.Context, changes k8swatch.Changes) error {
	if feed := c.feed.Load(); feed != nil {
		feed.Changed(changes)
	}
	c.loop.Trigger(changes.String())
	return nil
}

// newDiscovery follows the instances behind Dataplane APIs and their credentials.
func (c *controller) newDiscovery() (err error) {
	if !c.cfg.remote() {
		return nil
	}
	c.discovery, err = discover.NewFollower(discover.FollowerOptions{Source: c.source, SetTargets: c.loop.SetTargets, OnFound: c.listenAt, Bus: c.bus, Logger: c.log})
	if err != nil {
		return err
	}
	return c.discovery.Set(discover.Wanted{
		URLs: c.cfg.endpoints, Selector: c.cfg.pods, Pods: discover.PodOptions{Namespace: c.cfg.podNamespace, Port: c.cfg.podPort, Scheme: c.cfg.podScheme},
		Secret: c.cfg.secret, Credentials: c.cfg.credentials, TLS: discover.TLS{CAFile: c.cfg.endpointCA, ServerName: c.cfg.endpointName},
		Client: &dataplane.ClientOptions{Layout: c.layout},
	})
}

// syncTimeout is how long -once waits for a cluster that does not answer.
const syncTimeout = 10 * time.Second

// await waits until all watchers are synced.
func (c *controller) await(ctx context.Context) error {
	for {
		wait, cancel := context.WithTimeout(ctx, syncTimeout)
		_, err := c.watchers.WaitForSync(wait)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || c.cfg.once || c.cfg.migrate {
			return err
		}
		select { // the watchers go on trying, and a check of observe reports it
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// awaitInstances waits until the instances are known. If there are none, that is an
// error only with -once; otherwise they may come later.
func (c *controller) awaitInstances(ctx context.Context) error {
	if c.discovery == nil {
		return nil
	}
	if !c.cfg.once {
		_ = c.discovery.Wait(ctx) // events and checks report it
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	return c.discovery.Wait(ctx)
}

// namespaces is a flag for the watched namespaces; none means all. It may be repeated,
// and takes several with commas between.
type namespaces []string

func (n *namespaces) String() string { return strings.Join(*n, ",") }

// Get implements flag.Getter.
func (n *namespaces) Get() any { return n.String() }

// Set implements flag.Value. checkNamespaces refuses bad names.
func (n *namespaces) Set(text string) error {
	*n = append(*n, strings.Split(text, ",")...)
	slices.Sort(*n)
	*n = slices.Compact(*n)
	return nil
}

// has reports whether the objects of a namespace are watched.
func (n namespaces) has(name string) bool { return len(n) == 0 || slices.Contains(n, name) }

// checkNamespaces checks -namespace, and that other flags name objects in these namespaces.
func (c *config) checkNamespaces() {
	for _, name := range c.namespaces {
		if len(c.namespaces) > 1 && !isLabel(name) {
			c.Check("namespace", false, "names of namespaces, with commas between")
			return
		}
	}
	if len(c.namespaces) < 2 {
		c.CheckNamespaces("namespace")
	}
	for flag, object := range map[string]string{"default-certificate": c.certificate, "default-backend": c.backend.Namespace} {
		namespace, _, _ := strings.Cut(object, "/")
		c.Check(flag, object == "" || c.namespaces.has(namespace), "an object of a namespace that -namespace names")
	}
}

// watched are the watchers of one kind, by namespace; "" stands for all namespaces.
type watched map[string]*k8swatch.Watcher

// watchEach makes a watcher for each namespace.
func (c *controller) watchEach(add func(namespace string) *k8swatch.Watcher) watched {
	if len(c.cfg.namespaces) == 0 {
		return watched{"": add("")}
	}
	all := watched{}
	for _, namespace := range c.cfg.namespaces {
		all[namespace] = add(namespace)
	}
	return all
}

// all returns the watchers, by namespace.
func (w watched) all() (all []*k8swatch.Watcher) {
	for _, namespace := range slices.Sorted(maps.Keys(w)) {
		all = append(all, w[namespace])
	}
	return all
}

// count counts the objects of a snapshot.
func (w watched) count(s *k8swatch.GroupSnapshot) (n int) {
	for _, watcher := range w {
		n += s.Of(watcher).Len()
	}
	return n
}

// objects are the objects of one kind at one instant, by namespace as in watched.
type objects[T k8swatch.Object] map[string]k8swatch.Reader[T]

func read[T k8swatch.Object](ctx context.Context, all *k8swatch.GroupSnapshot, of watched) objects[T] {
	readers := make(objects[T], len(of))
	for namespace, w := range of {
		readers[namespace] = k8swatch.Read[T](ctx, all.Of(w))
	}
	return readers
}

// in returns the reader for a namespace: its own, or the one for all namespaces.
func (o objects[T]) in(namespace string) (of k8swatch.Reader[T], ok bool) {
	if of, ok = o[namespace]; !ok {
		of, ok = o[""]
	}
	return of, ok
}

// single returns an object by its keys. The first key is the namespace.
func (o objects[T]) single(keys ...string) (one T) {
	if of, ok := o.in(keys[0]); ok {
		one = of.GetSingle(keys...)
	}
	return one
}

// list returns all objects, by namespace.
func (o objects[T]) list() (all []T) {
	for _, namespace := range slices.Sorted(maps.Keys(o)) {
		all = append(all, o[namespace].List()...)
	}
	return all
}
