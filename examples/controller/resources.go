package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// newWatchers makes the watchers of all resources.
func (c *controller) newWatchers() (err error) {
	// The loop already holds back renders: one hold is enough.
	c.watchers = observe.NewGroup(c.bus, &k8swatch.GroupOptions{Debounce: -1, OnChange: c.changed, Logger: c.log})
	c.view = k8swatch.NewView(c.watchers.Snapshot)
	add := func(resource schema.GroupVersionResource, opts k8swatch.Options) *k8swatch.Watcher {
		opts.Logger = c.log
		w, e := k8swatch.New(c.source.Source, resource, &opts)
		if e == nil {
			e = c.watchers.Add(w)
		}
		err = errors.Join(err, e)
		return w
	}
	each := func(resource schema.GroupVersionResource, opts k8swatch.Options) watched {
		return c.cfg.namespaces.Watch(func(namespace string) *k8swatch.Watcher {
			opts.Namespace = namespace
			return add(resource, opts)
		})
	}
	c.classes = add(networkingv1.SchemeGroupVersion.WithResource("ingressclasses"), k8swatch.Options{})
	bound := c.cfg.limits.InForce()
	objectBytes, secretBytes := int64(bound["object-bytes-per-namespace"]), int64(bound["secret-bytes-per-namespace"])
	c.services = each(corev1.SchemeGroupVersion.WithResource("services"), k8swatch.Options{IgnoreFields: []string{"status"}, BytesPerNamespace: objectBytes})
	c.slices = each(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), k8swatch.Options{
		IndexBy:           []string{"metadata.namespace", "metadata.labels['kubernetes.io/service-name']"},
		BytesPerNamespace: objectBytes,
		IgnoreFields: []string{
			"metadata.ownerReferences",
			"endpoints[*].targetRef",
			"endpoints[*].nodeName",
			"endpoints[*].zone",
			"endpoints[*].hints",
		}}) // no template uses them
	secrets := func(ofType corev1.SecretType, bytes int64, always ...types.NamespacedName) watched {
		return each(corev1.SchemeGroupVersion.WithResource("secrets"), k8swatch.Options{
			FieldSelector: "type=" + string(ofType),
			OnlyNamed:     &k8swatch.OnlyNamed{Always: always, BytesPerNamespace: bytes},
		})
	}
	c.secrets = secrets(corev1.SecretTypeTLS, secretBytes, objectName(c.cfg.certificate)...)
	if c.cfg.opaqueSecrets {
		c.opaque = secrets(corev1.SecretTypeOpaque, secretBytes/4)
	}
	c.ingresses = each(networkingv1.SchemeGroupVersion.WithResource("ingresses"), k8swatch.Options{
		IgnoreFields: []string{"status"}, BytesPerNamespace: objectBytes, Names: c.nameSecrets,
	})
	if namespace, name, ok := strings.Cut(c.cfg.tcp, "/"); ok {
		c.configMaps = add(corev1.SchemeGroupVersion.WithResource("configmaps"), k8swatch.Options{Namespace: namespace, FieldSelector: "metadata.name=" + name})
	}
	return err
}

// nameSecrets names the Secrets of an Ingress. The watchers of Secrets hold no others.
func (c *controller) nameSecrets(o k8swatch.Object, name func(*k8swatch.Watcher, types.NamespacedName)) {
	tls, annotated := ingress.SecretsOf(o.(*networkingv1.Ingress))
	for _, w := range c.secrets {
		for _, of := range slices.Concat(tls, annotated) {
			name(w, of)
		}
	}
	for _, w := range c.opaque {
		for _, of := range annotated {
			name(w, of)
		}
	}
}

// objectName reads namespace/name; none: "".
func objectName(text string) (all []types.NamespacedName) {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return all
}

// holdDeployed makes sure that the model finds the Secrets of what is deployed, even if no Ingress
// names them now.
func (c *controller) holdDeployed(ctx context.Context, previous *dataplane.Config) {
	bounded, cancel := context.WithTimeout(ctx, kit.SyncTimeout)
	defer cancel()
	names := ingress.Deployed(previous)
	for _, w := range c.secrets {
		if err := w.Fetch(bounded, names...); err != nil && ctx.Err() == nil {
			c.log.Warn("a Secret of what is deployed could not be read: if an Ingress names another one that is not good, its hosts have no certificate", "error", err)
		}
	}
	c.view.Reread()
}

