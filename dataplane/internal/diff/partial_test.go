package diff

import (
	"fmt"
	"math/rand"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

func TestMain(m *testing.M) { haproxytest.Main(m) }

func configOf(t *testing.T, text string, files ...config.File) *config.Config {
	t.Helper()
	c, err := config.New(text, files...)
	require.NoError(t, err)
	return c
}

// random makes a configuration of a few backends, a frontend and a map.
func random(t *testing.T, r *rand.Rand) *config.Config {
	var b strings.Builder
	pick := func(options ...string) string { return options[r.Intn(len(options))] }
	b.WriteString("global\n  maxconn " + pick("100", "200") + "\ndefaults\n  mode http\n" + pick("", "  default-server inter 1s\n"))
	b.WriteString("frontend f\n  bind :80\n" + pick("", "  http-request deny if FALSE\n") + "  use_backend %[req.hdr(host),map(/etc/haproxy/maps/m.map)]\n")
	var entries strings.Builder
	for i := range 4 {
		if r.Intn(5) == 0 {
			continue
		}
		fmt.Fprintf(&b, "backend b%d\n  balance %s\n%s", i, pick("roundrobin", "roundrobin", "leastconn", "source"), pick("", "  timeout server 5s\n", "  default-server check\n"))
		for s := range 3 {
			if r.Intn(4) > 0 {
				fmt.Fprintf(&b, "  server s%d 192.0.2.%d:80%s%s%s\n", s, 1+r.Intn(4), pick("", " weight 5", " weight 7"), pick("", "", " disabled"), pick("", "", "", " ssl verify none"))
			}
		}
		fmt.Fprintf(&entries, "host%d b%d\n", r.Intn(4), i)
	}
	return configOf(t, b.String(), config.File{Kind: config.Map, Name: "m.map", Content: []byte(entries.String())})
}

// The runtime part takes no reload, and once it is there nothing that could be done
// ahead of the reload is left.
func TestRuntimePart(t *testing.T) {
	target := change.Target{Version: change.HAProxy30}
	early := 0
	for seed := range int64(500) {
		r := rand.New(rand.NewSource(seed))
		from, to := random(t, r), random(t, r)
		steps := Compare(from, to, target)
		part := RuntimePart(from, to, steps, target)
		done := Compare(from, part, target)
		require.LessOrEqual(t, change.ImpactOf(done), change.Runtime, "seed %d", seed)
		if part == from {
			continue
		}
		early++
		left := Compare(part, to, target)
		require.LessOrEqual(t, len(left), len(steps), "seed %d", seed)
		again := RuntimePart(part, to, left, target)
		require.Empty(t, Compare(part, again, target), "seed %d:\n%s\nto\n%s", seed, from.Main(), to.Main())
	}
	require.Greater(t, early, 100)
}

// What makes no sense before the reload waits for it.
func TestRuntimePartWaits(t *testing.T) {
	const head = "defaults\n  mode http\nfrontend f\n  bind :80\n  use_backend %[req.hdr(host),map(/etc/haproxy/maps/m.map)]\n"
	m := func(text string) config.File {
		return config.File{Kind: config.Map, Name: "m.map", Content: []byte(text)}
	}
	for name, c := range map[string]struct {
		from, to     string
		before, then string // map
		text, entry  string // what the part has of it
	}{
		"entry of a backend that comes": {
			from: "backend a\n  server s 192.0.2.1:80\n", to: "backend a\n  server s 192.0.2.2:80\nbackend new\n  server s 192.0.2.1:80\n",
			before: "x a\n", then: "x a\ny new\nz a\n", text: "192.0.2.2:80", entry: "x a\nz a\n",
		},
		"entry that moves to a backend that comes": {
			from: "backend a\n  server s 192.0.2.1:80\n", to: "backend a\n  server s 192.0.2.2:80\nbackend new\n  server s 192.0.2.1:80\n",
			before: "x a\n", then: "x new\n", text: "192.0.2.2:80", entry: "x a\n",
		},
		"servers that mean something else": {
			from: "backend a\n  server s 192.0.2.1:80\n", to: "backend a\n  default-server ssl verify none\n  server s 192.0.2.1:443\n",
			before: "x a\n", then: "x a\n", text: "192.0.2.1:80\n", entry: "x a\n",
		},
		"a map whose readers change": {
			from: "backend a\n  server s 192.0.2.1:80\n", to: "backend a\n  http-request set-header X %[path,map(/etc/haproxy/maps/m.map)]\n  server s 192.0.2.2:80\n",
			before: "x a\n", then: "x b\n", text: "192.0.2.2:80", entry: "x a\n",
		},
		"a map whose readers stay, where other lines of their section change": {
			from: "  http-request set-header X 1\nbackend a\n  server s 192.0.2.1:80\n", to: "  http-request set-header X 2\nbackend a\n  server s 192.0.2.2:80\n",
			before: "x a\n", then: "x a\ny a\n", text: "192.0.2.2:80", entry: "x a\ny a\n",
		},
		"values of a map, where a line reads their variable in another way": {
			from:   "  http-request set-var(txn.b) path,map(/etc/haproxy/maps/m.map)\n  use_backend %[var(txn.b)]\nbackend a\n  server s 192.0.2.1:80\n",
			to:     "  http-request set-var(txn.b) path,map(/etc/haproxy/maps/m.map)\n  use_backend %[var(txn.b),field(1,|)]\nbackend a\n  server s 192.0.2.2:80\n",
			before: "x a\n", then: "x a|1\ny a|2\n", text: "192.0.2.2:80", entry: "x a\ny a|2\n",
		},
		"a map with one more reader in its section": {
			from: "backend a\n  server s 192.0.2.1:80\n", to: "  http-request set-header X %[path,map(/etc/haproxy/maps/m.map)]\nbackend a\n  server s 192.0.2.2:80\n",
			before: "x a\n", then: "x a\ny a\n", text: "192.0.2.2:80", entry: "x a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := configOf(t, head+c.from, m(c.before)), configOf(t, head+c.to, m(c.then))
			part := RuntimePart(from, to, Compare(from, to, change.Target{}), change.Target{})
			require.Contains(t, part.Main(), c.text)
			got, _ := part.File(config.Map, "m.map")
			require.Equal(t, config.ParseMap([]byte(c.entry)), config.ParseMap(got.Content))
		})
	}
}

