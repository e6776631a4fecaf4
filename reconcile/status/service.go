package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/k8swatch"
)

// Address is where clients reach HAProxy: an IP address, or a host name. Its JSON is that of
// status.loadBalancer.ingress.
type Address struct {
	IP       string `json:"ip,omitempty"`
	Hostname string `json:"hostname,omitempty"`
}

// String returns the address or the host name.
func (a Address) String() string { return cmp.Or(a.IP, a.Hostname) }

// ParseAddress reads an address or a host name, and refuses those that the API server refuses.
func ParseAddress(s string) (Address, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" && !addr.Is4In6() {
		return Address{IP: addr.String()}, nil
	}
	if len(validation.IsDNS1123Subdomain(s)) > 0 {
		return Address{}, errors.New("want an address such as 192.0.2.1 or 2001:db8::1, or a host name in lower case")
	}
	return Address{Hostname: s}, nil
}

// AddressesOf returns the addresses of a Service, sorted: those outside of the cluster, or
// else those inside. A load balancer without an address will get one, so it has none for now.
func AddressesOf(svc *corev1.Service) (all []Address) {
	if svc == nil {
		return nil
	}
	for _, at := range svc.Status.LoadBalancer.Ingress {
		all = append(all, Address{IP: at.IP, Hostname: at.Hostname})
	}
	ips := svc.Spec.ExternalIPs
	if len(all)+len(ips) == 0 && svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		ips = slices.DeleteFunc(slices.Clone(svc.Spec.ClusterIPs), func(ip string) bool { return ip == corev1.ClusterIPNone })
	}
	for _, ip := range ips {
		all = append(all, Address{IP: ip})
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		all = append(all, Address{Hostname: svc.Spec.ExternalName})
	}
	slices.SortFunc(all, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Hostname, b.Hostname))
	})
	return slices.Compact(all)
}

// Service follows the addresses of a Service. Make it with [NewService], and run it once. Its
// methods may be called concurrently.
type Service struct {
	name    string
	single  *k8swatch.Single[*corev1.Service]
	changed func()

	mu        sync.Mutex
	addresses []Address
	unknown   error // why they are not known
}

// NewService returns a follower of a Service. It calls changed after each change of the
// addresses; nil: it calls nothing. A nil log is slog.Default(). It sends no request before
// Run.
func NewService(source k8swatch.Source, namespace, name string, log *slog.Logger, changed func()) (s *Service, err error) {
	if changed == nil {
		changed = func() {}
	}
	s = &Service{name: "Service " + namespace + "/" + name, changed: changed}
	s.single, err = k8swatch.NewSingle(source, corev1.SchemeGroupVersion.WithResource("services"), namespace, name,
		&k8swatch.SingleOptions[*corev1.Service]{IncludeStatus: true, Logger: log,
			OnChange: func(_ context.Context, now k8swatch.SingleChange[*corev1.Service]) error {
				s.found(now.Object)
				return nil
			}})
	return s, err
}

// Run follows the Service until ctx ends.
func (s *Service) Run(ctx context.Context) error { return s.single.Run(ctx) }

// Addresses returns the current addresses; nil: they are not known. Then the statuses should
// stay as they are: see [Item].Status.
func (s *Service) Addresses() []Address {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unknown != nil {
		return nil
	}
	return slices.Clone(s.addresses)
}

// Check returns an error if the Service cannot be watched, is not found, or has no address.
func (s *Service) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.single.State().Err, s.unknown)
}

// found takes the addresses of the Service. svc is nil if it does not exist.
func (s *Service) found(svc *corev1.Service) {
	now := AddressesOf(svc)
	s.mu.Lock()
	before, was := s.addresses, s.unknown
	switch {
	case svc == nil:
		s.unknown = fmt.Errorf("%s is not found, so that no status changes: create it, or give the right name", s.name)
	case len(now) == 0:
		s.unknown = fmt.Errorf("%s has no address yet, so that no status changes", s.name)
	default:
		s.addresses, s.unknown = now, nil
	}
	changed := s.unknown == nil && (was != nil || !slices.Equal(before, now))
	s.mu.Unlock()
	if changed {
		s.changed()
	}
}
