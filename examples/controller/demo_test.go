package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	remove, err := hangingHAProxy()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { remove(); os.Exit(code) }))
}

// output is what a controller printed, readable while it prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Reset()
}

// demo is a running demo over a folder of its own.
type demo struct {
	tb             testing.TB
	manifests      string
	http, https    string
	port           int // first of the backends
	stdout, stderr output
	client         *http.Client
	stop           func()
}

func needHAProxy(tb testing.TB) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
}

// startDemo runs what "make demo" runs until the test ends.
func startDemo(tb testing.TB, flags ...string) *demo {
	needHAProxy(tb)
	d := &demo{tb: tb, manifests: tb.TempDir(), http: freeAddress(tb), https: freeAddress(tb)}
	require.NoError(tb, os.CopyFS(d.manifests, os.DirFS("demo")))
	d.client = &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, ServerName: "shop.demo.test"},
	}}
	d.port = demoPort(tb)
	d.rewrite("18080", "18081")
	d.start(flags...)
	return d
}

// start runs the controller, after a stop once more, and waits until it deployed.
func (d *demo) start(flags ...string) {
	d.launch(flags...)
	d.until(func() bool { return strings.Contains(d.stdout.String(), "The demo is live") })
}

// launch is start without waiting for the first deployment.
func (d *demo) launch(flags ...string) {
	tb := d.tb
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	d.stdout.reset()
	d.stderr.reset()
	args := append([]string{"-demo", "-demo-port", strconv.Itoa(d.port), "-manifests", d.manifests, "-http-addr", d.http, "-https-addr", d.https, "-debug-addr", "127.0.0.1:0", "-access-log", "off"}, flags...)
	go func() { done <- run(ctx, args, &d.stdout, &d.stderr) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case code := <-done:
			require.Zero(tb, code, "%s", d.stderr.String())
			require.Contains(tb, d.stderr.String(), "stopping: HAProxy is stopped with this controller")
		case <-time.After(patience):
			tb.Errorf("the controller does not end:\n%s", d.stderr.String())
		}
	})
	tb.Cleanup(d.stop)
}

// demoPort finds two ports that are free on all addresses of the demo, which
// may be running on this machine with its own, and holds them.
func demoPort(tb testing.TB) int {
	for range 100 {
		port, err := hold(tb, demoFirst, 0)
		require.NoError(tb, err)
		_, err = hold(tb, demoFirst, port+1)
		for i := byte(demoFirst + 1); i <= demoLast && err == nil; i++ {
			if _, err = hold(tb, i, port); err == nil {
				_, err = hold(tb, i, port+1)
			}
		}
		if err == nil {
			return port
		}
	}
	tb.Fatal("no free ports")
	return 0
}

// rewrite gives the manifests the ports of this demo.
func (d *demo) rewrite(first, second string) {
	names, err := filepath.Glob(filepath.Join(d.manifests, "*.yaml"))
	require.NoError(d.tb, err)
	for _, name := range names {
		d.edit(filepath.Base(name), func(s string) string {
			return strings.NewReplacer(first, d.first(), second, d.second()).Replace(s)
		})
	}
}

func (d *demo) first() string  { return strconv.Itoa(d.port) }
func (d *demo) second() string { return strconv.Itoa(d.port + 1) }

// patience is for what happens at once on a machine that has nothing else to do.
const patience = time.Minute

// freeAddress is one that nobody listens at.
func freeAddress(tb testing.TB) string {
	port, err := hold(tb, 1, 0)
	require.NoError(tb, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// hold keeps the kernel from giving a port of 127.0.0.host to anybody as long as
// the test runs, to a connection either: a socket that does not listen has it,
// beside which others can bind to it. Port 0 is any that is free.
func hold(tb testing.TB, host byte, port int) (held int, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(tb, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, host}, Port: port}); err != nil {
		return 0, err
	}
	address, err := syscall.Getsockname(fd)
	require.NoError(tb, err)
	return address.(*syscall.SockaddrInet4).Port, nil
}

// until waits for a condition, and shows what was printed where it never holds.
func (d *demo) until(holds func() bool) {
	d.tb.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			d.tb.Fatalf("waited in vain\n%s\n%s", d.stdout.String(), d.stderr.String())
		}
		<-time.After(time.Millisecond)
	}
}

