package dataplane_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// pool is a configuration with spare backends.
type pool struct {
	h      *host
	spares int
	above  string            // sections above the spares
	lines  string            // of the spares and of the backends
	more   string            // sections at the end
	front  string            // lines of the frontend
	be     map[string]string // server lines by backend
	order  []string          // of the backends
	routes map[string]string // map entries by host
}

func newPool(h *host, spares int) *pool {
	return &pool{h: h, spares: spares, lines: "    balance roundrobin\n", be: map[string]string{}, routes: map[string]string{}}
}

// with adds a backend that answers for its name as a host.
func (p *pool) with(name string, servers ...string) *pool {
	if _, ok := p.be[name]; !ok {
		p.order = append(p.order, name)
	}
	p.be[name] = ""
	for i, s := range servers {
		p.be[name] += fmt.Sprintf("    server s%d %s\n", i+1, s)
	}
	p.routes[name+".test"] = name
	return p
}

func (p *pool) without(name string) *pool {
	delete(p.be, name)
	delete(p.routes, name+".test")
	order := p.order
	p.order = nil
	for _, n := range order {
		if n != name {
			p.order = append(p.order, n)
		}
	}
	return p
}

func (p *pool) text() (string, dataplane.File) {
	var b, m strings.Builder
	path := p.h.local.Layout().Path(dataplane.Map, "hosts.map")
	fmt.Fprintf(&b, "%sfrontend web\n    bind 127.0.0.1:%d\n%s    use_backend %%[req.hdr(host),map_str(%s)]\n    default_backend none\nbackend none\n    http-request return status 404\n",
		p.h.global(), p.h.port, p.front, path)
	b.WriteString(p.above)
	for i := range p.spares {
		fmt.Fprintf(&b, "backend %s%d\n%s", dataplane.SparePrefix, i, p.lines)
	}
	for _, name := range p.order {
		fmt.Fprintf(&b, "backend %s\n%s%s", name, p.lines, p.be[name])
	}
	b.WriteString(p.more)
	m.WriteString("# routes\n")
	for _, host := range sortedKeys(p.routes) {
		fmt.Fprintf(&m, "%s %s\n", host, p.routes[host])
	}
	return b.String(), dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte(m.String())}
}

func (p *pool) config() *dataplane.Config {
	text, file := p.text()
	return p.h.config(text, file)
}

// sync syncs and fails unless that takes so many reloads.
func (p *pool) sync(reloads int) *dataplane.Result {
	p.h.t.Helper()
	text, file := p.text()
	result := p.h.sync(text, file)
	require.Equal(p.h.t, reloads, result.Reloads, "%s %s", result.Plan, result.Fallback)
	if reloads == 0 {
		require.Empty(p.h.t, result.Fallback)
	}
	return result
}

// serves checks what requests get: the servers by backend, and 404 for others.
func (p *pool) serves(name, server string) {
	p.h.t.Helper()
	status, body := p.h.get(name+".test", "/")
	require.Equal(p.h.t, http.StatusOK, status, "%s", body)
	require.Equal(p.h.t, server, body)
}

func (p *pool) lacks(name string) {
	p.h.t.Helper()
	status, _ := p.h.get(name+".test", "/")
	require.Equal(p.h.t, http.StatusNotFound, status)
}

// clean checks that nothing differs, in the process either.
func (p *pool) clean() {
	p.h.t.Helper()
	plan, err := p.h.local.DryRun(p.h.t.Context(), p.config())
	require.NoError(p.h.t, err)
	require.True(p.h.t, plan.Empty(), "%s", plan)
}

func TestSpareTakesNewBackend(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 2)
	p.sync(0)
	p.lacks("shop")

	result := p.with("shop", one).sync(0)
	require.Contains(t, result.Plan.String(), "+ backend shop (runtime)\n    spare backend (none) -> haptic-spare-0\n")
	require.Equal(t, dataplane.ImpactRuntime, result.Plan.Impact())
	p.serves("shop", one)
	p.clean()

	// Its servers change as those of others do.
	p.with("shop", two).sync(0)
	p.serves("shop", two)
	p.clean()
	p.with("shop", two, one).with("blog", one).sync(0)
	p.serves("blog", one)
	require.Contains(t, h.ask("show servers state haptic-spare-0"), " s2 ")
	p.clean()

	// None is left: one reload, and all of them are back.
	result = p.with("wiki", two).sync(1)
	require.Contains(t, result.Plan.String(), "+ backend wiki (reload: all spare backends with its lines are taken until the next reload)")
	for name, server := range map[string]string{"shop": one, "blog": one, "wiki": two} {
		if name != "shop" {
			p.serves(name, server)
		}
	}
	require.Contains(t, h.ask("show servers state shop"), " s2 ")
	require.NotContains(t, h.ask("show servers state haptic-spare-0"), " s1 ")
	p.clean()
	p.with("more", one).sync(0)
	p.serves("more", one)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// A backend that goes is reached by no request, and may come back before the reload.
