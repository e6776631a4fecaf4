package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/settings"
	"github.com/hapticsdk/haptic/validate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExampleCompiles: the examples are right as they stand.
func TestExampleCompiles(t *testing.T) {
	for _, file := range []string{"testdata/settings.yaml", "testdata/routes.yaml"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = settings.ParseProgram(file, data, &settings.ProgramOptions{Namespace: "default", Globals: map[string]any{"httpAddress": "", "runtimeSocket": ""}})
		require.NoError(t, err)
	}
}

// TestExampleCases: -test runs the cases in the settings.
func TestExampleCases(t *testing.T) {
	needHAProxy(t)
	var out strings.Builder
	require.Zero(t, run(t.Context(), []string{"-settings", "testdata/settings.yaml", "-test"}, &out, io.Discard))
	require.Contains(t, out.String(), "1 case: 1 passed, 0 failed")
	out.Reset()
	require.Zero(t, run(t.Context(), []string{"-settings", "testdata/routes.yaml", "-test"}, &out, io.Discard), out.String())
	require.Contains(t, out.String(), "1 case: 1 passed, 0 failed")
	data, err := os.ReadFile("testdata/settings.yaml")
	require.NoError(t, err)
	broken := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(broken, []byte(strings.Replace(string(data), "lower(rule.Host)", "rule.Host", 1)), 0o600))
	out.Reset()
	require.Equal(t, 1, run(t.Context(), []string{"-settings", broken, "-test"}, &out, io.Discard))
	require.Contains(t, out.String(), "no match in map:routes.map")
}

func needHAProxy(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// lockedText is what a controller printed, readable while it prints.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// freeAddress is one that nobody listens at, and that the kernel gives to nobody
// else as long as the test runs.
func freeAddress(t *testing.T) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	address, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", address.(*syscall.SockaddrInet4).Port)
}

// shop is an Ingress for a host, and a Service whose endpoints are given.
func shop(host string, addresses ...string) string {
	text := fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: demo}
spec:
  rules:
    - host: %s
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: demo}
spec: {ports: [{name: http, port: 80}]}
`, host)
	for i, address := range addresses {
		ip, port, _ := net.SplitHostPort(address)
		text += fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-%d, namespace: demo, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: %s}]
endpoints: [{addresses: [%s]}]
`, i, port, ip)
	}
	return text
}

// stage is a controller that runs, with a backend behind its HAProxy.
type stage struct {
	t         *testing.T
	manifests string
	settings  string
	text      string // of the settings
	local     string // folder of HAProxy
	stop      func() // the controller
	address   string
	log       lockedText
	client    *http.Client
}

// newStage prepares for a controller with these settings. manifests makes the
// resources for the address of the backend.
func newStage(t *testing.T, settings string, manifests func(backend string) string) *stage {
	needHAProxy(t)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "served by %s", r.Header.Get("X-Served-By"))
	}))
	t.Cleanup(backend.Close)
	s := &stage{t: t, manifests: t.TempDir(), address: freeAddress(t), client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	s.settings = filepath.Join(t.TempDir(), "settings.yaml")
	data, err := os.ReadFile(settings)
	require.NoError(t, err)
	s.text = string(data)
	s.write(s.settings, s.text)
	s.write(filepath.Join(s.manifests, "shop.yaml"), manifests(strings.TrimPrefix(backend.URL, "http://")))
	return s
}

// run starts the controller, which ends with the test at the latest.
func (s *stage) run(settingsFlag string) {
	t := s.t
	if s.local == "" {
		dir, err := os.MkdirTemp("", "haptic-") // haproxy runs under an account of its own, which must come in
		require.NoError(t, err)
		require.NoError(t, os.Chmod(dir, 0o711))
		t.Cleanup(func() { os.RemoveAll(dir) })
		s.local = filepath.Join(dir, "haproxy")
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	args := []string{"-settings", settingsFlag, "-manifests", s.manifests, "-local", s.local,
		"-http-addr", s.address, "-debug-addr", "", "-metrics-addr", ""}
	go func() { done <- run(ctx, args, io.Discard, &s.log) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("exit code %d", code)
		}
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	t.Cleanup(s.stop)
}

func start(t *testing.T, settingsFlag func(s *stage) string) *stage {
	s := newStage(t, "testdata/settings.yaml", func(backend string) string { return shop("shop.test", backend) })
	s.run(settingsFlag(s))
	s.until("the first answer", func() bool { return s.get("shop.test") == "served by haptic" })
	return s
}

// write replaces a file in one step.
func (s *stage) write(file, text string) {
	require.NoError(s.t, os.WriteFile(file+".new", []byte(text), 0o644))
	require.NoError(s.t, os.Rename(file+".new", file))
}

func (s *stage) get(host string) string {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.address+"/", nil)
	require.NoError(s.t, err)
	r.Host = host
	response, err := s.client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// until waits for what must come true.
func (s *stage) until(what string, is func() bool) {
	s.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			s.t.Fatalf("%s does not come\n%s", what, s.log.String())
		}
	}
}