// get returns the status and the body of a request.
func (d *demo) get(url, host string) (int, string) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(d.tb, err)
	req.Host = host
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(d.tb, err)
	return resp.StatusCode, string(body)
}

func (d *demo) answers(host, path string) string {
	_, body := d.get("http://"+d.http+path, host)
	address, _, _ := strings.Cut(body, " ")
	return strings.NewReplacer(":"+d.first(), ":18080", ":"+d.second(), ":18081").Replace(address)
}

// edit saves a manifest as an editor does: a new file in place of the old one.
func (d *demo) edit(name string, change func(string) string) {
	file := filepath.Join(d.manifests, name)
	text, err := os.ReadFile(file)
	if !os.IsNotExist(err) {
		require.NoError(d.tb, err)
	}
	require.NoError(d.tb, os.WriteFile(file+".new", []byte(change(string(text))), 0o644))
	require.NoError(d.tb, os.Rename(file+".new", file))
}

// plans are what was printed, with the ports of the usual demo.
func (d *demo) plans() string {
	return strings.NewReplacer(":"+d.first(), ":18080", ":"+d.second(), ":18081").Replace(d.stdout.String())
}

func TestDemo(t *testing.T) {
	t.Parallel()
	d := startDemo(t)

	t.Run("serves its sites", func(t *testing.T) {
		require.Contains(t, []string{"127.0.0.11:18080", "127.0.0.12:18080"}, d.answers("shop.demo.test", "/"))
		require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cart/1"), "Prefix")
		require.NotEqual(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cartoons"), "Prefix, by whole elements")
		require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/health"), "Exact")
		require.NotEqual(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/health/"), "Exact")
		require.Equal(t, "127.0.0.14:18080", d.answers("blog.demo.test", "/posts"), "ImplementationSpecific, by characters")
		status, _ := d.get("http://"+d.http+"/", "nobody.test")
		require.Equal(t, http.StatusNotFound, status)
		status, body := d.get("https://"+d.https+"/", "shop.demo.test")
		require.Equal(t, http.StatusOK, status, body)
	})

	t.Run("a new address without a reload", func(t *testing.T) {
		d.edit("shop-endpoints.yaml", func(s string) string { return strings.Replace(s, "127.0.0.13", "127.0.0.20", 1) })
		d.until(func() bool { return d.answers("shop.demo.test", "/cart") == "127.0.0.20:18080" })
		d.until(func() bool {
			return strings.Contains(d.plans(), "address: 127.0.0.13:18080 -> 127.0.0.20:18080\nPlan: 0 to create, 1 to update, 0 to delete; runtime, no reload.")
		})
	})

	t.Run("a port alone, more endpoints, fewer", func(t *testing.T) {
		d.edit("blog.yaml", func(s string) string {
			return strings.Replace(s, d.first()+"}]\nendpoints", d.second()+"}]\nendpoints", 1)
		})
		d.until(func() bool { return d.answers("blog.demo.test", "/post") == "127.0.0.14:18081" })
		d.edit("blog.yaml", func(s string) string { return s + "  - addresses: [127.0.0.15]\n" })
		d.until(func() bool { return d.answers("blog.demo.test", "/post") == "127.0.0.15:18081" })
		d.edit("blog.yaml", func(s string) string { return strings.Replace(s, "  - addresses: [127.0.0.14]\n", "", 1) })
		d.until(func() bool { return strings.Contains(d.plans(), "address: 127.0.0.14:18081 -> (none)") })
		for range 4 {
			require.Equal(t, "127.0.0.15:18081", d.answers("blog.demo.test", "/post"))
		}
		require.Zero(t, strings.Count(d.plans(), "one reload"), "the first deployment is a start:\n%s", d.plans())
		require.Equal(t, 1, strings.Count(d.plans(), "HAProxy starts"), "%s", d.plans())
	})

	t.Run("a new Ingress without a reload", func(t *testing.T) {
		d.edit("wiki.yaml", func(string) string {
			blog, err := os.ReadFile("demo/blog.yaml")
			require.NoError(t, err)
			return strings.NewReplacer("blog", "wiki", "127.0.0.14", "127.0.0.25", "18080", d.first()).Replace(string(blog))
		})
		d.until(func() bool { return d.answers("wiki.demo.test", "/post") == "127.0.0.25:18080" })
		d.until(func() bool {
			return strings.Contains(d.plans(), "+ backend demo_wiki_80 (runtime)\n    spare backend (none) -> haptic-spare-")
		})
		require.Zero(t, strings.Count(d.plans(), "one reload"), "%s", d.plans())
	})

	t.Run("a broken manifest changes nothing", func(t *testing.T) {
		before := d.plans()
		d.edit("blog.yaml", func(s string) string { return strings.Replace(s, "rules:", "ruels:", 1) })
		d.until(func() bool { return regexp.MustCompile(`blog\.yaml:\d+: .*ruels`).MatchString(d.stderr.String()) })
		require.Equal(t, "127.0.0.15:18081", d.answers("blog.demo.test", "/post"))
		require.NotContains(t, strings.TrimPrefix(d.plans(), before), "blog") // the wiki's servers may come now
		d.edit("blog.yaml", func(s string) string { return strings.Replace(s, "ruels:", "rules:", 1) })
	})

	t.Run("a bad resource is refused by name, others are served", func(t *testing.T) {
		d.edit("bad.yaml", func(string) string {
			return strings.Replace(badIngress, "HOST", `"a\"b"`, 1)
		})
		d.until(func() bool {
			return strings.Contains(d.stderr.String(), "Ingress demo/bad") && strings.Contains(d.stderr.String(), "bad.yaml:")
		})
		d.edit("bad.yaml", func(string) string { return strings.Replace(badIngress, "HOST", "mended.demo.test", 1) })
		d.until(func() bool { return d.answers("mended.demo.test", "/") == "127.0.0.15:18081" })
	})

	t.Run("ends and leaves nothing behind", func(t *testing.T) {
		d.stop()
		_, err := net.Dial("tcp", d.http)
		require.Error(t, err, "HAProxy is gone")
	})
}

const badIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: bad, namespace: demo}
spec:
  ingressClassName: haptic
  rules:
    - host: HOST
      http:
        paths: [{path: /, pathType: Prefix, backend: {service: {name: blog, port: {number: 80}}}}]
`

func TestPreflight(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	preflight := func(args ...string) (int, string, string) {
		var stdout, stderr output
		code := run(t.Context(), append([]string{"-once", "-dry-run", "-allow-endpoint", "127.0.0.0/8"}, args...), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	state := filepath.Join(t.TempDir(), "state")
	code, plan, stderr := preflight("-manifests", "demo", "-local", state)
	require.Equal(t, 2, code, "%s", stderr)
	require.Contains(t, plan, "+ backend demo_shop-web_80")

	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "x.yaml"), []byte("kind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: x}\nspec: {ruels: 1}\n"), 0o644))
	code, _, stderr = preflight("-manifests", broken, "-local", state)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "x.yaml:4")

	require.NoError(t, os.WriteFile(filepath.Join(broken, "x.yaml"), []byte(strings.Replace(badIngress, "HOST", "'%'", 1)), 0o644))
	code, _, stderr = preflight("-manifests", broken, "-local", state)
	require.Equal(t, 2, code, "of no class of ours: %s", stderr)
	require.Contains(t, stderr, `(`+filepath.Join(broken, "x.yaml")+`:2): spec.ingressClassName: there is no IngressClass \"haptic\"`)
	class, err := os.ReadFile("demo/class.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(broken, "class.yaml"), class, 0o644))
	code, _, stderr = preflight("-manifests", broken, "-local", state)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "Ingress demo/bad")

	code, _, stderr = preflight("-manifests", "demo", "-local", state, "-templates", writeTemplates(t, "haproxy.cfg", "{{ settings.Nope }}\n"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "haproxy.cfg:1:")
	code, _, stderr = preflight("-manifests", "demo", "-local", state, "-templates", writeTemplates(t, "haproxy.cfg", "global\n    nonsense\n"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `error: validate: haproxy.cfg:2: unknown keyword "nonsense": nonsense; rendered as line 2 of haproxy.cfg`)

	code, _, stderr = preflight("-manifests", filepath.Join(broken, "nowhere"), "-local", state)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nowhere")
}

// TestPreflightAfterDeployment finds no difference in what was deployed.
func TestPreflightAfterDeployment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // haproxy runs under an account of its own
	state := filepath.Join(dir, "s")
	d := startDemo(t, "-local", state)
	d.edit("shop-endpoints.yaml", func(s string) string {
		return strings.Replace(s, "  - addresses: [127.0.0.11]\n", "", 1) + "  - addresses: [127.0.0.16]\n"
	})
	d.until(func() bool { return strings.Contains(d.plans(), "address: 127.0.0.11:18080 -> (none)") })
	d.until(func() bool { return strings.Contains(d.plans(), "address: (none) -> 127.0.0.16:18080") })
	d.stop()

	var stdout, stderr output
	args := []string{"-once", "-dry-run", "-allow-endpoint", "127.0.0.0/8", "-manifests", d.manifests, "-local", state, "-http-addr", d.http, "-https-addr", d.https, "-access-log", "off"}
	require.Equal(t, 0, run(t.Context(), args, &stdout, &stderr), "%s%s", stdout.String(), stderr.String())
	d.edit("shop-endpoints.yaml", func(s string) string { return strings.Replace(s, "127.0.0.12", "127.0.0.17", 1) })
	require.Equal(t, 2, run(t.Context(), args, &stdout, &stderr))
	require.Contains(t, stdout.String(), "address: 127.0.0.12:"+d.first()+" -> 127.0.0.17:"+d.first())
}

// TestSpoiltState serves all the same when the stored configuration cannot be
// read any more.
func TestSpoiltState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	state := filepath.Join(dir, "s")
	require.NoError(t, os.Mkdir(state, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(state, "haproxy.cfg"), []byte("glob\x00al"), 0o644))
	d := startDemo(t, "-local", state)
	require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cart"))
	require.Contains(t, d.stderr.String(), "the stored configuration cannot be read")
}

