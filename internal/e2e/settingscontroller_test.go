package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// siteSettings serve a text that is fetched, and a backend for each ConfigMap with the
// label site.
const siteSettings = `
watchedResources:
  sites: {apiVersion: v1, resources: configmaps, labelSelector: site}
haproxyConfig:
  template: |
    global
        stats socket {{ runtimeSocket }} mode 600 level admin
    defaults
        mode http
        timeout connect 5s
        timeout client 50s
        timeout server 50s
    frontend web
        bind {{ httpAddress }}
        http-request return status 200 content-type text/plain string "{{ http.Fetch("http://FETCHED/greeting") }}"
haproxySections:
  sites.cfg:
    each: {resource: sites, as: site}
    template: |
      backend {{ site.Namespace }}_{{ site.Name }}
          balance {{ site.Data["balance"] }}
dataplane:
  podSelector: {matchLabels: {app: haproxy}}
  scheme: http
  port: PORT
  baseDir: BASE
`

// settingsFleet is a controller that is told everything by its environment and a
// ConfigMap, and a pod with a Dataplane API.
type settingsFleet struct {
	*kube
	api           *dataplanetest.Server
	debug         string // a socket
	metrics, http string // addresses
}

func newSettingsFleet(t *testing.T) *settingsFleet {
	f := &settingsFleet{kube: newKube(t), debug: filepath.Join(shortDir(t), "debug"), metrics: host("31") + ":9090", http: host("2") + ":8080"}
	f.api = dataplanetest.New(t, &dataplanetest.Options{Password: "canary-right", HAProxy: &dataplanetest.HAProxy{}})
	at, err := url.Parse(f.api.URL())
	f.must(err)
	listener, err := net.Listen("tcp", host("30")+":8000")
	f.must(err)
	site := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "fetched")
	})}
	go func() { _ = site.Serve(listener) }()
	t.Cleanup(func() { f.must(site.Close()) })
	f.configMap("settings", map[string]string{"settings.yaml": strings.NewReplacer("FETCHED", listener.Addr().String(), "PORT", at.Port(), "BASE", f.api.Layout().Base).Replace(siteSettings)})
	f.configMap("good", map[string]string{"balance": "leastconn"})
	f.haproxyPod("haproxy-0", at.Hostname())
	t.Cleanup(func() {
		ctx := context.Background()
		f.must(f.deletePod(ctx, "haproxy-0"))
		f.must(env.cluster.client.CoreV1().ConfigMaps(f.ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	})
	return f
}

func (f *settingsFleet) configMap(name string, data map[string]string) {
	f.t.Helper()
	_, err := env.cluster.client.CoreV1().ConfigMaps(f.ns).Create(f.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{map[bool]string{true: "settings", false: "site"}[name == "settings"]: ""}}, Data: data}, metav1.CreateOptions{})
	f.must(err)
}

func (f *settingsFleet) start(args ...string) *process {
	f.t.Helper()
	p, err := startProcess("settings", []string{"POD_NAMESPACE=" + f.ns, "CONFIGMAP_NAME=settings"}, env.settings, append([]string{
		"-kubeconfig", env.cluster.kubeconfig, "-http-addr", f.http, "-endpoint-socket", filepath.Join(f.api.Layout().Base, "admin.sock")}, args...)...)
	f.must(err)
	return p
}

// preflight is -once -dry-run with its exit code and something that it prints.
func (f *settingsFleet) preflight(code int, says string) {
	f.t.Helper()
	p := f.start("-once", "-dry-run")
	eventually(f.t, "the preflight ends", func() error {
		if p.ended() == nil {
			return fmt.Errorf("it has printed %q", p.out.tail())
		}
		return nil
	})
	if got := p.cmd.ProcessState.ExitCode(); got != code || !strings.Contains(p.out.String(), says) {
		f.t.Errorf("the preflight ended with %d, want %d and %q:\n%s", got, code, says, p.out.tail())
	}
}