func TestSpareOfBackendThatGoes(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 1).with("old", one)
	p.sync(0)
	p.serves("old", one)
	p.with("shop", one).sync(0)
	for _, name := range []string{"shop", "old"} { // one that took a spare, and one that was loaded
		result := p.without(name).sync(0)
		require.Contains(t, result.Plan.String(), "- backend "+name+" (runtime)")
		p.lacks(name)
		p.clean()
		p.with(name, two).sync(0)
		p.serves(name, two)
		p.clean()
		p.with(name, one, two).sync(0)
		p.without(name).sync(0)
		p.lacks(name)
		p.with(name, one).sync(0)
		p.serves(name, one)
		p.clean()
	}
	// The spare of a backend that is gone is for no other one.
	p.without("shop").sync(0)
	result := p.with("blog", two).sync(1)
	require.Contains(t, result.Plan.String(), "all spare backends with its lines are taken")
	p.serves("blog", two)
	p.lacks("shop")
	p.with("shop", one).sync(0)
	p.serves("shop", one)
	p.clean()

	// One that comes back otherwise takes a reload.
	p.without("blog").sync(0)
	p.lines = "    balance leastconn\n"
	result = p.with("blog", one).sync(1)
	require.Equal(t, dataplane.ImpactReload, result.Plan.Impact())
	p.serves("blog", one)
	p.clean()
}

// Servers that a spare declares are changed and deleted as needed.
func TestSpareWithServers(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 0).with("x", one)
	for i := range 3 {
		p.more += fmt.Sprintf("backend haptic-spare-%d\n    balance roundrobin\n    server s1 127.0.0.1:9 disabled\n    server s2 127.0.0.1:9 disabled\n", i)
	}
	p.sync(0)
	p.with("shop", one).sync(0)
	p.serves("shop", one)
	require.NotContains(t, h.ask("show servers state haptic-spare-0"), " s2 ")
	p.clean()
	p.with("blog", one+" disabled", two).sync(0)
	p.serves("blog", two)
	p.with("blog", one, two+" disabled").sync(0)
	p.serves("blog", one)
	p.with("empty").sync(0)
	status, _ := h.get("empty.test", "/")
	require.Equal(t, http.StatusServiceUnavailable, status)
	p.clean()
	p.without("blog").sync(0)
	p.lacks("blog")
	p.with("blog", two).sync(0)
	p.serves("blog", two)
	p.clean()
}

// What cannot be done says why, and takes one reload.
func TestSpareNeedsReload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(p *pool)
		reason string
	}{
		"a rule names it":           {func(p *pool) { p.front = "    use_backend shop if { path /shop }\n" }, "frontend web names it"},
		"a value names it and more": {func(p *pool) { p.routes["a.test"] = "shop,blog" }, "a value of map hosts.map names it"},
		"other lines": {func(p *pool) {
			p.be["shop"] = "    timeout server 7s\n" + p.be["shop"]
		}, "no spare backend has its lines"},
		"a server that cannot be added": {func(p *pool) { p.be["shop"] = strings.TrimRight(p.be["shop"], "\n") + " agent-check agent-port 1\n" }, "server s1: a server with agent-check"},
		"fewer spares":                  {func(p *pool) { p.spares-- }, "spare backends come, go and change only at a reload"},
		"more spares":                   {func(p *pool) { p.spares++ }, "spare backends come, go and change only at a reload"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			one := h.server("127.0.0.2")
			p := newPool(h, 2)
			p.sync(0)
			p.with("shop", one)
			c.change(p)
			result := p.sync(1)
			require.Contains(t, result.Plan.String(), c.reason)
			p.serves("shop", one)
			p.clean()
		})
	}
}

