package discover

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestPods(t *testing.T) {
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
	got := Pods(pods, Credentials{DataplaneUsername: "u", DataplanePassword: "p"}, PodOptions{})
	require.Len(t, got, 2)
	require.Equal(t, "ns/a", got[0].Name)
	require.Equal(t, "http://[2001:db8::1]:5555", got[0].URL)
	require.Equal(t, "http://192.0.2.2:5555", got[1].URL)
	require.Equal(t, "p", got[1].Password)
}

func TestPodsOfSidecarsAndNamedPorts(t *testing.T) {
	sidecar := pod("sidecar", "192.0.2.1", container("haproxy", true))
	sidecar.Status.InitContainerStatuses = []corev1.ContainerStatus{container("setup", false), container("dataplane", true)}
	sidecar.Spec.InitContainers = []corev1.Container{{Name: "dataplane", Ports: []corev1.ContainerPort{{Name: "api", ContainerPort: 6666}}}}
	notReady := pod("sidecar-not-ready", "192.0.2.2", container("haproxy", true))
	notReady.Status.InitContainerStatuses = []corev1.ContainerStatus{container("dataplane", false)}
	other := pod("z", "192.0.2.3", container("dataplane", true))
	other.Spec.Containers = []corev1.Container{{Name: "dataplane", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 80}}}}
	failed := pod("evicted", "192.0.2.4", corev1.ContainerStatus{Name: "dataplane", Ready: true})

	var urls []string
	for _, e := range Pods([]*corev1.Pod{sidecar, notReady, other, failed}, Credentials{}, PodOptions{PortName: "api"}) {
		urls = append(urls, e.URL)
	}
	require.Equal(t, []string{"http://192.0.2.1:6666", "http://192.0.2.3:5555"}, urls)
}
