package e2e

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// reloadMetric counts the reloads of each endpoint.
const reloadMetric = "haptic_reloads_total"

// options say how a controller is started; the zero value watches the cluster
// and runs a HAProxy of its own.
type options struct {
	binary    string   // default env.controller
	addr      string   // where HAProxy listens; default subnet.2
	debugPort int      // on 127.0.0.1; default 9090
	state     string   // folder of HAProxy; default a new one
	endpoints []string // Dataplane APIs to deploy to, instead of a HAProxy of its own
	args      []string // more flags
	env       []string // more environment
	notReady  bool     // do not wait until it is ready
	accessLog string   // default off
}

// controller is the reference controller as a process.
type controller struct {
	*process
	t           testing.TB
	http, https string // where HAProxy listens
	debug       string // where metrics, debug pages and readiness are
	state       string // folder of HAProxy

	again func() error // starts it once more, as it was started
}

// startController starts a controller and waits until it is ready. When the
// test ends it gets what Ctrl-C sends and must leave nothing behind.
func startController(t testing.TB, o options) *controller {
	t.Helper()
	if o.addr == "" {
		o.addr = subnet + "2"
	}
	if o.debugPort == 0 {
		o.debugPort = 9090
	}
	if o.state == "" {
		o.state = shortDir(t)
	}
	c := &controller{
		t: t, state: o.state,
		http: o.addr + ":8080", https: o.addr + ":8443", debug: fmt.Sprintf("127.0.0.1:%d", o.debugPort),
	}
	args := []string{"-kubeconfig", env.cluster.kubeconfig,
		"-http-addr", c.http, "-https-addr", c.https, "-metrics-addr", "", "-debug-addr", c.debug, "-debug-token-file", debugTokenFile(t)}
	if len(o.endpoints) == 0 && !slices.Contains(o.args, "-pods") {
		args = append(args, "-local", c.state)
	}
	for _, e := range o.endpoints {
		args = append(args, "-endpoint", e)
	}
	if o.binary == "" {
		o.binary = env.controller
	}
	if o.binary == env.controller || o.binary == env.raceController { // others may be from before the flag
		args = append(args, "-access-log", cmp.Or(o.accessLog, "off")) // all that is printed is kept, and searched
	}
	c.again = func() (err error) {
		c.process, err = startProcess("controller", o.env, o.binary, append(args, o.args...)...)
		return err
	}
	must(t, c.again())
	t.Cleanup(func() {
		c.stop()
		if t.Failed() {
			t.Logf("the controller printed:\n%s", c.out.tail())
		}
	})
	if !o.notReady {
		c.awaitReady(patience)
	}
	return c
}

// shortDir is a new folder with a path short enough for sockets, which may
// have 107 bytes.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(env.dir, "s")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// HAProxy may give up root and must still reach its files.
	must(t, os.Chmod(dir, 0o755))
	return dir
}

func (c *controller) awaitReady(limit time.Duration) {
	c.t.Helper()
	eventuallyWithin(c.t, limit, "the controller is not ready", func() error {
		if err := c.ended(); err != nil {
			c.t.Fatal(err)
		}
		_, err := c.page("/readyz")
		return err
	})
}

// pageTime is how long a page of the debug server may take: a process that gets
// no processor for seconds is no failure.
const pageTime = 10 * time.Second

// debugToken is that of every controller here.
const debugToken = "canary-debug-token"

func debugTokenFile(t testing.TB) string {
	file := filepath.Join(shortDir(t), "token") // for a controller of any account
	must(t, os.WriteFile(file, []byte(debugToken), 0o644))
	return file
}

// page reads a page of the debug server.
func (c *controller) page(path string) (string, error) { return c.pageWithin(path, pageTime) }

func (c *controller) pageWithin(path string, limit time.Duration) (string, error) {
	client := http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://me:" + debugToken + "@" + c.debug + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", path, resp.Status, body)
	}
	return string(body), err
}