// traffic sends requests one after the other until stop, and returns how many
// were sent and what answered otherwise than right returns.
func (s *stage) traffic(right func(string) bool) (stop func() (int64, []string)) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	var sent atomic.Int64
	var mu sync.Mutex
	var wrong []string
	wg.Go(func() {
		for ctx.Err() == nil {
			sent.Add(1)
			if answer := s.get("shop.test"); !right(answer) {
				mu.Lock()
				wrong = append(wrong, answer)
				mu.Unlock()
			}
		}
	})
	return func() (int64, []string) { cancel(); wg.Wait(); return sent.Load(), wrong }
}

// TestSettingsChangeUnderTraffic: a template is changed in the file, then broken,
// then the manifests change; no request fails, and nothing starts anew.
func TestSettingsChangeUnderTraffic(t *testing.T) {
	s := start(t, func(s *stage) string { return s.settings })
	require.Equal(t, 1, strings.Count(s.log.String(), "haproxy accepts the configuration"), "not for cases: %s", s.log.String())
	require.NotContains(t, s.log.String(), "haproxy warns")
	require.NotContains(t, s.log.String(), "0 controller.haproxy_pods")
	stop := s.traffic(func(answer string) bool { return strings.HasPrefix(answer, "served by ") })

	changed := strings.Replace(s.text, "X-Served-By haptic", "X-Served-By settings", 1)
	s.write(s.settings, changed)
	s.until("the new header", func() bool { return s.get("shop.test") == "served by settings" })
	s.until("the report", func() bool { return strings.Count(s.log.String(), "settings are in use") > 1 })
	require.Equal(t, 2, strings.Count(s.log.String(), "settings are in use"))

	// Three mistakes, each with its line; the old settings stay.
	broken := strings.NewReplacer("svc.Spec.Ports", "svc.Spec.Prots", "100ms", "100", "IgnoreFields:", "IgnoreField:").Replace(changed)
	s.write(s.settings, broken)
	s.until("the report", func() bool { return strings.Contains(s.log.String(), "the settings stay as they are") })
	for _, want := range []string{
		"watchedResourcesIgnoreField: unknown key; did you mean watchedResourcesIgnoreFields?",
		"svc.Spec.Prots undefined",
		"reconcile.debounceInterval: a duration with its unit wanted",
	} {
		require.Contains(t, s.log.String(), want)
	}
	line := strings.Count(broken[:strings.Index(broken, "Prots")], "\n") + 1
	require.Contains(t, s.log.String(), fmt.Sprintf("%s:%d:", s.settings, line))

	// What haproxy does not accept does not take effect either.
	s.write(s.settings, strings.Replace(changed, "mode http", "mode smtp", 1))
	s.until("the verdict of haproxy", func() bool { return strings.Contains(s.log.String(), "unknown proxy mode 'smtp'") })
	require.Equal(t, "served by settings", s.get("shop.test"))

	// The settings in use go on: another host.
	data, err := os.ReadFile(filepath.Join(s.manifests, "shop.yaml"))
	require.NoError(t, err)
	blog := strings.NewReplacer("name: shop,", "name: blog,", "host: shop.test", "host: blog.test")
	s.write(filepath.Join(s.manifests, "blog.yaml"), blog.Replace(strings.SplitN(string(data), "---\n", 2)[0]))
	s.until("the other host", func() bool { return s.get("blog.test") == "served by settings" })

	sent, wrong := stop()
	require.Empty(t, wrong, "of %d requests", sent)
	require.Equal(t, 1, strings.Count(s.log.String(), "watching now: controller.haproxy_pods endpointslices ingresses services"), s.log.String())
	t.Logf("%d requests, none failed", sent)
}

// TestSettingsBrokenAtARestart: HAProxy serves what is stored, the mistake is named,
// and the controller goes on as soon as it is mended.
func TestSettingsBrokenAtARestart(t *testing.T) {
	s := start(t, func(s *stage) string { return s.settings })
	s.until("the deployment", func() bool { return strings.Contains(s.log.String(), "event=instance.deployed") })
	s.stop()
	s.write(s.settings, strings.Replace(s.text, "svc.Spec.Ports", "svc.Spec.Prots", 1))
	s.run(s.settings)
	s.until("the answer of before", func() bool { return s.get("shop.test") == "served by haptic" })
	s.until("the report", func() bool { return strings.Contains(s.log.String(), "svc.Spec.Prots undefined") })
	s.write(s.settings, strings.Replace(s.text, "X-Served-By haptic", "X-Served-By settings", 1))
	s.until("the new header", func() bool { return s.get("shop.test") == "served by settings" })
}

