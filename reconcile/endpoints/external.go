package endpoints

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/reconcile/limits"
)

// ExternalName returns the host of an ExternalName Service, as in DNS.
func ExternalName(svc *corev1.Service) string {
	return strings.ToLower(strings.TrimSuffix(svc.Spec.ExternalName, "."))
}

// ExternalNameProblem says why the host of an ExternalName Service is refused, and in which
// field; empty if it is not. An IP address is judged like an endpoint.
func ExternalNameProblem(j Judge, svc *corev1.Service, port int32) (field, reason string) {
	name := ExternalName(svc)
	addr, notIP := netip.ParseAddr(name)
	switch {
	case notIP == nil:
		if reason := j.Problem(addr.Unmap(), uint16(port)); reason != "" {
			return "spec.externalName", name + " " + reason
		}
	case name == "localhost" || strings.HasSuffix(name, ".localhost") || strings.HasPrefix(name, "localhost."):
		return "spec.externalName", fmt.Sprintf("%q is this host", limits.Short(name))
	case len(validation.IsDNS1123Subdomain(name)) > 0 || !HasName(name[strings.LastIndexByte(name, '.')+1:]): // 127.1 is an address
		return "spec.externalName", fmt.Sprintf("%q is not a host name", limits.Short(svc.Spec.ExternalName))
	}
	return "", ""
}
