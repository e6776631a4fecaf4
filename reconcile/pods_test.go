package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

func pod(name, ip string, containers ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Status:     corev1.PodStatus{PodIP: ip, ContainerStatuses: containers},
	}
}

func container(name string, ready bool) corev1.ContainerStatus {
	c := corev1.ContainerStatus{Name: name, Ready: ready}
	if ready {
		c.State.Running = &corev1.ContainerStateRunning{}
	}
	return c
}

func TestPodEndpoints(t *testing.T) {
	leaving := pod("leaving", "192.0.2.9", container("dataplane", true))
	leaving.DeletionTimestamp = &metav1.Time{}
	pods := []*corev1.Pod{
		pod("z", "192.0.2.2", container("haproxy", true), container("dataplane", true)),
		pod("a", "2001:db8::1", container("only", true)),
		pod("not-ready", "192.0.2.3", container("haproxy", true), container("dataplane", false)),
		pod("no-address", "", container("dataplane", true)),
		pod("other", "192.0.2.4", container("haproxy", true), container("sidecar", true)),
		leaving,
	}
	got := PodEndpoints(pods, Credentials{DataplaneUsername: "u", DataplanePassword: "p"}, PodOptions{})
	require.Len(t, got, 2)
	require.Equal(t, "ns/a", got[0].Name)
	require.Equal(t, "http://[2001:db8::1]:5555", got[0].URL)
	require.Equal(t, "http://192.0.2.2:5555", got[1].URL)
	require.Equal(t, "p", got[1].Password)
}

func TestClientsAreKeptWhileNothingChanges(t *testing.T) {
	var clients Clients
	a := dataplane.Endpoint{Name: "a", URL: "http://192.0.2.1:5555", Username: "u", Password: "p"}
	b := dataplane.Endpoint{Name: "b", URL: "http://192.0.2.2:5555", Username: "u", Password: "p"}
	first, err := clients.Targets([]dataplane.Endpoint{a, b})
	require.NoError(t, err)
	again, err := clients.Targets([]dataplane.Endpoint{b, a})
	require.NoError(t, err)
	require.Same(t, first[0], again[1])
	require.Same(t, first[1], again[0])

	a.Password = "rotated"
	b.URL = "http://192.0.2.3:5555"
	rotated, err := clients.Targets([]dataplane.Endpoint{a, b})
	require.NoError(t, err)
	require.NotSame(t, first[0], rotated[0], "new credentials")
	require.NotSame(t, first[1], rotated[1], "a new address under the old name")
}
