package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// Faults in the middle of a deployment: what was served stays served, and what
// was wanted arrives once the fault is over.

// A configuration is valid and HAProxy cannot load it all the same: a port that
// it opens anew is taken. What was served stays served.
func TestPortTakenAtReload(t *testing.T) {
	startBackends(t, backendPort)
	k, certs := newKube(t), newCertificates(t)
	k.service("web", backendPort, host("10"))
	k.ingress("web", site("web.test", "web"))
	c, v := startSite(t, options{})
	tr := startTraffic(t, v, "web.test")

	taken, err := net.Listen("tcp", c.https)
	must(t, err)
	defer taken.Close()
	printed := c.out.Len()
	k.secret("secure", certs.issue("secure.test"))
	k.ingress("secure", withTLS("secure", "secure.test"), site("secure.test", "web"))
	eventually(t, "the output names the port", func() error {
		if text := c.out.After(printed); !strings.Contains(text, c.https) || !strings.Contains(text, "cannot listen") {
			return errors.New("it does not")
		}
		return nil
	})
	eventually(t, "the site is still served", tr.keepsFlowing(50))
	k.endpoints("web", backendPort, host("11"))
	good := endpoint(host("11"), backendPort)
	eventually(t, "an endpoint does not wait for the port", v.expect("web.test", "/", good))
	k.must(taken.Close())
	eventuallyWithin(t, 2*patience, "the new site arrives", c.visitTLS(certs.client("secure.test")).expect("secure.test", "/", good))
	tr.noFailures(t, 100)
}

// The disk turns read-only: the error says so, what is served stays, and later
// the change arrives.
func TestDiskReadOnly(t *testing.T) {
	k := newSite(t)
	state := shortDir(t)
	must(t, unix.Mount("tmpfs", state, "tmpfs", 0, "size=16m,mode=755"))
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c, v := startSite(t, options{state: state})
	tr := startTraffic(t, v, "web.test")

	// A mount over it turns read-only while the files below stay open.
	must(t, unix.Mount(state, state, "", unix.MS_BIND, ""))
	must(t, unix.Mount("", state, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	printed := c.out.Len()
	k.ingress("new", site("new.test", "web"))
	eventually(t, "the output says why", func() error {
		if !strings.Contains(c.out.After(printed), unix.EROFS.Error()) {
			return errors.New("nothing is said of the disk")
		}
		return nil
	})
	eventually(t, "the site is still served", tr.keepsFlowing(50))
	must(t, unix.Unmount(state, unix.MNT_DETACH))
	eventuallyWithin(t, 2*patience, "the change arrives", v.expect("new.test", "/", endpoint(host("10"), backendPort)))
	tr.noFailures(t, 100)
}

// Endpoints that come and go ten times a second cost no reload and no request,
// and the last ones are what is served.
func TestEndpointsFlap(t *testing.T) {
	startBackends(t, backendPort)
	k := newKube(t)
	k.service("web", backendPort, host("10"), host("11"))
	k.ingress("web", site("web.test", "web"))
	c := startController(t, options{})
	v := c.visit()
	eventually(t, "the site answers", answeredBy(v, "web.test", []string{endpoint(host("10"), backendPort), endpoint(host("11"), backendPort)}))
	mark := c.reloads()
	tr := startTraffic(t, v, "web.test")
	tick := time.NewTicker(100 * time.Millisecond) // the rate is what is tested
	defer tick.Stop()
	for i := range 50 {
		<-tick.C
		k.endpoints("web", backendPort, host(fmt.Sprint(20+i%7)), host(fmt.Sprint(30+i%3)))
	}
	k.endpoints("web", backendPort, host("40"))
	eventually(t, "the last endpoint answers", answeredBy(v, "web.test", []string{endpoint(host("40"), backendPort)}))
	c.expectReloads(mark, 0)
	tr.noFailures(t, 200)
}

// The password of the Dataplane API changes while a configuration is on its way.
func TestCredentialsRotatedInMidDeployment(t *testing.T) {
	k := newSite(t)
	api := dataplanetest.New(t, &dataplanetest.Options{Password: podPassword, HAProxy: &dataplanetest.HAProxy{}})
	g := newPodGate(t, host("240"), "canary-old", strings.TrimPrefix(api.URL(), "http://"))
	k.credentials("haproxy", "canary-old")
	c := startController(t, options{notReady: true, args: []string{"-namespace", k.ns, "-pods", "app=haproxy", "-pod-namespace", k.ns, "-pod-scheme", "http", "-pod-port", podAPIPort,
		"-credentials", k.ns + "/haproxy", "-maxconn", "1000", "-endpoint-base", api.Layout().Base,
		"-endpoint-socket", filepath.Join(api.Layout().Base, "admin.sock")}})
	k.haproxyPod("haproxy-0", g.addr)
	t.Cleanup(func() { k.must(k.deletePod(context.Background(), "haproxy-0")) })
	has := func(service string) func() error {
		return func() error {
			if !strings.Contains(api.Raw(), "backend "+k.ns+"_"+service+"_80") {
				return errors.New("it is not there")
			}
			return nil
		}
	}
	eventually(t, "the first configuration arrives", has("web"))

	g.make(slow)
	before := g.changing()
	k.service("new", backendPort, host("11"))
	k.ingress("new", site("new.test", "new"))
	eventually(t, "a deployment is under way", func() error {
		if g.changing() == before {
			return errors.New("no call has changed anything")
		}
		return nil
	})
	g.setPassword("canary-new")
	k.ingress("other", site("other.test", "web"))
	k.credentials("haproxy", "canary-new")
	g.make(calm)
	eventually(t, "the rest arrives with the new password", has("new"))
	eventually(t, "the controller is well", func() error {
		state, err := c.loopState()
		if err == nil && (len(state.Instances) != 1 || state.Instances[0].Hash != state.Validated || state.Instances[0].Error != "") {
			err = fmt.Errorf("%+v", state)
		}
		return err
	})
	if strings.Contains(c.out.String(), "canary-") {
		t.Error("a password was printed")
	}
}

// The debug server of the controller shows its pages to nobody without the token, and
// the controller does not start where it would have to: on an address of the network
// without one.
func TestDebugServerIsNotOpen(t *testing.T) {
	k := newKube(t)
	const page = "/debug/vars/state"
	open, err := startProcess("controller", nil, env.controller, "-kubeconfig", env.cluster.kubeconfig, "-namespace", k.ns,
		"-local", shortDir(t), "-metrics-addr", "", "-debug-addr", subnet+"2:9191")
	k.must(err)
	t.Cleanup(func() { _, _ = open.terminate(syscall.SIGINT, patience) })
	eventually(t, "it does not start", func() error {
		if open.ended() == nil {
			return errors.New("it runs")
		}
		return nil
	})
	if text := open.out.String(); !strings.Contains(text, "is not loopback: give -debug-token-file") {
		t.Error(text)
	}
	c := startController(t, options{notReady: true, args: []string{"-namespace", k.ns, "-debug-addr", subnet + "2:9191"}})
	eventually(t, "it asks for the token", func() error {
		client := http.Client{Timeout: pageTime, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + subnet + "2:9191" + page)
		if err != nil {
			return errors.Join(err, c.ended())
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("the state is shown to everybody: %s", resp.Status)
		}
		return nil
	})
	c.debug = subnet + "2:9191"
	if _, err := c.page(page); err != nil {
		t.Error(err)
	}
}
