package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// newWatchers says what is watched, and where.
func (c *controller) newWatchers() (err error) {
	var source k8swatch.Source
	if c.fixtures != nil {
		source = c.fixtures
	} else if c.cfg.manifests != "" {
		opts := &k8swatch.FolderOptions{}
		if c.cfg.local != "" && !c.cfg.once {
			opts.LastGood = filepath.Join(c.cfg.local, "manifests")
		}
		folder, e := k8swatch.NewFolder(c.cfg.manifests, opts)
		c.folder, source, err = &command.Manifests{Folder: folder}, folder, command.OfFlag("manifests", e)
	} else {
		c.cluster, err = k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: c.cfg.kubeconfig})
		source = c.cluster
	}
	if err != nil {
		return err
	}
	// The loop holds back renders already: one hold is enough.
	c.watchers = observe.NewGroup(c.bus, &k8swatch.GroupOptions{Debounce: -1, OnChange: c.changed, Logger: c.log})
	c.instances = k8swatch.NewGroup(&k8swatch.GroupOptions{OnChange: c.discover, Logger: c.log})
	add := func(group *k8swatch.Group, resource schema.GroupVersionResource, opts k8swatch.Options) *k8swatch.Watcher {
		opts.Logger = c.log
		w, e := k8swatch.New(source, resource, &opts)
		if e == nil {
			e = group.Add(w)
		}
		err = errors.Join(err, e)
		return w
	}
	ns := c.cfg.namespace
	c.ingresses = add(c.watchers, networkingv1.SchemeGroupVersion.WithResource("ingresses"), k8swatch.Options{Namespace: ns, IgnoreFields: []string{"status"}})
	c.classes = add(c.watchers, networkingv1.SchemeGroupVersion.WithResource("ingressclasses"), k8swatch.Options{})
	c.services = add(c.watchers, corev1.SchemeGroupVersion.WithResource("services"), k8swatch.Options{Namespace: ns, IgnoreFields: []string{"status"}})
	c.slices = add(c.watchers, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), k8swatch.Options{
		Namespace: ns, IndexBy: []string{"metadata.namespace", "metadata.labels['kubernetes.io/service-name']"}})
	c.secrets = add(c.watchers, corev1.SchemeGroupVersion.WithResource("secrets"), k8swatch.Options{Namespace: ns, FieldSelector: "type=kubernetes.io/tls"})
	if c.cfg.pods != "" {
		c.pods = add(c.instances, corev1.SchemeGroupVersion.WithResource("pods"), k8swatch.Options{Namespace: c.cfg.podNamespace, LabelSelector: c.cfg.pods})
	}
	if namespace, name, ok := strings.Cut(c.cfg.secret, "/"); ok {
		c.credentials = add(c.instances, corev1.SchemeGroupVersion.WithResource("secrets"), k8swatch.Options{Namespace: namespace, FieldSelector: "metadata.name=" + name})
	}
	return err
}

// input reads all watched resources at one instant, for one render.
func (c *controller) input(ctx context.Context) (*render.Input, error) {
	all := c.watchers.Snapshot()
	services := k8swatch.Read[*corev1.Service](all.Of(c.services))
	secrets := k8swatch.Read[*corev1.Secret](all.Of(c.secrets))
	slices := k8swatch.Read[*discoveryv1.EndpointSlice](all.Of(c.slices))
	ingresses := k8swatch.Read[*networkingv1.Ingress](all.Of(c.ingresses))
	routes := ingress.Build(&ingress.Cluster{
		Ingresses: ingresses.List(),
		Classes:   k8swatch.Read[*networkingv1.IngressClass](all.Of(c.classes)).List(),
		Service:   func(ns, name string) *corev1.Service { return services.GetSingle(ns, name) },
		Services:  func(ns string) []*corev1.Service { return services.Get(ns) },
		Secret:    func(ns, name string) *corev1.Secret { return secrets.GetSingle(ns, name) },
		Slices:    func(ns, service string) []*discoveryv1.EndpointSlice { return slices.Get(ns, service) },
		Excluded:  reconcile.Excluding(ctx),
		Addresses: c.endpointRules(),
		Hosts:     &c.hosts,
		Limits:    c.cfg.limits,

		ExpiryWarning: c.cfg.expiryWarning,
		AnyTime:       c.fixtures != nil,
	}, &c.slots)
	routes.Keep(c.routes.Load())
	c.routes.Store(routes)
	in := routes.Input(c.settings)
	if !c.eachBackend { // templates of the user's own may do it another way
		in.Each = nil
	}
	in.Resources = map[string]int{"ingresses": ingresses.Len(), "services": services.Len(), "endpointslices": slices.Len(), "secrets": secrets.Len()}
	return in, nil
}

// changed is called, never twice at once, when watched resources changed.
func (c *controller) changed(_ context.Context, changes k8swatch.Changes) error {
	c.loop.Trigger(changes.String())
	return nil
}

// discover tells the loop which Dataplane APIs there are now, with the
// credentials of now.
func (c *controller) discover(ctx context.Context, _ k8swatch.Changes) error {
	if !c.cfg.remote() {
		return nil
	}
	c.finding.Lock() // what was read last is what is told last
	defer c.finding.Unlock()
	credentials, err := discover.CredentialsFromEnv(os.Getenv)
	if c.credentials != nil {
		namespace, name, _ := strings.Cut(c.cfg.secret, "/")
		secret := k8swatch.Read[*corev1.Secret](c.credentials.Snapshot()).GetSingle(namespace, name)
		if secret == nil {
			return fmt.Errorf("credentials: Secret %s does not exist", c.cfg.secret)
		}
		credentials, err = discover.ParseCredentials(secret.Data)
	}
	if err != nil {
		return err
	}
	var endpoints []dataplane.Endpoint
	for _, url := range c.cfg.endpoints {
		endpoints = append(endpoints, dataplane.Endpoint{URL: url, Username: credentials.DataplaneUsername, Password: credentials.DataplanePassword})
	}
	var pods []*corev1.Pod
	if c.pods != nil {
		pods = k8swatch.Read[*corev1.Pod](c.pods.Snapshot()).List()
		endpoints, err = discover.Pods(pods, credentials, discover.PodOptions{Namespace: c.cfg.podNamespace, Port: c.cfg.podPort, Scheme: c.cfg.podScheme})
	}
	for i := range endpoints {
		endpoints[i].CAFile, endpoints[i].TLS = c.cfg.endpointCA, c.endpointTLS
	}
	c.listenAt(ctx, endpoints, pods)
	targets, unusable := c.clients.Targets(endpoints)
	return errors.Join(err, unusable, c.loop.SetTargets(targets...)) // one that cannot be used stops no other
}

// syncTimeout is when -once gives up a cluster that cannot be reached.
const syncTimeout = 10 * time.Second

// await waits until all that is watched is known.
func (c *controller) await(ctx context.Context) error {
	for {
		wait, cancel := context.WithTimeout(ctx, syncTimeout)
		_, err := c.watchers.WaitForSync(wait)
		if err == nil {
			_, err = c.instances.WaitForSync(wait)
		}
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || c.cfg.once {
			return err
		}
		select { // the watchers go on trying behind, and a check of observe tells of them
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}