// TestSettingsFromConfigMap: the same from a ConfigMap, which is a manifest here.
func TestSettingsFromConfigMap(t *testing.T) {
	configMap := func(text string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: haptic}\ndata:\n  settings.yaml: |\n    " +
			strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
	}
	s := start(t, func(s *stage) string {
		s.write(filepath.Join(s.manifests, "settings.yaml"), configMap(s.text))
		return "configmap:haptic/settings"
	})
	s.write(filepath.Join(s.manifests, "settings.yaml"), configMap(strings.Replace(s.text, "X-Served-By haptic", "X-Served-By settings", 1)))
	s.until("the new header", func() bool { return s.get("shop.test") == "served by settings" })
}

// TestCustomResources: each goes over the objects of a CRD, in a folder of
// manifests; one that is wrong is named with the line of the settings, and all
// others are served.
func TestCustomResources(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: routes.example.test}\n" +
		"spec: {group: example.test, scope: Namespaced, names: {plural: routes, kind: Route}, versions: [{name: v1, served: true, storage: true}]}\n---\n"
	route := func(name, host, address string) string {
		ip, port, _ := net.SplitHostPort(address)
		return fmt.Sprintf("apiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: shop, name: %s}\nspec: {hosts: [%s], servers: [{address: %s, port: %s}]}\n", name, host, ip, port)
	}
	var backend string
	s := newStage(t, "testdata/routes.yaml", func(address string) string {
		backend = address
		return crd + route("web", "Shop.test", address)
	})
	s.run(s.settings)
	s.until("the first answer", func() bool { return s.get("shop.test") == "served by " })
	s.write(filepath.Join(s.manifests, "blog.yaml"), route("blog", "blog.test", backend))
	s.until("the other route", func() bool { return s.get("blog.test") == "served by " })

	s.write(filepath.Join(s.manifests, "blog.yaml"), route("blog", "news.test", backend)+"---\n"+route("bad", "bad.test", "nowhere:x"))
	s.until("the route that changed", func() bool { return s.get("news.test") == "served by " })
	s.until("the report", func() bool { return strings.Contains(s.log.String(), "Route shop/bad") })
	line := strings.Count(s.text[:strings.Index(s.text, "digInt(server")], "\n") + 1
	require.Contains(t, s.log.String(), fmt.Sprintf("%s:%d", s.settings, line))
	require.Contains(t, s.log.String(), "blog.yaml")
	require.Equal(t, "served by ", s.get("shop.test"))
	require.Equal(t, "no route\n", s.get("bad.test"))
}

// TestRightsOfHAProxy: where this is root, haproxy checks configurations as the account
// that it serves under.
func TestRightsOfHAProxy(t *testing.T) {
	checks, ok := (&controller{log: kit.NewLog(io.Discard)}).validator(dataplane.Layout{}).(*validate.Validator)
	require.True(t, ok)
	require.Equal(t, dataplane.DefaultUser(), checks.User)
	require.Equal(t, os.Geteuid() == 0, checks.User != "")
}

// TestLoggingOfSettings: level and format of the settings take effect while the
// controller runs, and what they no longer say is the default.
func TestLoggingOfSettings(t *testing.T) {
	s := start(t, func(s *stage) string { return s.settings })
	said := func(marks ...string) func() bool {
		mark := len(s.log.String())
		return func() bool {
			for line := range strings.Lines(s.log.String()[mark:]) {
				if !slices.ContainsFunc(marks, func(m string) bool { return !strings.Contains(line, m) }) {
					return true
				}
			}
			return false
		}
	}
	is := said(`"level":"INFO"`, "new settings are in use")
	s.write(s.settings, s.text+"logging: {format: json}\n")
	s.until("a line in JSON", is)
	is = said("level=INFO", "new settings are in use")
	s.write(s.settings, s.text)
	s.until("a line of text", is)
	header := func(name string) string {
		return strings.Replace(s.text, "X-Served-By haptic", "X-Served-By "+name, 1) + "logging: {level: warn}\n"
	}
	s.write(s.settings, header("first"))
	s.until("the header", func() bool { return s.get("shop.test") == "served by first" })
	mark := len(s.log.String())
	s.write(s.settings, header("second"))
	s.until("the header", func() bool { return s.get("shop.test") == "served by second" })
	s.stop()
	require.NotContains(t, s.log.String()[mark:], "level=INFO")
}
