package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// outage is how long the API server stays away.
const outage = 20 * time.Second

// The API server goes without a farewell and stays away: traffic does not
// notice, and the controller takes up where it was.
func TestAPIServerOutage(t *testing.T) {
	k := newSite(t)
	c, v := startSite(t, options{})
	mark, worker := c.reloads(), c.mustWorker()
	tr := startTraffic(t, v, "web.test")

	env.cluster.api.kill()
	<-time.After(outage) // the length of the outage is what is tested
	must(t, env.cluster.startAPI())
	back := time.Now()
	k.endpoints("web", backendPort, host("11"))
	eventuallyWithin(t, time.Minute, "a change after the return is taken",
		v.expect("web.test", "/", endpoint(host("11"), backendPort)))
	t.Logf("a change answered %v after the API server was back", time.Since(back).Round(time.Millisecond))

	c.expectReloads(mark, 0)
	if now := c.mustWorker(); now != worker {
		t.Errorf("the worker is %d now and was %d", now, worker)
	}
	k.service("new", backendPort, host("12"))
	k.ingress("new", site("new.test", "new"))
	eventually(t, "so is a new Ingress", v.expect("new.test", "/", endpoint(host("12"), backendPort)))
	c.expectReloads(mark, 0)
	tr.noFailures(t, 1000)
}

// A controller that is killed while the API server is away, and started again: HAProxy
// serves what is stored all the time, and what changed is taken when the API server
// is back.
func TestControllerRestartedDuringTheOutage(t *testing.T) {
	k := newSite(t)
	state := shortDir(t)
	c, v := startSite(t, options{state: state})
	worker, tr := c.mustWorker(), startTraffic(t, v, "web.test")

	env.cluster.api.kill()
	must(t, c.cmd.Process.Kill())
	<-c.done
	c = startController(t, options{state: state, notReady: true})
	eventually(t, "HAProxy is adopted", func() error {
		if !strings.Contains(c.out.String(), "adopted") {
			return errors.New("nothing is said of it")
		}
		return nil
	})
	eventually(t, "HAProxy serves on", tr.keepsFlowing(400))
	if _, err := c.page("/readyz"); err == nil {
		t.Error("the controller is ready and knows no resource")
	}
	must(t, env.cluster.startAPI())
	k.endpoints("web", backendPort, host("11"))
	eventuallyWithin(t, time.Minute, "a change is taken", answeredBy(v, "web.test", []string{endpoint(host("11"), backendPort)}))
	if now := c.mustWorker(); now != worker {
		t.Errorf("the worker is %d now and was %d", now, worker)
	}
	tr.noFailures(t, 500)
}

// What changed while the controller could not see it is found, not missed: an
// Ingress gone and another made in its place under the same name.
func TestChangesDuringTheOutageAreFound(t *testing.T) {
	startBackends(t, backendPort)
	k := newKube(t)
	k.service("web", backendPort, host("10"))
	k.service("other", backendPort, host("11"))
	k.ingress("web", site("old.test", "web"))
	c := startController(t, options{})
	v := c.visit()
	eventually(t, "the site answers", v.expect("old.test", "/", endpoint(host("10"), backendPort)))

	c.freeze()
	k.must(k.deleteIngresses(t.Context()))
	k.ingress("web", site("new.test", "other"))
	k.endpoints("other", backendPort, host("12"))
	env.cluster.api.kill()
	must(t, env.cluster.startAPI())
	c.thaw()
	eventually(t, "the new site answers", v.expect("new.test", "/", endpoint(host("12"), backendPort)))
	eventually(t, "the old one is gone", v.expectStatus("old.test", "/", 404))
}
