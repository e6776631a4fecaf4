package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// HAProxy is killed: the controller starts it again as it was, and later
// changes reach the new one.
func TestHAProxyKilled(t *testing.T) {
	k := newSite(t)
	c, v := startSite(t, options{})
	// A change of the running process alone must survive as well.
	k.endpoints("web", backendPort, host("11"))
	eventually(t, "a new endpoint answers", v.expect("web.test", "/", endpoint(host("11"), backendPort)))

	for i, kind := range []string{"worker", "master"} {
		t.Run(kind, func(t *testing.T) {
			before := map[string]int{}
			eventually(t, "HAProxy says which processes it has", func() error {
				all, err := c.procs()
				for _, p := range all {
					before[p.kind] = p.pid
				}
				if err == nil && len(before) != 2 {
					err = fmt.Errorf("it has %v", all)
				}
				return err
			})
			must(t, syscall.Kill(before[kind], syscall.SIGKILL))
			eventually(t, "HAProxy runs again", func() error {
				if err := gone([]int{before["worker"]}); err != nil {
					return err
				}
				now, err := c.worker()
				if err == nil && now == before["worker"] {
					err = errors.New("the worker is the one from before")
				}
				return err
			})
			at := host(fmt.Sprint(11 + i))
			eventually(t, "the site answers as before", v.expect("web.test", "/", endpoint(at, backendPort)))
			at = host(fmt.Sprint(12 + i))
			k.endpoints("web", backendPort, at)
			eventually(t, "a change is taken", v.expect("web.test", "/", endpoint(at, backendPort)))
			name := "after-" + kind
			k.ingress(name, site(name+".test", "web"))
			eventually(t, "a new Ingress is taken", v.expect(name+".test", "/", endpoint(at, backendPort)))
		})
	}
}

// The controller is killed and has no time to clean up: HAProxy serves on, and the
// next one in the same folder takes it over without a reload. No request fails, and
// nothing stays when that one ends.
func TestControllerKilled(t *testing.T) {
	k := newSite(t)
	state := shortDir(t)
	c, v := startSite(t, options{state: state})
	worker, tr := c.mustWorker(), startTraffic(t, v, "web.test")
	for i := range 3 {
		must(t, c.cmd.Process.Kill())
		<-c.done
		eventually(t, "HAProxy serves on", tr.keepsFlowing(100))
		c = startController(t, options{state: state})
		at := host(fmt.Sprint(11 + i))
		k.endpoints("web", backendPort, at)
		eventually(t, "a change is taken", answeredBy(v, "web.test", []string{endpoint(at, backendPort)}))
		eventually(t, "and stored", func() error { // killed before, it would leave a mark to reload once
			if !strings.Contains(c.out.String(), "runtime, no reload") {
				return errors.New("it is under way")
			}
			return nil
		})
	}
	if now := c.mustWorker(); now != worker {
		t.Errorf("HAProxy was reloaded or started anew: worker %d in place of %d", now, worker)
	}
	tr.noFailures(t, 500)
	c.stop()
	eventually(t, "no HAProxy is left", noHAProxy)
}

func noHAProxy() error {
	for _, p := range processes() {
		if p.name == "haproxy" {
			return fmt.Errorf("haproxy %d still runs, a child of %d", p.pid, p.parent)
		}
	}
	return nil
}

