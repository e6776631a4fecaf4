package main

import (
	"context"
	"errors"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/examples/controller/status"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// publishFlags say where clients reach HAProxy.
type publishFlags struct {
	service   string
	addresses status.Addresses
}

func (p *publishFlags) declare(fs *kit.Flags) {
	fs.StringVar(&p.service, "publish-service", "", "`namespace/name` of the Service before HAProxy: its addresses become the status of the Ingresses that are served; with -leader-elect the leader writes it")
	fs.Func("publish-address", "`address or host name` for that status, in place of those of a Service; may be repeated", func(s string) error {
		one, err := status.Parse(s)
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

// newStatus makes the writer of statuses; nil: there is nothing to write.
func (c *controller) newStatus() (*status.Writer, error) {
	if !c.cfg.publish.given() || c.source.Cluster == nil || c.cfg.once {
		return nil, nil
	}
	opts := status.Options{Client: c.source.Cluster.Clientset().NetworkingV1(), Addresses: c.cfg.publish.addresses,
		Namespaces: c.cfg.namespaces, Leads: func() uint64 { return c.loop.Term() }, Look: c.lookAtIngresses}
	w := status.New(opts)
	if namespace, name, ok := strings.Cut(c.cfg.publish.service, "/"); ok {
		return w, w.Follow(c.source.Cluster, namespace, name, c.log)
	}
	return w, nil
}

// lookAtIngresses returns a function that finds the current Ingresses.
func (c *controller) lookAtIngresses() status.Finder {
	all := c.watchers.Snapshot()
	ours := ingress.Ours(k8swatch.Read[*networkingv1.IngressClass](context.Background(), all.Of(c.classes)).List())
	ingresses := read[*networkingv1.Ingress](context.Background(), all, c.ingresses)
	return func(namespace, name string) (*networkingv1.Ingress, bool) {
		ing := ingresses.single(namespace, name)
		return ing, ing != nil && ours(ing)
	}
}
