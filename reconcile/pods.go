package reconcile

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// PodOptions say how the Dataplane API of a HAProxy pod is reached.
type PodOptions struct {
	Container string // that runs the Dataplane API and must be ready; zero: "dataplane", or the only one there is
	Port      int    // zero: 5555
	Scheme    string // zero: "http"
}

// PodEndpoints lists the Dataplane APIs of those pods that run, have an
// address, are not being deleted and have a ready container of that name,
// sorted by pod. An endpoint is named by its pod, "namespace/name".
func PodEndpoints(pods []*corev1.Pod, credentials Credentials, opts PodOptions) []dataplane.Endpoint {
	if opts.Port == 0 {
		opts.Port = 5555
	}
	if opts.Scheme == "" {
		opts.Scheme = "http"
	}
	var endpoints []dataplane.Endpoint
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" || !containerReady(pod, opts.Container) {
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
	return endpoints
}

func containerReady(pod *corev1.Pod, name string) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == name || name == "" && (c.Name == "dataplane" || len(pod.Status.ContainerStatuses) == 1) {
			return c.Ready && c.State.Running != nil
		}
	}
	return false
}

// Clients turns endpoints into targets and keeps, from call to call, the
// client of an endpoint that did not change, with all that it remembers. An
// endpoint whose address or credentials changed gets a new one. The zero value
// is ready; it may be used from any goroutine.
type Clients struct {
	Options *dataplane.ClientOptions

	mu   sync.Mutex
	byID map[clientID]*dataplane.Client
}

type clientID struct{ name, url, username, password string }

// Targets makes the targets for these endpoints, and forgets all others.
func (c *Clients) Targets(endpoints []dataplane.Endpoint) ([]Target, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := make(map[clientID]*dataplane.Client, len(endpoints))
	targets := make([]Target, 0, len(endpoints))
	for _, e := range endpoints {
		id := clientID{e.Name, e.URL, e.Username, e.Password}
		client := c.byID[id]
		if client == nil {
			var err error
			if client, err = dataplane.NewClient(e, c.Options); err != nil {
				return nil, err
			}
		}
		now[id] = client
		targets = append(targets, client)
	}
	c.byID = now
	return targets, nil
}