func writeTemplates(t *testing.T, name, text string) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	return dir
}

func TestFlagsThatDoNotFit(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-dry-run -manifests demo", "-dry-run needs -once"},
		{"-once -manifests demo", "-once without -dry-run needs -endpoint or -pods: "},
		{"-local x -endpoint http://127.0.0.1:1", "-local excludes -endpoint and -pods"},
		{"-manifests demo -leader-elect", "needs a cluster"},
		{"-lease nonsense", "want namespace/name"},
		{"-manifests demo -longest-timeout 500h", "1s to 480h"},
		{"-manifests demo -upgrade h2c", "HAProxy takes HTTP/2 and TLS itself"},
		{"-demo", "-demo needs -manifests"},
		{"-manifests demo extra", "unexpected argument extra"},
		{"-manifests demo -shared-host shop_1.test", "not a host name"},
	} {
		var stdout, stderr output
		require.Equal(t, 1, run(t.Context(), strings.Fields(c.args), &stdout, &stderr), c.args)
		require.Contains(t, stderr.String(), c.want)
	}
	var stdout, stderr output
	require.Zero(t, run(t.Context(), []string{"-h"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "-manifests")
}

// BenchmarkEndpointChange measures from the saved EndpointSlice to the first
// answer of the new address, a second apart so that each change comes after a
// pause; "busy" saves the next one as soon as the last is live, "logged" with an access
// log.
func BenchmarkEndpointChange(b *testing.B) {
	for _, c := range []struct {
		name, log string
		pause     time.Duration
	}{{"paused", "off", 600 * time.Millisecond}, {"busy", "off", 0}, {"logged", "http", 0}} {
		b.Run(c.name, func(b *testing.B) {
			d := startDemo(b, "-access-log", c.log)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				old, now := fmt.Sprintf("127.0.0.%d]", 13+i%10), fmt.Sprintf("127.0.0.%d", 13+(i+1)%10)
				<-time.After(c.pause)
				start := time.Now()
				d.edit("shop-endpoints.yaml", func(s string) string {
					head, cart, _ := strings.Cut(s, "name: shop-cart-1")
					return head + "name: shop-cart-1" + strings.Replace(cart, old, now+"]", 1)
				})
				for d.answers("shop.demo.test", "/cart") != now+":18080" {
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			require.Zero(b, strings.Count(d.plans(), "one reload"), "the first deployment is a start")
		})
	}
}
