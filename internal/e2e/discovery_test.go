package e2e

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// haproxyPod creates a pod that says of itself that its Dataplane API is ready.
func (k *kube) haproxyPod(name, ip string) {
	k.t.Helper()
	k.must(k.createPod(k.t.Context(), name, ip))
}

// createPod may be tried again where it failed halfway.
func (k *kube) createPod(ctx context.Context, name, ip string) error {
	pods := env.cluster.client.CoreV1().Pods(k.ns)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "haproxy"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "haproxy", Image: "haproxy"}, {Name: "dataplane", Image: "haproxy"}}},
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "haproxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "dataplane", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		},
	}
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (k *kube) deletePod(ctx context.Context, name string) error {
	return env.cluster.client.CoreV1().Pods(k.ns).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

// credentials writes the Secret with the four keys.
func (k *kube) credentials(name, password string) {
	k.t.Helper()
	secrets := env.cluster.client.CoreV1().Secrets(k.ns)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{
		"dataplane_username": "admin", "dataplane_password": password,
	}}
	if _, err := secrets.Update(k.t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		_, err = secrets.Create(k.t.Context(), secret, metav1.CreateOptions{})
		k.must(err)
	}
}

// startFleet is a site, its backend, and a Dataplane API for it.
func startFleet(t *testing.T) (*kube, *dataplanetest.Server, *url.URL) {
	k := newSite(t)
	api := dataplanetest.New(t, &dataplanetest.Options{Password: "canary-right", HAProxy: &dataplanetest.HAProxy{}})
	at, err := url.Parse(api.URL())
	k.must(err)
	return k, api, at
}

// HAProxy pods are found by their label as they come, with credentials from a
// Secret, which takes effect when it changes; those that go are forgotten.
func TestDiscovery(t *testing.T) {
	k, api, at := startFleet(t)
	k.credentials("haproxy", "canary-wrong")
	c := startController(t, options{notReady: true, args: []string{"-namespace", k.ns, "-pods", "app=haproxy", "-pod-namespace", k.ns, "-pod-scheme", "http", "-pod-port", at.Port(),
		"-credentials", k.ns + "/haproxy", "-maxconn", "1000",
		"-endpoint-base", api.Layout().Base, "-endpoint-socket", filepath.Join(api.Layout().Base, "admin.sock")}})
	v := c.visit()

	k.haproxyPod("haproxy-0", at.Hostname())
	eventually(t, "the wrong password is reported by the name of the pod", c.names(0, "instance", k.ns, "haproxy-0"))
	k.credentials("haproxy", "canary-right")
	eventually(t, "the new password takes effect", v.expect("web.test", "/", endpoint(host("10"), backendPort)))
	k.endpoints("web", backendPort, host("11"))
	eventually(t, "changes arrive", v.expect("web.test", "/", endpoint(host("11"), backendPort)))

	mark := c.out.Len()
	k.must(k.deletePod(t.Context(), "haproxy-0"))
	eventually(t, "the pod is forgotten", c.names(mark, "instance", k.ns, "haproxy-0"))
	eventually(t, "no endpoint is left", func() error {
		state, err := c.page("/debug/vars/state")
		if err == nil && strings.Contains(state, "haproxy-0") {
			err = errors.New(state)
		}
		return err
	})
	if strings.Contains(c.out.String(), "canary-") {
		t.Error("a password was printed")
	}
}

// A tenant makes a pod with the label in a namespace of its own. It gets no request:
// no password, no configuration, no key. The controller watches all namespaces for
// Ingresses, and its own for pods.
func TestDiscoveryTrustsOneNamespace(t *testing.T) {
	k, api, at := startFleet(t)
	k.credentials("haproxy", "canary-right")
	evil := newKube(t)
	var asked, passwords atomic.Int64
	listener, err := net.Listen("tcp", net.JoinHostPort(host("240"), at.Port()))
	k.must(err)
	thief := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if _, password, _ := r.BasicAuth(); password != "" {
			passwords.Add(1)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})}
	go func() { _ = thief.Serve(listener) }()
	t.Cleanup(func() { k.must(thief.Close()) })
	evil.haproxyPod("haproxy-0", host("240"))
	t.Cleanup(func() { k.must(evil.deletePod(context.Background(), "haproxy-0")) })
	c := startController(t, options{env: []string{"POD_NAMESPACE=" + k.ns}, args: []string{"-pods", "app=haproxy", "-pod-scheme", "http", "-pod-port", at.Port(),
		"-credentials", "haproxy", "-maxconn", "1000",
		"-endpoint-base", api.Layout().Base, "-endpoint-socket", filepath.Join(api.Layout().Base, "admin.sock")}, notReady: true})
	k.haproxyPod("haproxy-0", at.Hostname())
	t.Cleanup(func() { k.must(k.deletePod(context.Background(), "haproxy-0")) })
	v := c.visit()
	eventually(t, "the pod of the controller's namespace serves", v.expect("web.test", "/", endpoint(host("10"), backendPort)))
	k.endpoints("web", backendPort, host("11"))
	eventually(t, "changes arrive", v.expect("web.test", "/", endpoint(host("11"), backendPort)))
	if asked.Load() > 0 {
		t.Errorf("a pod of another namespace got %d requests, %d with the password", asked.Load(), passwords.Load())
	}
}