// Spares that would not do are left alone.
func TestSpareThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    func(p *pool)
		reason string
	}{
		"a server in it": {func(p *pool) {
			p.more, p.spares = "backend haptic-spare-x\n    balance roundrobin\n    server a 127.0.0.1:9\n", 0
		}, "its server a is not disabled"},
		"a rule names it": {func(p *pool) { p.front = "    use_backend haptic-spare-0 if { path /x }\n" }, "frontend web names it"},
		"a map names it":  {func(p *pool) { p.routes["x.test"] = "haptic-spare-0" }, "a value of map hosts.map names it"},
		"stick tables of peers": {func(p *pool) {
			p.lines += "    stick-table type ip size 1k peers mates\n    stick on src\n"
			p.more = "peers mates\n    peer " + hostname(p.h.t) + " 127.0.0.1:" + fmt.Sprint(p.h.tls) + "\n"
		}, "peers would share its stick table"},
		"server states":    {func(p *pool) { p.lines += "    load-server-state-from-file global\n" }, "HAProxy would keep the states"},
		"a dangling value": {func(p *pool) { p.routes["old.test"] = "shop" }, "a value of map hosts.map names it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			one := h.server("127.0.0.2")
			p := newPool(h, 1)
			c.set(p)
			p.sync(0)
			result := p.with("shop", one).sync(1)
			require.Contains(t, result.Plan.String(), c.reason)
			p.serves("shop", one)
			p.clean()
		})
	}
}

func hostname(t testing.TB) string {
	name, err := os.Hostname()
	require.NoError(t, err)
	return name
}

// A backend stays as long as anything leads to it.
func TestSpareOfBackendThatIsNamed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	p := newPool(h, 1).with("shop", one).with("blog", one)
	p.sync(0)
	p.without("shop").routes["left.test"] = "shop"
	result := p.sync(1)
	require.Contains(t, result.Plan.String(), "- backend shop (reload: a value of map hosts.map names it)")
	p.lacks("left")
	// HAProxy would find one that is gone.
	p.without("blog").sync(0)
	p.routes["late.test"] = "blog"
	result = p.sync(1)
	require.Contains(t, result.Plan.String(), "backend blog is gone, and the process has it until the next reload")
	p.lacks("late")
	p.clean()
}

// The table of names outlives the controller, and no reload.
func TestSpareNamesAfterRestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, h *host)
		reloads   int
	}{
		"known":             {func(*testing.T, *host) {}, 0},
		"table is missing":  {func(t *testing.T, h *host) { require.NoError(t, os.Remove(filepath.Join(h.dir, ".names.json"))) }, 1},
		"table of another":  {func(t *testing.T, h *host) { h.editNames(`"worker":`, `"worker":1`) }, 1},
		"table of before":   {func(t *testing.T, h *host) { h.editNames(`"began":"2`, `"began":"1`) }, 1},
		"table is broken":   {func(t *testing.T, h *host) { h.editNames(`}`, ``) }, 1},
		"reload in between": {func(t *testing.T, h *host) { h.reloadByHand() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := attached(t)
			one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
			p := newPool(h, 2)
			p.sync(1)
			p.with("shop", one).with("blog", two).sync(0)
			p.without("blog").sync(0)
			c.meanwhile(t, h)
			h.attach()
			if c.reloads == 0 {
				p.clean()
			}
			p.sync(c.reloads)
			p.serves("shop", one)
			p.lacks("blog")
			p.clean()
			p.with("shop", two).sync(0)
			p.serves("shop", two)
			p.with("blog", one)
			if name == "known" {
				require.Contains(t, p.sync(0).Plan.String(), "haptic-spare-1")
			} else {
				p.sync(0)
			}
			p.serves("blog", one)
			p.clean()
		})
	}
}

// Names that do not belong to what is stored, as after a full disk, or where another
// program put older files back, take one reload: a map would else get a name that the process does
// not have.
func TestSpareNamesOfOtherFiles(t *testing.T) {
	t.Parallel()
	h := attached(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 3)
	p.sync(1)
	files := func() map[string]string {
		is := map[string]string{}
		for _, name := range []string{"haproxy.cfg", "maps/hosts.map"} {
			raw, err := os.ReadFile(filepath.Join(h.dir, name))
			require.NoError(t, err)
			is[name] = string(raw)
		}
		return is
	}
	putBack := func(was map[string]string) {
		for name, content := range was {
			require.NoError(t, os.WriteFile(filepath.Join(h.dir, name), []byte(content), 0o600))
		}
		h.attach()
	}
	without := files()
	p.with("shop", one).sync(0)
	putBack(without)
	_, err := h.local.Sync(t.Context(), p.config(), dataplane.WithoutReload())
	require.NoError(t, err)
	p.serves("shop", one)
	p.with("shop", two).sync(1)
	p.serves("shop", two)
	p.clean()

	// One that is gone, and that the older files have.
	p.with("blog", one).sync(0)
	with := files()
	p.without("blog").sync(0)
	putBack(with)
	p.with("blog", two).sync(1)
	p.serves("blog", two)
	p.clean()
}

