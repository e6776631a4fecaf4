package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// New Ingresses with new Services answer without a reload, as long as there are spare
// backends, and all of them with one where there are too few. The process has their names
// after that. HAProxy 3.4 has them at once, takes no reload for more than there are spare
// ones, and forgets those that go.
func TestNewIngressesTakeSpares(t *testing.T) {
	const spares = 110
	startBackends(t, backendPort)
	k := newKube(t)
	k.service("base", backendPort, host("10"))
	k.ingress("base", site("base.test", "base"))
	makes := makesBackends(t)
	c := startController(t, options{args: []string{"-spare-backends", fmt.Sprint(spares)}})
	v := c.visit()
	eventually(t, "the site answers", v.expect("base.test", "/", endpoint(host("10"), backendPort)))
	tr := startTraffic(t, v, "base.test")
	mark, worker := c.reloads(), c.mustWorker()
	name := func(i int) string { return fmt.Sprintf("n%03d", i) }
	create := func(ctx context.Context, i int) error {
		if err := k.createService(ctx, name(i), backendPort, host(fmt.Sprint(20+i))); err != nil {
			return err
		}
		return k.createIngress(ctx, name(i), site(name(i)+".test", name(i)))
	}
	answers := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			eventually(t, "a new host answers", v.expect(name(i)+".test", "/", endpoint(host(fmt.Sprint(20+i)), backendPort)))
		}
	}
	burst := func(from, to int) {
		t.Helper()
		start := time.Now()
		inParallel(t, to-from, func(ctx context.Context, i int) error { return create(ctx, from+i) })
		answers(from, to)
		t.Logf("%d new Ingresses answered after %v", to-from, time.Since(start).Round(time.Millisecond))
	}

	burst(0, 1)
	burst(1, 101)
	k.endpoints(name(0), backendPort, host("200"))
	eventually(t, "another endpoint of a new Service answers", v.expect(name(0)+".test", "/", endpoint(host("200"), backendPort)))
	k.must(k.deleteIngress(t.Context(), name(1)))
	eventually(t, "a deleted host is not found", v.expectStatus(name(1)+".test", "/", http.StatusNotFound))
	k.must(k.createIngress(t.Context(), name(1), site(name(1)+".test", name(1))))
	answers(1, 2)
	c.expectReloads(mark, 0)
	if now := c.mustWorker(); now != worker {
		t.Errorf("the worker is %d now and was %d", now, worker)
	}
	if has := c.backends(); strings.Contains(has, "_n005_") != makes || !strings.Contains(has, "haptic-spare-0") {
		t.Errorf("the process has other backends:\n%s", has)
	}

	burst(101, 130) // more than there are
	answers(1, 101)
	if now := c.reloads() - mark; (now == 0) != makes {
		t.Errorf("%d reloads for more new backends than there are spare ones", now)
	}
	eventually(t, "the process has the names", func() error {
		if has := c.backends(); !strings.Contains(has, "_n005_") || !strings.Contains(has, "_n101_") {
			return fmt.Errorf("it has %s", has)
		}
		return nil
	})
	k.must(k.deleteIngress(t.Context(), name(5)))
	eventually(t, "a deleted host is not found", v.expectStatus(name(5)+".test", "/", http.StatusNotFound))
	if makes {
		eventually(t, "HAProxy has deleted the backend", func() error {
			if has := c.backends(); strings.Contains(has, "_n005_") {
				return fmt.Errorf("it has %s", has)
			}
			return nil
		})
	}
	tr.noFailures(t, 100)
}

// makesBackends reports whether the haproxy in PATH makes backends at runtime: from 3.4 on.
func makesBackends(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("haproxy", "-v").Output()
	var major, minor int
	if _, bad := fmt.Sscanf(string(out), "HAProxy version %d.%d", &major, &minor); err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	return major > 3 || major == 3 && minor >= 4
}

// backends lists those of the HAProxy on this host.
func (c *controller) backends() string {
	c.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(c.state, "run", "haproxy.sock"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "show backend\n"); err != nil {
		c.t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(all)
}
