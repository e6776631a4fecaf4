package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/command"
	"github.com/hapticsdk/haptic/reconcile/discover"
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
		c.folder, c.source, err = &command.Manifests{Folder: folder}, folder, command.OfFlag("manifests", e)
	} else {
		c.cluster, err = k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: c.cfg.kubeconfig})
		c.source, err = c.cluster, command.OfCluster(err)
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

// following collects the changes since the last render.
type following struct {
	mu      sync.Mutex
	pending k8swatch.Changes
	last    *k8swatch.GroupSnapshot // of the last render
}

// forget makes the next render read the current state: pending changes may be older.
func (f *following) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending, f.last = k8swatch.Changes{}, nil
}

// follow returns the resources for a render, and the changes since the last one. nil:
// it does not know the changes.
func (c *controller) follow() (now *k8swatch.GroupSnapshot, changes *ingress.Changes) {
	f := &c.following
	f.mu.Lock()
	defer f.mu.Unlock()
	pending, last := f.pending, f.last
	f.pending = k8swatch.Changes{}
	switch now = c.watchers.Snapshot(); {
	case last == nil:
	case now.Revision() == last.Revision():
		changes = &ingress.Changes{}
	case pending.To > last.Revision():
		if now = pending.Snapshot; pending.More == 0 && pending.From <= last.Revision() {
			changes = c.between(last, now, pending.Objects)
		}
	}
	f.last = now
	return now, changes
}

// between reads the changes from one snapshot to another; nil if other resources
// changed than Ingresses, Services, EndpointSlices and Secrets.
func (c *controller) between(last, now *k8swatch.GroupSnapshot, objects []k8swatch.Change) *ingress.Changes {
	changes := &ingress.Changes{}
	for _, o := range objects {
		switch {
		case c.ingresses.has(o.Watcher):
			add(&changes.Ingresses, last, now, o)
		case c.services.has(o.Watcher):
			add(&changes.Services, last, now, o)
		case c.slices.has(o.Watcher):
			add(&changes.Slices, last, now, o)
		case c.secrets.has(o.Watcher), c.opaque.has(o.Watcher):
			add(&changes.Secrets, last, now, o)
		default:
			return nil
		}
	}
	return changes
}

// add reads an object in both snapshots.
func add[T any](list *[]ingress.Change[T], last, now *k8swatch.GroupSnapshot, o k8swatch.Change) {
	was, _ := any(last.Of(o.Watcher).ByName(o.Namespace, o.Name)).(*T)
	is, _ := any(now.Of(o.Watcher).ByName(o.Namespace, o.Name)).(*T)
	if was != is {
		*list = append(*list, ingress.Change[T]{Was: was, Is: is})
	}
}

// input reads all watched resources at one instant, for one render.
func (c *controller) input(ctx context.Context) (*render.Input, error) {
	all, changes := c.follow()
	whole := context.Background() // with quarantined objects: Build asks about them, and says what clients get meanwhile
	services, secrets, opaque := read[*corev1.Service](whole, all, c.services), read[*corev1.Secret](whole, all, c.secrets), read[*corev1.Secret](whole, all, c.opaque)
	endpoints, ingresses := read[*discoveryv1.EndpointSlice](whole, all, c.slices), read[*networkingv1.Ingress](whole, all, c.ingresses)
	operator, addresses := c.serving(all)
	routes := c.builder.Build(&ingress.Cluster{
		Ingresses: ingresses.list,
		Classes:   k8swatch.Read[*networkingv1.IngressClass](whole, all.Of(c.classes)).List(),
		Service:   func(ns, name string) *corev1.Service { return services.single(ns, name) },
		Services:  func(ns string) []*corev1.Service { return services.get(ns) },
		Secret:    func(ns, name string) *corev1.Secret { return cmp.Or(secrets.single(ns, name), opaque.single(ns, name)) },
		Slices:    func(ns, service string) []*discoveryv1.EndpointSlice { return endpoints.get(ns, service) },
		Excluded:  reconcile.Excluding(ctx),
		Addresses: addresses,
		Operator:  operator,
		Hosts:     &c.hosts,
		Limits:    c.cfg.limits,

		ExpiryWarning: c.cfg.expiryWarning,
		AnyTime:       c.fixtures != nil,
	}, changes)
	c.routes.Store(routes)
	in := routes.Input(c.settings)
	in.Files = append(in.Files[:len(in.Files):len(in.Files)], c.pages...)
	maps.DeleteFunc(in.Each, func(entry string, _ render.Each) bool { return !c.each[entry] })
	in.Resources = map[string]int{"ingresses": ingresses.count(), "services": services.count(), "endpointslices": endpoints.count(), "secrets": secrets.count() + opaque.count()}
	return in, nil
}

// changed receives the changes of watched resources. Its calls do not overlap.
func (c *controller) changed(_ context.Context, changes k8swatch.Changes) error {
	c.following.mu.Lock()
	c.following.pending = c.following.pending.And(changes)
	c.following.mu.Unlock()
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

func (w watched) has(one *k8swatch.Watcher) bool {
	for _, watcher := range w {
		if watcher == one {
			return true
		}
	}
	return false
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

func (o objects[T]) get(keys ...string) []T {
	if of, ok := o.in(keys[0]); ok {
		return of.Get(keys...)
	}
	return nil
}

func (o objects[T]) count() (n int) {
	for _, of := range o {
		n += of.Len()
	}
	return n
}

// list returns all objects, by namespace.
func (o objects[T]) list() (all []T) {
	for _, namespace := range slices.Sorted(maps.Keys(o)) {
		all = append(all, o[namespace].List()...)
	}
	return all
}
