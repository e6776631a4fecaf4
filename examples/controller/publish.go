package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"golang.org/x/sync/errgroup"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/status"
)

// publishFlags say where clients reach HAProxy.
type publishFlags struct {
	service   string
	addresses []status.Address
}

func (p *publishFlags) declare(fs *kit.Flags) {
	fs.StringVar(
		&p.service,
		"publish-service",
		"",
		"`namespace/name` of the Service before HAProxy: its addresses become the status of the Ingresses that are served; with -leader-elect the leader writes it",
	)
	fs.Func("publish-address", "`address or host name` for that status, in place of those of a Service; may be repeated", func(s string) error {
		one, err := status.ParseAddress(s)
		p.addresses = append(p.addresses, one)
		return err
	})
}

func (p *publishFlags) given() bool { return p.service != "" || len(p.addresses) > 0 }

func (p *publishFlags) check(fs *kit.Flags, folder bool) {
	fs.Check("publish-service", kit.IsObject(p.service), "namespace/name")
	if p.service != "" && len(p.addresses) > 0 {
		fs.Wrong(errors.New("-publish-service and -publish-address exclude each other"))
	}
	if p.given() && folder {
		fs.Wrong(errors.New("-publish-service and -publish-address need a cluster, not -manifests"))
	}
}

// publisher writes the addresses of HAProxy into status.loadBalancer of the Ingresses that it
// serves. An Ingress keeps them as long as it has one of our classes, so a bad edit does not
// cost it its DNS record.
type publisher struct {
	*status.Writer
	addresses []status.Address
	service   *status.Service // has the addresses; nil: these are given
}

// newPublisher makes the writer of statuses; nil: there is nothing to write.
func (c *controller) newPublisher() (p *publisher, err error) {
	if !c.cfg.publish.given() || c.source.Cluster == nil || c.cfg.once {
		return nil, nil
	}
	client, err := dynamic.NewForConfig(c.source.Cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	p = &publisher{addresses: c.cfg.publish.addresses}
	opts := status.Options{Client: client, Namespaces: c.cfg.namespaces, Term: func() uint64 { return c.loop.Term() }}
	if p.Writer, err = status.New(opts); err != nil {
		return nil, err
	}
	if namespace, name, ok := strings.Cut(c.cfg.publish.service, "/"); ok {
		p.service, err = status.NewService(c.source.Cluster, namespace, name, c.log, p.Refresh)
	}
	return p, err
}

// Run writes, and follows the Service, until ctx ends.
func (p *publisher) Run(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return p.Writer.Run(ctx) })
	if p.service != nil {
		all.Go(func() error { return p.service.Run(ctx) })
	}
	return all.Wait()
}

// Check returns an error if some statuses are not written.
func (p *publisher) Check() (err error) {
	if p.service != nil {
		if err = p.service.Check(); err != nil {
			err = fmt.Errorf("publish-service: %w", err)
		}
	}
	return errors.Join(err, p.Writer.Check())
}

// status returns the status of an Ingress that is served; nil: the addresses are not known.
func (p *publisher) status() any {
	addresses := p.addresses
	if p.service != nil {
		addresses = p.service.Addresses()
	}
	if addresses == nil {
		return nil
	}
	return map[string]any{"loadBalancer": map[string]any{"ingress": addresses}}
}

// statuses returns the statuses of the Ingresses that have one of our classes now. One that
// went to another controller is that controller's at once, even if HAProxy still serves it.
func (c *controller) statuses(routes *ingress.Routes) iter.Seq[status.Item] {
	return func(yield func(status.Item) bool) {
		served := map[types.UID]bool{}
		for ing := range routes.Served() {
			served[ing.UID] = true
		}
		all := c.watchers.Snapshot()
		ours := ingress.Ours(k8swatch.Read[*networkingv1.IngressClass](all.Of(c.classes)).List())
		resource, is := networkingv1.SchemeGroupVersion.WithResource("ingresses"), c.status.status()
		for _, ing := range read[*networkingv1.Ingress](all, c.ingresses).list() {
			item := status.Item{Resource: resource, Namespace: ing.Namespace, Name: ing.Name, UID: ing.UID, Status: is, Unserved: !served[ing.UID]}
			if ours(ing) && !yield(item) {
				return
			}
		}
	}
}