// A process that says what its configuration says runs that; one that says something
// else runs what it says, and the steps lead back.
func TestRunning(t *testing.T) {
	stored := configOf(t, "backend b\n  server one 192.0.2.1:80\n  server two 192.0.2.2:80 weight 9 disabled # note\n  server tracking 192.0.2.3:80 track one\n  server name example.com:80\nfrontend f\n  bind :443 ssl crt /etc/haproxy/ssl/a.pem\n  use_backend %[path,map(/etc/haproxy/maps/m.map)]\n",
		config.File{Kind: config.Map, Name: "m.map", Content: []byte("a 1\nb 2\n")}, config.File{Kind: config.Certificate, Name: "a.pem", Content: []byte("x")})
	state := func(address string, weight int, state string) change.ServerState {
		return change.ServerState{Address: netip.MustParseAddrPort(address), Weight: weight, State: state}
	}
	process := func() *change.Process {
		return &change.Process{
			Servers: map[change.ServerRef]change.ServerState{
				{Backend: "b", Server: "one"}: state("192.0.2.1:80", 1, "ready"), {Backend: "b", Server: "two"}: state("192.0.2.2:80", 9, "maint"),
				{Backend: "b", Server: "tracking"}: state("192.0.2.3:80", 1, "maint"), {Backend: "b", Server: "name"}: state("198.51.100.7:80", 1, "ready"),
			},
			Maps: map[string]string{"m.map": "b 2\na 1\n"},
		}
	}
	require.Same(t, stored, Running(stored, process()))
	require.Same(t, stored, Running(stored, &change.Process{}), "a process that tells nothing")
	for name, c := range map[string]struct {
		effect func(p *change.Process)
		step   string
	}{
		"address": {func(p *change.Process) {
			p.Servers[change.ServerRef{Backend: "b", Server: "one"}] = state("192.0.2.9:81", 1, "ready")
		}, "update server one"},
		"weight": {func(p *change.Process) {
			p.Servers[change.ServerRef{Backend: "b", Server: "one"}] = state("192.0.2.1:80", 0, "ready")
		}, "update server one"},
		"drain": {func(p *change.Process) {
			p.Servers[change.ServerRef{Backend: "b", Server: "one"}] = state("192.0.2.1:80", 1, "drain")
		}, "update server one"},
		"ready": {func(p *change.Process) {
			p.Servers[change.ServerRef{Backend: "b", Server: "two"}] = state("192.0.2.2:80", 9, "ready")
		}, "update server two"},
		"extra": {func(p *change.Process) {
			p.Servers[change.ServerRef{Backend: "b", Server: "x"}] = state("192.0.2.2:80", 9, "ready")
		}, "delete server x"},
		"entry": {func(p *change.Process) { p.Maps["m.map"] = "a 1\n" }, "create map entry b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := process()
			c.effect(p)
			running := Running(stored, p)
			steps := Compare(running, stored, change.Target{})
			require.Len(t, steps, 1)
			require.Equal(t, c.step, string(steps[0].Action)+" "+steps[0].Kind+" "+steps[0].Name)
			require.Equal(t, change.Runtime, steps[0].Impact, steps[0].Reason)
		})
	}
}
