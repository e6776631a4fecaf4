package dataplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// makes reports whether the haproxy in PATH makes and deletes backends at runtime.
func makes(t testing.TB) bool {
	t.Helper()
	return haproxyVersion(t).Compare(dataplane.Version{Major: 3, Minor: 4}) >= 0
}

// newMadePool is a pool whose backends have all lines from defaults with a name.
func newMadePool(h *host, spares int) *pool {
	p := newPool(h, spares)
	p.lines = ""
	p.above = "defaults of-all\n    mode http\n    timeout connect 5m\n    timeout client 5m\n    timeout server 5m\n    option redispatch\n    balance roundrobin\n"
	return p
}

// reloadsBelow34 are the reloads for a change that HAProxy 3.4 takes without one.
func reloadsBelow34(t testing.TB, n int) int {
	if makes(t) {
		return 0
	}
	return n
}

// Backends come and go under their own names, more than there could be spare ones, and
// HAProxy keeps none of those that went. Requests go on, and none fails.
func TestBackendsAreMade(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newMadePool(h, 0).with("shop", one)
	p.sync(0)
	f := h.flow()
	backends := func() int { return len(strings.Fields(h.ask("show backend"))) }
	before := backends()
	for i := range 8 {
		name := fmt.Sprintf("b%d", i)
		text, file := p.with(name, one, two+" check inter 50ms").text()
		result := h.syncOnly(text, file)
		require.Equal(t, reloadsBelow34(t, 1), result.Reloads, "%s %s", result.Plan, result.Fallback)
		if makes(t) {
			require.Contains(t, result.Plan.String(), "+ backend "+name+" (runtime)\n    defaults (none) -> of-all\n")
			require.Contains(t, h.ask("show backend"), name)
		} else {
			require.Contains(t, result.Plan.String(), "cannot create a backend from defaults at runtime)")
		}
		status, _ := h.get(name+".test", "/")
		require.Equal(t, http.StatusOK, status)
		if i%2 == 0 {
			text, file = p.with(name, two).text()
			result = h.syncOnly(text, file)
			require.Zero(t, result.Reloads, "%s %s", result.Plan, result.Fallback)
			p.serves(name, two)
		}
		if i > 1 {
			text, file = p.without(name).text()
			result = h.syncOnly(text, file)
			require.Equal(t, reloadsBelow34(t, 1), result.Reloads, "%s %s", result.Plan, result.Fallback)
			p.lacks(name)
		}
		f.goesOn(t, 10)
	}
	f.stop()
	require.Zero(t, f.failed.Load())
	require.Equal(t, before+2, backends(), "b0 and b1 stay")
	p.clean()
	h.reloadByHand()
	p.serves("b0", two)
	p.clean()
}

// A burst of new backends, and all of them go at once.
func TestBackendsAreMadeInABurst(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	p := newMadePool(h, 1)
	p.sync(0)
	before := h.ask("show backend")
	for i := range 300 {
		p.with(fmt.Sprintf("b%03d", i), one)
	}
	p.sync(reloadsBelow34(t, 1))
	for _, name := range []string{"b000", "b150", "b299"} {
		p.serves(name, one)
	}
	p.clean()
	for i := range 200 { // not more than may wait for a reload
		p.without(fmt.Sprintf("b%03d", i))
	}
	p.sync(0)
	p.lacks("b150")
	p.clean()
	for i := range 100 {
		p.without(fmt.Sprintf("b%03d", i+200))
	}
	p.sync(reloadsBelow34(t, 1))
	if makes(t) {
		require.Equal(t, before, h.ask("show backend"))
	}
	p.clean()
}

// A backend with a request in it stays until that has ended, and its name may come back
// before and after that.
func TestBackendThatGoesWithARequest(t *testing.T) {
	t.Parallel()
	if !makes(t) {
		t.Skip("HAProxy deletes backends from 3.4 on; below, TestSpareOfBackendThatGoes says what happens")
	}
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newMadePool(h, 0)
	p.routes["127.0.0.1"] = "held"
	p.with("held", one, two+" disabled")
	text := func() (string, dataplane.File) {
		text, file := p.text()
		return strings.Replace(text, "req.hdr(host),map_str", "req.hdr(host),host_only,map_str", 1), file
	}
	sync := func() {
		t.Helper()
		config, file := text()
		result := h.syncOnly(config, file)
		require.Zero(t, result.Reloads, "%s %s", result.Plan, result.Fallback)
		require.Empty(t, result.Fallback)
	}
	has := func() bool { return strings.Contains(h.ask("show backend"), "held") }
	config, file := text()
	h.syncOnly(config, file)
	release := h.hold("s1")
	for range 2 { // it goes, comes back as it was, and goes again
		delete(p.routes, "127.0.0.1")
		p.without("held")
		sync()
		require.True(t, has())
		p.lacks("held")
		sync()
		require.True(t, has(), "the request is still in it")
		p.with("held", two)
		sync()
		p.serves("held", two)
	}
	p.without("held")
	sync()
	require.True(t, has())
	release()
	p.with("held", one)
	sync()
	p.serves("held", one)
	p.without("held")
	sync()
	require.False(t, has())
	p.lacks("held")
}

// What HAProxy cannot make takes a spare backend or a reload, and the plan says why.
func TestBackendIsNotMade(t *testing.T) {
	t.Parallel()
	if !makes(t) {
		t.Skip("HAProxy makes backends from 3.4 on; below, TestBackendsAreMade says what the plan has")
	}
	for name, c := range map[string]struct {
		change func(p *pool)
		reason string
	}{
		"a line of its own":             {func(p *pool) { p.be["shop"] = "    timeout server 7s\n" + p.be["shop"] }, "HAProxy reads new sections only at a reload"},
		"its defaults change":           {func(p *pool) { p.above += "    timeout queue 3s\n" }, "its defaults change"},
		"its defaults are new":          {func(p *pool) { p.above += "defaults of-one from of-all\n    retries 1\n" }, "its defaults change"},
		"a server that cannot be added": {func(p *pool) { p.be["shop"] = strings.TrimRight(p.be["shop"], "\n") + " agent-check agent-port 1\n" }, "server s1: a server with agent-check"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			one := h.server("127.0.0.2")
			p := newMadePool(h, 0)
			p.sync(0)
			c.change(p.with("shop", one))
			result := p.sync(1)
			require.Contains(t, result.Plan.String(), "+ backend shop (reload: "+c.reason)
			p.serves("shop", one)
			p.clean()
		})
	}
}
