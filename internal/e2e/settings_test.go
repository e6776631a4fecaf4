package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/watchtest"
)

// settingsStage is a controller whose settings are a ConfigMap, as a process with
// a HAProxy of its own.
type settingsStage struct {
	*watchServer
	*process
	visit *visitor
	text  string // of the settings of the example
}

func startSettings(t *testing.T) *settingsStage {
	s := &settingsStage{watchServer: newRouteServer(t)}
	text, err := os.ReadFile("../../examples/settings/testdata/settings.yaml")
	s.must(err)
	s.text = string(text)
	address := subnet + "2:8080"
	s.visit = newVisitor("http", address, noTLS())
	s.process, err = startProcess("settings", nil, env.settings, "-kubeconfig", env.cluster.kubeconfig,
		"-settings", "configmap:"+s.ns+"/settings", "-local", shortDir(t), "-http-addr", address, "-metrics-addr", "", "-debug-addr", "")
	s.must(err)
	t.Cleanup(func() {
		if _, err := s.terminate(syscall.SIGINT, patience); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the controller printed:\n%s", s.out.tail())
		}
	})
	return s
}

// put writes the ConfigMap.
func (s *settingsStage) put(text string) {
	s.t.Helper()
	s.must(s.Apply(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "settings"},
		Data: map[string]string{"settings.yaml": text}}))
}

// says waits until the controller has logged something since the mark.
func (s *settingsStage) says(mark int, text string) {
	s.t.Helper()
	eventually(s.t, "the log has "+text, func() error {
		if !strings.Contains(s.out.After(mark), text) {
			return fmt.Errorf("it has %q", s.out.After(mark))
		}
		return nil
	})
}

// status waits for the status with which an unknown host is answered.
func (s *settingsStage) status(want int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprint("status ", want), s.visit.expectStatus("other.test", "/", want))
}

// watches is what the API server says of a resource in which it has no interest of
// its own: the watches that are open, and all lists and watches that have ended.
func (s *settingsStage) watches(resource string) string {
	s.t.Helper()
	text, err := env.cluster.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(s.t.Context())
	s.must(err)
	var found []string
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, "{")
		if (name == "apiserver_longrunning_requests" || name == "apiserver_request_total") && strings.Contains(line, `resource="`+resource+`"`) &&
			(strings.Contains(line, `verb="LIST"`) || strings.Contains(line, `verb="WATCH"`)) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// openWatches adds up what the API server says of open watches.
func openWatches(text string) (n int) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "apiserver_longrunning_requests") {
			open, _ := strconv.Atoi(fields[len(fields)-1])
			n += open
		}
	}
	return n
}

// TestSettingsLive changes the settings of a controller under traffic: each change
// is live without a restart, what is wrong is reported with its line and changes
// nothing, and watches that are not concerned go on.
func TestSettingsLive(t *testing.T) {
	s := startSettings(t)
	startBackends(t, backendPort)
	s.says(0, "it does not exist")
	s.service("web", backendPort, subnet+"9")
	s.ingress("web", route("web.test", netv1.PathTypePrefix, "/", "web"))
	s.put(s.text)
	eventually(t, "HAProxy answers", s.visit.expectStatus("web.test", "/", 200))
	s.status(404)
	tr := startTraffic(t, s.visit, "web.test")
	eventually(t, "requests are answered", tr.keepsFlowing(10))
	before := ""
	eventually(t, "the API server has seen the controllers of earlier tests end", func() error {
		if before = s.watches("ingresses"); openWatches(before) != 1 {
			return fmt.Errorf("it counts\n%s", before)
		}
		before = s.watches("ingresses") // it counts requests that have ended last
		return nil
	})

	// A template changes.
	changed := strings.Replace(s.text, "status 404", "status 410", 1)
	s.put(changed)
	s.status(410)

	// A broken one is reported with its line, and the old one stays.
	mark := s.out.Len()
	broken := strings.Replace(changed, "svc.Spec.Ports", "svc.Spec.Prots", 1)
	s.put(broken)
	s.says(mark, fmt.Sprintf("settings.yaml:%d:", strings.Count(broken[:strings.Index(broken, "Prots")], "\n")+1))

	// So is what only HAProxy refuses, and a ConfigMap that is gone.
	mark = s.out.Len()
	s.put(strings.Replace(changed, "mode http", "mode smtp", 1))
	s.says(mark, "unknown proxy mode 'smtp'")
	mark = s.out.Len()
	s.must(s.Delete(t.Context(), "settings"))
	s.says(mark, "it does not exist")
	s.status(410)

	// A custom resource is watched from now on; its objects are as in YAML.
	s.must(s.Install(t.Context(), "one", "two"))
	mark = s.out.Len()
	s.put(strings.NewReplacer("watchedResources:\n", "watchedResources:\n  routes: {apiVersion: "+watchtest.Routes.GroupVersion().String()+", resources: routes}\n",
		"status 410", `status {% if len(resources.routes.List()) == 2 %}421{% else %}500{% end %}`).Replace(changed))
	s.says(mark, "watching now: routes")
	s.status(421)

	tr.noFailures(t, 50)
	after := s.watches("ingresses")
	if after != before || !strings.Contains(after, "apiserver_longrunning_requests") {
		t.Errorf("ingresses were listed or watched anew: before\n%safter\n%s", before, after)
	}
	t.Logf("the API server has seen of ingresses, before and after:\n%s", after)
}