// newModel makes the model of a process that knows the configuration that is deployed; nil:
// none. Its first render reads all resources.
func (c *controller) newModel(previous *dataplane.Config) {
	g := derive.New()
	feed := k8swatch.NewFeed(g, c.view)
	c.model = ingress.NewModel(g, ingress.Inputs{
		Ingresses: k8swatch.Input[*networkingv1.Ingress](feed, "Ingress", c.ingresses...),
		Classes:   k8swatch.Input[*networkingv1.IngressClass](feed, "IngressClass", c.classes),
		Services:  k8swatch.Input[*corev1.Service](feed, "Service", c.services...),
		Slices:    k8swatch.Input[*discoveryv1.EndpointSlice](feed, "EndpointSlice", c.slices...),
		Secrets:   k8swatch.Input[*corev1.Secret](feed, "Secret", slices.Concat(c.secrets, c.opaque)...),
		Out:       feed.Left(),
		Operator:  derive.NewInput[struct{}, *ingress.Operator](g, "operator"),
		Addresses: derive.NewInput[struct{}, *endpoints.Addresses](g, "addresses"),
	}, ingress.Options{
		Limits: c.cfg.limits, Shared: c.cfg.sharedHosts, HostGrace: c.cfg.hostGrace, SpareServers: c.cfg.spareSlots, ExpiryWarning: c.cfg.expiryWarning, AnyTime: c.ofCase,
		NoPassthrough: !c.cfg.passthrough, Annotations: annotation.Reader{LongestTimeout: c.cfg.longestTimeout},
	}, previous)
	c.feed = feed
}

// input makes the routes of all watched resources at one instant, for one render.
func (c *controller) input(ctx context.Context) (*render.Input, error) {
	if previous := c.previous.Swap(nil); previous != nil {
		c.newModel(*previous)
	}
	model := c.model
	all := c.feed.Fill()
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
	in.Resources = map[string]int{
		"ingresses":      c.ingresses.count(all),
		"services":       c.services.count(all),
		"endpointslices": c.slices.count(all),
		"secrets":        c.secrets.count(all) + c.opaque.count(all),
	}
	return in, nil
}

// changed receives the changes of watched resources. Its calls do not overlap.
func (c *controller) changed(_ context.Context, changes k8swatch.Changes) error {
	c.view.Changed(changes)
	c.loop.Trigger(changes.String())
	return nil
}

// beginTerm runs before this process deploys as leader. It reads all resources again, and
// the owners of hosts from the deployed configuration. Two processes may see the same
// changes in different batches. Without this, routes could become older again for a while,
// or a host could change hands with the leadership.
func (c *controller) beginTerm(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, kit.SyncTimeout)
	if err := c.watchers.Refresh(bounded); err != nil && ctx.Err() == nil {
		c.log.Warn("the new leader could not read all resources again: some objects may be older than what is deployed", "error", err)
	}
	cancel()
	c.view.Reread()
	bounded, cancel = context.WithTimeout(ctx, kit.SyncTimeout)
	defer cancel()
	if previous, _ := c.targets.Current(bounded); ingress.HasHosts(previous) { // otherwise the instance is new
		c.holdDeployed(ctx, previous)
		c.previous.Store(&previous)
	}
}

// watched are the watchers of one kind, one for each namespace.
type watched []*k8swatch.Watcher

// count counts the objects of a snapshot.
func (w watched) count(s *k8swatch.GroupSnapshot) (n int) {
	for _, watcher := range w {
		n += s.Of(watcher).Len()
	}
	return n
}

// objects are the objects of one kind at one instant, by namespace.
type objects[T k8swatch.Object] []k8swatch.Reader[T]

func read[T k8swatch.Object](all *k8swatch.GroupSnapshot, of watched) (o objects[T]) {
	for _, w := range of {
		o = append(o, k8swatch.Read[T](all.Of(w)))
	}
	return o
}

// list returns the objects whose keys begin with these.
func (o objects[T]) list(keys ...string) (all []T) {
	for _, of := range o {
		all = append(all, of.Get(keys...)...)
	}
	return all
}

func (o objects[T]) single(keys ...string) (one T) {
	if found := o.list(keys...); len(found) > 0 {
		one = found[0]
	}
	return one
}
