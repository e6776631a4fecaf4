package discover_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/reconcile/discover"
)

func ExamplePods() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lb", Name: "haproxy-0"},
		Status: corev1.PodStatus{PodIP: "192.0.2.7", ContainerStatuses: []corev1.ContainerStatus{
			{Name: "dataplane", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
	credentials := discover.Credentials{DataplaneUsername: "admin", DataplanePassword: "secret"}
	instances, err := discover.Pods([]*corev1.Pod{pod}, credentials, discover.PodOptions{Namespace: "lb"})
	fmt.Println(instances[0].Name, instances[0].URL, err)

	// Clients makes targets of them, and keeps a client while nothing changes.
	var clients discover.Clients
	targets, err := clients.Targets(instances)
	fmt.Println(len(targets), err)
	// Output:
	// lb/haproxy-0 https://192.0.2.7:5555 <nil>
	// 1 <nil>
}

func ExampleOwnNamespace() {
	env := map[string]string{"POD_NAMESPACE": "lb"}
	namespace, err := discover.OwnNamespace(func(key string) string { return env[key] })
	fmt.Println(namespace, err)
	// Output: lb <nil>
}

func ExampleCredentialsFromEnv() {
	env := map[string]string{"HAPTIC_DATAPLANE_USERNAME": "admin", "HAPTIC_DATAPLANE_PASSWORD": "secret"}
	credentials, err := discover.CredentialsFromEnv(func(key string) string { return env[key] })
	fmt.Println(credentials, err)
	// Output:
	// credentials (secret) <nil>
}

func ExampleParseCredentials() {
	_, err := discover.ParseCredentials(map[string][]byte{"dataplane_username": []byte("admin")})
	fmt.Println(err)
	// Output:
	// missing or empty: dataplane_password
}
