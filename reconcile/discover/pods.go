package discover

import (
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// PodOptions say how the Dataplane API of a HAProxy pod is reached.
type PodOptions struct {
	Container string // that runs the Dataplane API and must be ready; zero: "dataplane", or the only one there is
	PortName  string // name of the port in the specification of that container; zero, or where it has none of that name: Port
	Port      int    // zero: 5555
	Scheme    string // zero: "http"
}

// Pods lists the Dataplane APIs of those pods that run, have an
// address, are not being deleted and have a ready container of that name,
// sorted by pod. An endpoint is named by its pod, "namespace/name".
func Pods(pods []*corev1.Pod, credentials Credentials, opts PodOptions) []dataplane.Endpoint {
	if opts.Port == 0 {
		opts.Port = 5555
	}
	if opts.Scheme == "" {
		opts.Scheme = "http"
	}
	var endpoints []dataplane.Endpoint
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" || !opts.ready(pod) {
			continue
		}
		endpoints = append(endpoints, dataplane.Endpoint{
			Name:     pod.Namespace + "/" + pod.Name,
			URL:      opts.Scheme + "://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(opts.port(pod))),
			Username: credentials.DataplaneUsername,
			Password: credentials.DataplanePassword,
		})
	}
	slices.SortFunc(endpoints, func(a, b dataplane.Endpoint) int { return strings.Compare(a.Name, b.Name) })
	return endpoints
}

// container names the container that runs the API, "" where there is none. It
// may be a sidecar, which Kubernetes lists with the init containers.
func (o PodOptions) container(pod *corev1.Pod) string {
	name := o.Container
	if name == "" {
		name = "dataplane"
	}
	for _, c := range append(slices.Clip(pod.Status.ContainerStatuses), pod.Status.InitContainerStatuses...) {
		if c.Name == name {
			return name
		}
	}
	if o.Container == "" && len(pod.Status.ContainerStatuses) == 1 {
		return pod.Status.ContainerStatuses[0].Name
	}
	return ""
}

func (o PodOptions) ready(pod *corev1.Pod) bool {
	name := o.container(pod)
	for _, c := range append(slices.Clip(pod.Status.ContainerStatuses), pod.Status.InitContainerStatuses...) {
		if c.Name == name {
			return c.Ready && c.State.Running != nil
		}
	}
	return false
}

func (o PodOptions) port(pod *corev1.Pod) int {
	name := o.container(pod)
	for _, c := range append(slices.Clip(pod.Spec.Containers), pod.Spec.InitContainers...) {
		if c.Name != name || o.PortName == "" {
			continue
		}
		for _, p := range c.Ports {
			if p.Name == o.PortName {
				return int(p.ContainerPort)
			}
		}
	}
	return o.Port
}