// There is no haproxy to start: the error says so, and which.
func TestHAProxyMissing(t *testing.T) {
	newSite(t)
	binary, err := exec.LookPath("haproxy")
	must(t, err)
	// It is found without PATH, too, so it must really be away.
	must(t, unix.Mount(os.DevNull, binary, "", unix.MS_BIND, ""))
	back := sync.OnceFunc(func() {
		if err := unix.Unmount(binary, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(back)
	c := startController(t, options{env: []string{"PATH=" + shortDir(t)}, notReady: true})
	eventually(t, "the output says what is missing", func() error {
		for line := range strings.Lines(c.out.String()) {
			if strings.Contains(line, "level=ERROR") && strings.Contains(line, "haproxy is neither in PATH") {
				return nil
			}
		}
		return errors.New("it does not say so")
	})
	if _, err := c.page("/readyz"); err == nil {
		t.Error("the controller is ready without a haproxy")
	}
	back()
	c.awaitReady(2 * patience)
	eventually(t, "once it is there the site answers", c.visit().expect("web.test", "/", endpoint(host("10"), backendPort)))
}

// Something else has the port: the error says which, and once it is free the
// controller serves, by itself or when started again.
func TestPortTaken(t *testing.T) {
	newSite(t)
	addr := host("2") + ":8080"
	taken, err := net.Listen("tcp", addr)
	must(t, err)
	defer taken.Close()

	state := shortDir(t)
	c := startController(t, options{state: state, notReady: true})
	eventually(t, "the output names the port", func() error {
		if !strings.Contains(c.out.String(), addr) || !strings.Contains(c.out.String(), "in use") {
			return fmt.Errorf("nothing is said of %s in:\n%s", addr, c.out.tail())
		}
		return nil
	})
	if _, err := c.page("/readyz"); err == nil {
		t.Error("the controller is ready although HAProxy cannot listen")
	}
	must(t, taken.Close())
	if c.ended() != nil {
		t.Logf("the controller has ended: %v", c.err)
		c = startController(t, options{state: state})
	}
	c.awaitReady(2 * patience)
	eventually(t, "the site answers", c.visit().expect("web.test", "/", endpoint(host("10"), backendPort)))
}

// The disk is full: the error says so, what is served stays, and when there is
// space again the change arrives.
func TestDiskFull(t *testing.T) {
	k := newSite(t)

	state := shortDir(t)
	must(t, unix.Mount("tmpfs", state, "tmpfs", 0, "size=1m,mode=755"))
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c, v := startSite(t, options{state: state})
	mark := c.reloads()
	tr := startTraffic(t, v, "web.test")

	ballast := filepath.Join(state, "ballast")
	fillDisk(t, ballast)
	printed := c.out.Len()
	k.ingress("new", site("new.test", "web"))
	eventually(t, "the output says why", func() error {
		if !strings.Contains(c.out.After(printed), unix.ENOSPC.Error()) {
			return errors.New("nothing is said of the disk")
		}
		return nil
	})
	must(t, c.ended())
	eventually(t, "the site is still served", tr.keepsFlowing(50))
	c.expectReloads(mark, 0)

	must(t, os.Remove(ballast))
	eventuallyWithin(t, 2*patience, "the change arrives", v.expect("new.test", "/", endpoint(host("10"), backendPort)))
	tr.noFailures(t, 100)
}

// fillDisk writes until no byte is left.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(bytes.Repeat([]byte{'x'}, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// Ctrl-C ends the controller and its HAProxy, soon, whatever is going on.
func TestCtrlC(t *testing.T) {
	k := newSite(t)

	t.Run("in peace", func(t *testing.T) {
		c := startController(t, options{})
		if len(descendants(c.pid())) == 0 {
			t.Fatal("the controller has no HAProxy")
		}
		c.stop() // it asserts
		if code := c.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the controller ended with %d, want 0:\n%s", code, c.out.tail())
		}
	})
	t.Run("with a slow request", func(t *testing.T) {
		slow := startBackends(t, backendPort+1)
		c := startController(t, options{})
		v := c.visit()
		k.endpoints("web", backendPort+1, host("10"))
		eventually(t, "the site answers", v.expect("web.test", "/", endpoint(host("10"), backendPort+1)))
		slow.slow(patience)
		asked := make(chan error, 1)
		go func() {
			_, err := v.get("web.test", "/")
			asked <- err
		}()
		eventually(t, "the request has arrived", func() error {
			if slow.busy.Load() == 0 {
				return errors.New("no request is at the backend")
			}
			return nil
		})
		c.stop()
		<-asked
	})
	t.Run("while the API server is away", func(t *testing.T) {
		c := startController(t, options{})
		env.cluster.api.kill()
		c.stop()
		must(t, env.cluster.startAPI())
	})
}
