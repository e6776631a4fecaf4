package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// credentialsOf writes the Secret of credentials with these keys alone.
func (k *kube) credentialsOf(data map[string]string) {
	k.t.Helper()
	k.dropCredentials()
	_, err := env.cluster.client.CoreV1().Secrets(k.ns).Create(k.t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "haptic-credentials"}, StringData: data}, metav1.CreateOptions{})
	k.must(err)
}

func (k *kube) dropCredentials() {
	_ = env.cluster.client.CoreV1().Secrets(k.ns).Delete(k.t.Context(), "haptic-credentials", metav1.DeleteOptions{})
}

// readiness is a condition: what /readyz answers, the reason that it gives, and that the
// log since a mark, events and errors tell of it, too.
func (c *controller) readiness(ready bool, mark int, reason string) func() error {
	return func() error {
		_, err := c.page("/readyz")
		if (err == nil) != ready {
			return fmt.Errorf("ready: %v: %w", !ready, err)
		}
		verbose, err := c.page("/readyz?verbose")
		if err != nil { // it has the page
			verbose = err.Error()
		}
		for where, text := range map[string]func() (string, error){
			"the log":    func() (string, error) { return c.out.After(mark), nil },
			"the events": func() (string, error) { return c.page("/debug/vars/events") },
			"the health": func() (string, error) { return c.page("/debug/vars/health") },
			"the page":   func() (string, error) { return c.page("/") },
		} {
			has, err := text()
			if err != nil || !strings.Contains(has, reason) {
				return fmt.Errorf("%s has no %q: %w: %s", where, reason, err, verbose)
			}
		}
		return nil
	}
}

// TestReadyMeansReady: without credentials and without a HAProxy a controller is not
// ready, and says why, by key; once it deployed, lost credentials are said, and it stays
// ready.
func TestReadyMeansReady(t *testing.T) {
	k, api, at := startFleet(t)
	good := map[string]string{"dataplane_username": "admin", "dataplane_password": "canary-right"}
	with := func(key, value string) map[string]string {
		data := map[string]string{}
		for name, v := range good {
			data[name] = v
		}
		if data[key] = value; value == "-" {
			delete(data, key)
		}
		return data
	}
	secret := "credentials: Secret " + k.ns + "/haptic-credentials: "
	c := startController(t, options{notReady: true, env: []string{"POD_NAMESPACE=" + k.ns}, args: []string{"-namespace", k.ns, "-pods", "app=haproxy", "-pod-scheme", "http",
		"-pod-port", at.Port(), "-maxconn", "1000", "-endpoint-base", api.Layout().Base, "-endpoint-socket", filepath.Join(api.Layout().Base, "admin.sock")}})
	step := func(name string, ready bool, reason string, do func()) {
		t.Helper()
		mark := c.out.Len()
		do()
		eventually(t, name, c.readiness(ready, mark, reason))
		if errs, err := c.page("/debug/vars/errors"); strings.Contains(reason, "credentials") && !strings.Contains(errs, reason) {
			t.Errorf("%s: no error has %q: %v %s", name, reason, err, errs)
		}
	}
	step("no Secret", false, secret+"it does not exist", func() {})
	step("a key is missing", false, secret+"missing or empty: dataplane_username", func() { k.credentialsOf(with("dataplane_username", "-")) })
	step("a value is empty", false, secret+"missing or empty: dataplane_password", func() { k.credentialsOf(with("dataplane_password", "")) })
	mark := c.out.Len()
	k.credentialsOf(with("dataplane_password", "canary-wrong"))
	eventually(t, "no pods", func() error {
		verbose, err := c.page("/readyz?verbose")
		if err == nil || !strings.Contains(c.out.After(mark), "no HAProxy is found: no pod of namespace "+k.ns+" with the labels app=haproxy") {
			return fmt.Errorf("%s %w %s", verbose, err, c.out.After(mark))
		}
		return nil
	})
	step("the password is wrong", false, k.ns+"/haproxy-0", func() { k.haproxyPod("haproxy-0", at.Hostname()) })
	t.Cleanup(func() { k.must(k.deletePod(context.Background(), "haproxy-0")) })
	v := c.visit()
	k.credentialsOf(good)
	eventually(t, "the right password serves", v.expect("web.test", "/", endpoint(host("10"), backendPort)))
	c.awaitReady(patience)
	step("the Secret is lost", true, secret+"it does not exist", k.dropCredentials)
	k.endpoints("web", backendPort, host("11"))
	eventually(t, "changes arrive", v.expect("web.test", "/", endpoint(host("11"), backendPort)))
	mark = c.out.Len()
	k.credentialsOf(good)
	eventually(t, "the end is said", func() error {
		if !strings.Contains(c.out.After(mark), "credentials are in use") {
			return errors.New(c.out.After(mark))
		}
		return nil
	})
	if strings.Contains(c.out.String(), "canary-") {
		t.Error("a password was printed")
	}
}
