package reconcile

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// ClientOptions are those for the Dataplane APIs of these settings: give them to
// [Clients].
func (s *Settings) ClientOptions() *dataplane.ClientOptions {
	return &dataplane.ClientOptions{
		Layout: s.Layout(), KeepFiles: s.Dataplane.KeepFiles, Shared: s.Dataplane.Strategy == strategyShared,
	}
}

// The strategies of the settings.
const (
	strategyRaw    = "raw"
	strategyShared = "shared"
)

// Endpoints lists the Dataplane APIs of the pods that dataplane.podSelector
// selects, as they are in the stores; see [PodEndpoints]. Without a selector there
// are none. [Live.Stores] has the stores of now, and LiveOptions.OnChange says when
// to ask again.
func (s *Settings) Endpoints(ctx context.Context, stores Stores, credentials Credentials) ([]dataplane.Endpoint, error) {
	store := stores[haproxyPods]
	if store.Get == nil {
		return nil, nil
	}
	objs, err := store.Get(ctx, nil)
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for _, o := range objs {
		if pod, ok := o.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	p := s.Dataplane
	return PodEndpoints(pods, credentials, PodOptions{Container: p.Container, Port: p.Port, Scheme: p.Scheme}), nil
}