// stop sends what Ctrl-C sends: everything must end, soon, and leave no
// process behind.
func (c *controller) stop() {
	c.t.Helper()
	if c.ended() != nil {
		return
	}
	c.thaw() // or it would never hear the signal
	started := descendants(c.pid())
	took, err := c.terminate(syscall.SIGINT, patience)
	if err != nil {
		c.t.Error(err)
	}
	if took > 2*time.Second { // a processor that is busy is no failure
		c.t.Logf("the controller took %v to end, which should be less than 2 s", took)
	}
	// What was killed is gone as soon as it gets the processor to die on.
	if err := poll(context.Background(), patience, func() error { return gone(started) }); err != nil {
		c.t.Errorf("the controller left processes behind: %v", err)
		for _, pid := range running(started) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// crash kills the controller alone: its HAProxy is nobody's child then.
func (c *controller) crash() error {
	err := c.cmd.Process.Kill()
	<-c.done
	return err
}

// freeze stops the controller in its tracks, as a machine that hangs; its
// HAProxy goes on.
func (c *controller) freeze() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
}

// thaw lets a frozen controller go on.
func (c *controller) thaw() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		c.t.Fatal(err)
	}
}

// visit asks over HTTP.
func (c *controller) visit() *visitor { return newVisitor("http", c.http, noTLS()) }

// visitTLS asks over HTTPS and trusts what the configuration trusts.
func (c *controller) visitTLS(config *tls.Config) *visitor {
	return newVisitor("https", c.https, &http.Transport{TLSClientConfig: config})
}

func noTLS() *http.Transport { return &http.Transport{} }

// proc is what a line of "show proc" says about a process of HAProxy.
type proc struct {
	pid     int
	kind    string // "master" or "worker"
	reloads int    // of a master: since it started
}

// procs asks the master of HAProxy which processes it has: its first table,
// without old workers. It is the count that no bug in the controller changes.
func (c *controller) procs() ([]proc, error) {
	var errs []error
	for _, socket := range sockets(c.state) {
		text, err := command(socket, "show proc")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		current, _, _ := strings.Cut(text, "# old workers")
		var all []proc
		for line := range strings.Lines(current) {
			f := strings.Fields(line)
			if len(f) < 3 || f[1] != "master" && f[1] != "worker" {
				continue
			}
			pid, _ := strconv.Atoi(f[0])
			reloads, _ := strconv.Atoi(f[2])
			all = append(all, proc{pid, f[1], reloads})
		}
		if len(all) > 0 {
			return all, nil
		}
	}
	return nil, errors.Join(append(errs, fmt.Errorf("no master socket answers in %s", c.state))...)
}

// worker is the pid of the process that serves the traffic.
func (c *controller) worker() (int, error) {
	all, err := c.procs()
	for _, p := range all {
		if p.kind == "worker" {
			return p.pid, nil
		}
	}
	return 0, errors.Join(err, errors.New("HAProxy has no worker"))
}

func (c *controller) mustWorker() (pid int) {
	c.t.Helper()
	eventually(c.t, "HAProxy has a worker", func() (err error) {
		pid, err = c.worker()
		return err
	})
	return pid
}

// reloads counts how often HAProxy has read its configuration again. While it
// does, its master answers nobody.
func (c *controller) reloads() int {
	c.t.Helper()
	reloads := 0
	eventually(c.t, "the master of HAProxy answers", func() error {
		all, err := c.procs()
		if len(all) > 0 && all[0].kind == "master" {
			reloads = all[0].reloads
			return nil
		}
		return errors.Join(err, fmt.Errorf("no master among %v", all))
	})
	return reloads
}

// expectReloads fails the test if HAProxy was reloaded more or fewer times
// since the mark. The metric must agree.
func (c *controller) expectReloads(mark, want int) {
	c.t.Helper()
	now := c.reloads()
	if now-mark != want {
		c.t.Errorf("HAProxy was reloaded %d times, want %d", now-mark, want)
	}
	// The answer to a request can come before the deployment has ended.
	eventually(c.t, "the metric agrees with HAProxy", func() error {
		got, err := c.metric(reloadMetric)
		if err == nil && int(got) != now {
			err = fmt.Errorf("%s is %v after %d reloads", reloadMetric, got, now)
		}
		return err
	})
}

// metric sums all series of a metric; one that does not exist yet is 0.
func (c *controller) metric(name string) (float64, error) {
	families, err := c.metrics()
	return sum(families[name]), err
}

// metrics reads all metrics.
func (c *controller) metrics() (map[string]*dto.MetricFamily, error) {
	text, err := c.page("/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(text))
}

// sum adds up all series of a metric; nil is one that does not exist yet.
func sum(family *dto.MetricFamily) (total float64) {
	for _, m := range family.GetMetric() {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return total
}

// sockets lists the unix sockets below a folder.
func sockets(dir string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSocket != 0 {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// command sends a line to a socket of HAProxy and reads the whole answer.
func command(socket, line string) (string, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(pageTime))
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	// The master goes on waiting for commands until it sees their end.
	if err := conn.CloseWrite(); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}