func (h *host) editNames(old, now string) {
	path := filepath.Join(h.dir, ".names.json")
	raw, err := os.ReadFile(path)
	require.NoError(h.t, err)
	require.Contains(h.t, string(raw), old)
	require.NoError(h.t, os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), old, now)), 0o600))
}

// reloadByHand reloads HAProxy as another program does.
func (h *host) reloadByHand() {
	master := haproxyctl.Master{Path: filepath.Join(h.dir, "run", "master.sock")}
	before, err := master.Procs(h.t.Context())
	require.NoError(h.t, err)
	require.NoError(h.t, syscall.Kill(before.MasterPID, syscall.SIGUSR2))
	eventually(h.t, "it has reloaded", func() bool {
		now, err := master.Procs(h.t.Context())
		return err == nil && now.Reloaded(before)
	})
	h.alone()
}

// A controller that is killed leaves its HAProxy, and the next one knows the names.
func TestSpareNamesOfAdoptedHAProxy(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 2).with("old", one)
	p.sync(0)
	h.stop()
	c := h.startController("haproxy started")
	c.kill()
	h.start()
	p.with("shop", one).sync(0)
	p.serves("shop", one)
	h.stop() // HAProxy goes with it
	h.start()
	p.sync(0)
	p.serves("shop", one)
	p.with("blog", two).with("wiki", two).sync(0)
	p.serves("blog", two)
	p.clean()
}

// Somebody reloads HAProxy between two changes: the new process has all names.
func TestSpareReloadByAnother(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 1)
	p.sync(0)
	for i := range 3 {
		name := fmt.Sprintf("shop%d", i)
		p.with(name, one).sync(0)
		h.reloadByHand()
		p.serves(name, one)
		p.clean()
		p.with(name, two).sync(0)
		p.serves(name, two)
	}
	p.clean()
}

// What takes no reload is done ahead of one, with all that leads to it.
func TestSpareAheadOfReload(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 1).with("old", one)
	p.sync(0)
	p.with("shop", one).with("blog", two).without("old")
	result, err := h.local.Sync(t.Context(), p.config(), dataplane.WithoutReload())
	require.NoError(t, err)
	require.Zero(t, result.Reloads)
	p.serves("shop", one)
	p.lacks("blog")
	require.Contains(t, result.Left.String(), "+ backend blog (reload: all spare backends with its lines are taken")
	require.NotContains(t, result.Left.String(), "backend shop")
	require.Contains(t, result.Left.String(), "blog.test")
	p.sync(1)
	p.serves("shop", one)
	p.serves("blog", two)
	p.lacks("old")
	p.clean()
}

// What somebody else did to the process shows, under the names of the configuration,
// and is put right.
func TestSpareDrift(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 1)
	p.sync(0)
	p.with("shop", one).sync(0)
	h.ask("set server haptic-spare-0/s1 addr " + strings.Replace(two, ":", " port ", 1))
	p.serves("shop", two)
	result := p.sync(0)
	require.Contains(t, result.Plan.String(), "~ server s1 in backend shop (runtime)")
	p.serves("shop", one)
	path := h.local.Layout().Path(dataplane.Map, "hosts.map")
	h.ask("set map " + path + " shop.test elsewhere")
	p.lacks("shop")
	require.Contains(t, p.sync(0).Plan.String(), "value: elsewhere -> shop")
	p.serves("shop", one)
	p.clean()
}

// Requests go on while backends come and go, with and without a reload: none fails.
func TestSpareTrafficDuringChanges(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	p := newPool(h, 4)
	p.sync(0)
	p.with("shop", one).sync(0) // in a spare backend
	f := h.flow()
	reloads := 0
	for i := range 12 {
		name := fmt.Sprintf("b%d", i)
		text, file := p.with(name, two).text()
		reloads += h.syncOnly(text, file).Reloads
		p.serves(name, two)
		if i%3 > 0 {
			text, file = p.without(name).text()
			reloads += h.syncOnly(text, file).Reloads
		}
		f.goesOn(t, 10)
	}
	f.stop()
	require.Zero(t, f.failed.Load())
	require.Equal(t, 2, reloads, "12 backends, and 4 spares of which one is shop")
}
