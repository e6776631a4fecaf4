package main

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/command"
)

// publishFlags say where clients reach HAProxy.
type publishFlags struct {
	service   string
	addresses []string
}

func (p *publishFlags) declare(fs *command.Flags) {
	fs.StringVar(&p.service, "publish-service", "", "`namespace/name` of the Service before HAProxy: its addresses become the status of the Ingresses that are served; with -leader-elect the leader writes it")
	fs.Func("publish-address", "`address or host name` for that status, in place of those of a Service; may be repeated", func(s string) error {
		if _, err := netip.ParseAddr(s); err != nil && len(validation.IsDNS1123Subdomain(s)) > 0 {
			return errors.New("want an address such as 192.0.2.1 or 2001:db8::1, or a host name in lower case")
		}
		p.addresses = append(p.addresses, s)
		return nil
	})
}

func (p *publishFlags) given() bool { return p.service != "" || len(p.addresses) > 0 }

func (p *publishFlags) check(fs *command.Flags, folder bool) {
	fs.Check("publish-service", isObject(p.service), "namespace/name")
	if p.service != "" && len(p.addresses) > 0 {
		fs.Wrong(errors.New("-publish-service and -publish-address exclude each other"))
	}
	if p.given() && folder {
		fs.Wrong(errors.New("-publish-service and -publish-address need a cluster, not -manifests"))
	}
}

// fixed returns the addresses that flags give; nil: none.
func (p *publishFlags) fixed() (all addresses) {
	for _, a := range p.addresses {
		one := networkingv1.IngressLoadBalancerIngress{IP: a}
		if _, err := netip.ParseAddr(a); err != nil {
			one = networkingv1.IngressLoadBalancerIngress{Hostname: a}
		}
		all = append(all, one)
	}
	return all
}

// follow prepares to follow a Service, namespace/name.
func (s *status) follow(cluster k8swatch.Source, service string) (err error) {
	namespace, name, _ := strings.Cut(service, "/")
	s.service, err = k8swatch.NewSingle(cluster, corev1.SchemeGroupVersion.WithResource("services"), namespace, name,
		&k8swatch.SingleOptions[*corev1.Service]{IncludeStatus: true, Logger: s.log,
			OnChange: func(_ context.Context, now k8swatch.SingleChange[*corev1.Service]) error {
				s.found(now.Object)
				return nil
			}})
	return err
}

// found takes the addresses of the Service; nil: it is not there.
func (s *status) found(svc *corev1.Service) {
	now := addressesOf(svc)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case svc == nil:
		s.unknown = errors.New("publish-service: the Service is not found, so that no status changes: create it, or give the right name")
	case len(now) == 0:
		s.unknown = errors.New("publish-service: the Service has no address yet, so that no status changes")
	default:
		s.publish, s.unknown = now, nil
		s.wakeUp()
	}
}

// addressesOf are those by which clients reach a Service: from outside of the cluster, or
// else from inside. A load balancer without any will have some.
func addressesOf(svc *corev1.Service) (all addresses) {
	if svc == nil {
		return nil
	}
	for _, at := range svc.Status.LoadBalancer.Ingress {
		all = append(all, networkingv1.IngressLoadBalancerIngress{IP: at.IP, Hostname: at.Hostname})
	}
	ips := svc.Spec.ExternalIPs
	if len(all)+len(ips) == 0 && svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		ips = slices.DeleteFunc(slices.Clone(svc.Spec.ClusterIPs), func(ip string) bool { return ip == corev1.ClusterIPNone })
	}
	for _, ip := range ips {
		all = append(all, networkingv1.IngressLoadBalancerIngress{IP: ip})
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		all = append(all, networkingv1.IngressLoadBalancerIngress{Hostname: svc.Spec.ExternalName})
	}
	slices.SortFunc(all, func(a, b networkingv1.IngressLoadBalancerIngress) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Hostname, b.Hostname))
	})
	return slices.CompactFunc(all, sameAddress)
}

func sameAddress(a, b networkingv1.IngressLoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname
}
