package endpoints

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/reconcile/limits"
)

// FindPort finds a port among the first most ones of a Service: by its name or, if that is
// empty, by its number. Otherwise it says what is wrong.
func FindPort(svc *corev1.Service, name string, number int32, most int) (port *corev1.ServicePort, problem string) {
	ports := svc.Spec.Ports[:min(len(svc.Spec.Ports), most)]
	i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool {
		return name == "" && p.Port == number || name != "" && p.Name == name
	})
	wanted := cmp.Or(name, strconv.Itoa(int(number)))
	switch {
	case i >= 0:
		return &ports[i], ""
	case len(svc.Spec.Ports) > most:
		return nil, fmt.Sprintf("Service %s/%s has %s ports, more than the %s that can be used (ports-per-service), and port %s is not among the first %[4]s",
			svc.Namespace, svc.Name, limits.Figure(len(svc.Spec.Ports)), limits.Figure(most), wanted)
	case name == "" && number == 0:
		return nil, fmt.Sprintf("no port is named; Service %s/%s has %s", svc.Namespace, svc.Name, listPorts(ports))
	}
	return nil, fmt.Sprintf("Service %s/%s has no port %s; it has %s", svc.Namespace, svc.Name, wanted, listPorts(ports))
}

// listPorts names the first ports of a Service.
func listPorts(ports []corev1.ServicePort) string {
	var list []string
	for i, p := range ports {
		if i == maxNames {
			list = append(list, fmt.Sprintf("%d more", len(ports)-i))
			break
		}
		if p.Name == "" {
			list = append(list, strconv.Itoa(int(p.Port)))
		} else {
			list = append(list, fmt.Sprintf("%s (%d)", p.Name, p.Port))
		}
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}
