package status

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/k8swatch"
)

// Parse reads an address or a host name.
func Parse(s string) (one networkingv1.IngressLoadBalancerIngress, err error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" && !addr.Is4In6() {
		return networkingv1.IngressLoadBalancerIngress{IP: addr.String()}, nil
	}
	if len(validation.IsDNS1123Subdomain(s)) > 0 {
		return one, errors.New("want an address such as 192.0.2.1 or 2001:db8::1, or a host name in lower case")
	}
	return networkingv1.IngressLoadBalancerIngress{Hostname: s}, nil
}

// Follow publishes the addresses of a Service, while the writer runs.
func (w *Writer) Follow(cluster k8swatch.Source, namespace, name string, log *slog.Logger) (err error) {
	w.service, err = k8swatch.NewSingle(cluster, corev1.SchemeGroupVersion.WithResource("services"), namespace, name,
		&k8swatch.SingleOptions[*corev1.Service]{IncludeStatus: true, Logger: log,
			OnChange: func(_ context.Context, now k8swatch.SingleChange[*corev1.Service]) error {
				w.found(now.Object)
				return nil
			}})
	return err
}

// found takes the addresses of the Service. svc is nil if it does not exist.
func (w *Writer) found(svc *corev1.Service) {
	now := addressesOf(svc)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case svc == nil:
		w.unknown = errors.New("publish-service: the Service is not found, so that no status changes: create it, or give the right name")
	case len(now) == 0:
		w.unknown = errors.New("publish-service: the Service has no address yet, so that no status changes")
	default:
		w.publish, w.unknown = now, nil
		w.wakeUp()
	}
}

// addressesOf returns the addresses of a Service: those outside of the cluster, or else those
// inside. A load balancer without an address will get one, so it has none for now.
func addressesOf(svc *corev1.Service) (all Addresses) {
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
	return slices.CompactFunc(all, same)
}

func same(a, b networkingv1.IngressLoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname
}
