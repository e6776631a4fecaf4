package discover

import (
	"os"
	"path/filepath"
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
	got, err := Pods(pods, Credentials{DataplaneUsername: "u", DataplanePassword: "p"}, PodOptions{Namespace: "ns"})
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "ns/a", got[0].Name)
	require.Equal(t, "https://[2001:db8::1]:5555", got[0].URL)
	require.Equal(t, "https://192.0.2.2:5555", got[1].URL)
	require.Equal(t, "p", got[1].Password)
}

func TestPodsOfSidecars(t *testing.T) {
	sidecar := pod("sidecar", "192.0.2.1", container("haproxy", true))
	sidecar.Status.InitContainerStatuses = []corev1.ContainerStatus{container("setup", false), container("dataplane", true)}
	notReady := pod("sidecar-not-ready", "192.0.2.2", container("haproxy", true))
	notReady.Status.InitContainerStatuses = []corev1.ContainerStatus{container("dataplane", false)}
	other := pod("z", "192.0.2.3", container("dataplane", true))
	failed := pod("evicted", "192.0.2.4", corev1.ContainerStatus{Name: "dataplane", Ready: true})

	var urls []string
	endpoints, err := Pods([]*corev1.Pod{sidecar, notReady, other, failed}, Credentials{}, PodOptions{Namespace: "ns", Port: 6666, Scheme: "http"})
	require.NoError(t, err)
	for _, e := range endpoints {
		urls = append(urls, e.URL)
	}
	require.Equal(t, []string{"http://192.0.2.1:6666", "http://192.0.2.3:6666"}, urls)
}

// TestPodsOfOtherNamespaces: a label is no proof. Who may create pods in a namespace
// of its own gets nothing of what the instances get, however the caller listed pods.
func TestPodsOfOtherNamespaces(t *testing.T) {
	credentials := Credentials{DataplaneUsername: "u", DataplanePassword: "canary"}
	pods := []*corev1.Pod{pod("haproxy-0", "192.0.2.1", container("dataplane", true))}
	for range 2 {
		evil := pod("haproxy-0", "192.0.2.66", container("dataplane", true))
		evil.Namespace = "evil"
		pods = append(pods, evil)
	}
	got, err := Pods(pods, credentials, PodOptions{Namespace: "ns"})
	require.EqualError(t, err, "discovery: pods of other namespaces than ns are refused: 2, such as evil/haproxy-0")
	require.Len(t, got, 1, "the others have their endpoints all the same")
	require.Equal(t, "https://192.0.2.1:5555", got[0].URL)
	for _, opts := range []PodOptions{{}, {Scheme: "http"}, {Namespace: "ns", Scheme: "ftp"}, {Namespace: "ns", Scheme: "HTTP"}} {
		got, err := Pods(pods, credentials, opts)
		require.ErrorContains(t, err, "discovery: PodOptions.")
		require.NotContains(t, err.Error(), "canary")
		require.Empty(t, got, "what is not said fails closed")
	}
}

func TestOwnNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	env := func(value string) func(string) string {
		return func(key string) string { return map[string]string{"POD_NAMESPACE": value}[key] }
	}
	_, err := ownNamespace(env(" "), file)
	require.ErrorContains(t, err, "POD_NAMESPACE is not set, and there is no service account: open ")
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	_, err = ownNamespace(env(""), file)
	require.ErrorContains(t, err, "namespace is empty")
	require.NoError(t, os.WriteFile(file, []byte("edge\n"), 0o600))
	for value, want := range map[string]string{"": "edge", "lb": "lb"} {
		got, err := ownNamespace(env(value), file)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