// page reads a page through the socket.
func (f *settingsFleet) page(path string) (string, error) {
	client := http.Client{Timeout: pageTime, Transport: &http.Transport{DisableKeepAlives: true, Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", f.debug) }}}
	return get(&client, "http://debug"+path)
}

func get(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", url, resp.Status, body)
	}
	return string(body), err
}

// TestSettingsController: a controller whose settings are a ConfigMap, as a user would
// run it: preflights, probes for the kubelet, a Secret that comes late, a text that
// templates fetch, an Event of the object that HAProxy refuses, and the variables of the
// debug server.
func TestSettingsController(t *testing.T) {
	f := newSettingsFleet(t)
	missing := "Secret " + f.ns + "/haptic-credentials: it does not exist"
	f.preflight(1, missing)
	f.credentials("haptic-credentials", "canary-right")
	f.preflight(2, "good")
	f.must(env.cluster.client.CoreV1().Secrets(f.ns).Delete(t.Context(), "haptic-credentials", metav1.DeleteOptions{}))
	c := f.start("-metrics-addr", f.metrics, "-debug-addr", "unix:"+f.debug)
	t.Cleanup(func() {
		if _, err := c.terminate(syscall.SIGTERM, patience); err != nil {
			t.Error(err)
		}
		if c.cmd.ProcessState.ExitCode() != 0 || strings.Contains(c.out.String(), "canary-") || t.Failed() {
			t.Errorf("the controller ended with %v and printed:\n%s", c.cmd.ProcessState, c.out.tail())
		}
	})
	eventually(t, "the missing Secret is told", func() error {
		if !strings.Contains(c.out.String(), missing) {
			return fmt.Errorf("%q", c.out.tail())
		}
		return nil
	})
	plain := &http.Client{Timeout: pageTime, Transport: &http.Transport{DisableKeepAlives: true}}
	if _, err := get(plain, "http://"+f.metrics+"/readyz"); err == nil {
		t.Error("the controller is ready without credentials")
	}
	f.credentials("haptic-credentials", "canary-right")
	eventually(t, "the controller is ready", func() error {
		_, err := get(plain, "http://"+f.metrics+"/readyz")
		return err
	})
	eventually(t, "the fetched text is served", func() error {
		body, err := get(plain, "http://"+f.http+"/")
		if err == nil && body != "fetched" {
			err = fmt.Errorf("%q", body)
		}
		return err
	})
	f.preflight(0, "")
	f.configMap("other", map[string]string{"balance": "source"})
	eventually(t, "the other site is deployed", func() error {
		if raw := f.api.Raw(); !strings.Contains(raw, "balance source") {
			return fmt.Errorf("%s", raw)
		}
		return nil
	})

	f.configMap("bad", map[string]string{"balance": "nonsense"})
	eventually(t, "the owner of the object is told", func() error {
		events, err := env.cluster.client.CoreV1().Events(f.ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=bad"})
		if err == nil && (len(events.Items) == 0 || events.Items[0].Reason != "Quarantined" || !strings.Contains(events.Items[0].Message, "nonsense")) {
			err = fmt.Errorf("%v", events.Items)
		}
		return err
	})
	f.preflight(1, "in quarantine: ConfigMap "+f.ns+"/bad")

	for path, want := range map[string][]string{
		"/debug/vars/config":      {`"settings": "configmap:` + f.ns + `/settings"`, `"driftPreventionInterval": "1m0s"`, `"haptic-credentials"`, `lines)"`},
		"/debug/vars/credentials": {"Secret " + f.ns + "/haptic-credentials", "dataplane_password", `"inUse": true`},
		"/debug/vars/http":        {"/greeting"},
	} {
		text, err := f.page(path)
		for _, w := range want {
			if err != nil || !strings.Contains(text, w) || strings.Contains(text, "canary-") {
				t.Errorf("%s: want %q: %v\n%s", path, w, err, text)
			}
		}
	}
	if _, err := get(plain, "http://"+f.metrics+"/debug/vars/config"); err == nil {
		t.Error("the address for probes shows the configuration")
	}
}
