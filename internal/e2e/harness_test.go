package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What the other tests rely on to notice a fault is tried here without a
// controller: a harness that cannot fail proves nothing.

// The API server keeps what it was told when it is killed and started again.
func TestHarnessClusterSurvivesAKill(t *testing.T) {
	k := newKube(t)
	k.service("web", backendPort, subnet+"9")
	env.cluster.api.kill()
	must(t, env.cluster.startAPI())
	k.endpoints("web", backendPort, subnet+"10")
}

// Backends answer on any address, with that address.
func TestHarnessBackends(t *testing.T) {
	startBackends(t, backendPort)
	for _, addr := range []string{subnet + "7", subnet + "200"} {
		v := newVisitor("http", endpoint(addr, backendPort), noTLS())
		if err := v.expect("any.test", "/", endpoint(addr, backendPort))(); err != nil {
			t.Error(err)
		}
	}
}

// Traffic counts failures, and reloads and workers are seen through the master.
func TestHarnessSeesReloadsAndFailures(t *testing.T) {
	startBackends(t, backendPort)
	dir := shortDir(t)
	cfg := fmt.Sprintf(`global
  stats socket %[1]s/run.sock level admin
defaults
  mode http
  timeout connect 1s
  timeout client 5s
  timeout server 5s
listen web
  bind %[2]s2:8080
  server one %[2]s3:%[3]d
`, dir, subnet, backendPort)
	file := filepath.Join(dir, "haproxy.cfg")
	must(t, os.WriteFile(file, []byte(cfg), 0o600))
	p, err := startProcess("haproxy", nil, "haproxy", "-W", "-S", filepath.Join(dir, "master.sock"), "-f", file)
	must(t, err)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("HAProxy printed:\n%s", p.out.tail())
		}
	})
	c := &controller{process: p, t: t, http: subnet + "2:8080", state: dir}
	v := c.visit()
	eventually(t, "HAProxy answers", v.expect("a.test", "/", endpoint(subnet+"3", backendPort)))

	before, worker := c.reloads(), c.mustWorker()
	must(t, p.cmd.Process.Signal(syscall.SIGUSR2))
	eventually(t, "HAProxy reloads", func() error {
		now, err := c.worker()
		if err == nil && now == worker {
			err = errors.New("the worker is still the same")
		}
		return err
	})
	if got := c.reloads() - before; got != 1 {
		t.Errorf("%d reloads were counted, want 1", got)
	}

	worker = c.mustWorker()
	tr := startTraffic(t, v, "a.test")
	eventually(t, "requests are answered", tr.keepsFlowing(10))
	p.kill()
	eventually(t, "the killed HAProxy is noticed", func() error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if tr.failures == 0 {
			return errors.New("no request has failed")
		}
		return nil
	})
	eventually(t, "its worker ends with it", func() error { return gone([]int{p.pid(), worker}) })
}
