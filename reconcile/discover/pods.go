package discover

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// PodOptions say which pods are instances, and how to reach their Dataplane API.
type PodOptions struct {
	Namespace string // of the pods; required: see [OwnNamespace]; [AllNamespaces] trusts every account that may create pods
	Container string // runs the Dataplane API and must be ready; zero: "dataplane", or the only container
	Port      int    // zero: 5555
	Scheme    string // "http" or "https"; zero: "https"
}

// AllNamespaces is the value of Namespace for pods in any namespace.
const AllNamespaces = "*"

// Pods lists the Dataplane APIs of the usable pods, sorted by pod. A usable pod has an address
// and a ready, running container of the given name, and is not being deleted. The name of an
// endpoint is its pod, "namespace/name".
//
// Each endpoint gets the password, the whole configuration and every private key. Pods
// therefore refuses a pod of another namespace, whatever its labels, unless Namespace is
// [AllNamespaces]. The error names one refused pod; the other endpoints are returned with it.
// Without a namespace, or with another scheme, there are no endpoints.
//
// In the namespace itself, Pods trusts every account that may create a pod, label one or write
// its status. With https, a wrong address in a status gains nothing. The client sends the
// password only to a server with a certificate for the pod's address, or for the ServerName of
// [dataplane.Endpoint.TLS].
func Pods(pods []*corev1.Pod, credentials Credentials, opts PodOptions) ([]dataplane.Endpoint, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts.Port, opts.Scheme = cmp.Or(opts.Port, 5555), cmp.Or(opts.Scheme, "https")
	var endpoints []dataplane.Endpoint
	var elsewhere int
	var err error
	for _, pod := range pods {
		if opts.Namespace != AllNamespaces && pod.Namespace != opts.Namespace {
			elsewhere++
			err = fmt.Errorf("discovery: pods of other namespaces than %s are refused: %d, such as %s/%s", opts.Namespace, elsewhere, pod.Namespace, pod.Name)
			continue
		}
		if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" || !opts.ready(pod) {
			continue
		}
		endpoints = append(endpoints, dataplane.Endpoint{
			Name:     pod.Namespace + "/" + pod.Name,
			URL:      opts.Scheme + "://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(opts.Port)),
			Username: credentials.DataplaneUsername,
			Password: credentials.DataplanePassword,
		})
	}
	slices.SortFunc(endpoints, func(a, b dataplane.Endpoint) int { return strings.Compare(a.Name, b.Name) })
	return endpoints, err
}

func (o PodOptions) check() error {
	switch {
	case o.Namespace == "":
		return errors.New("discovery: PodOptions.Namespace is missing: pods of all namespaces would get the password")
	case o.Scheme != "" && o.Scheme != "http" && o.Scheme != "https":
		return fmt.Errorf("discovery: PodOptions.Scheme %q: want http or https", o.Scheme)
	}
	return nil
}

// container returns the name of the container with the API, or "". The container may be a
// sidecar, which Kubernetes lists with the init containers.
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
