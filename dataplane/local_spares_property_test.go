package dataplane_test

import (
	"fmt"
	"maps"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// fleet is a configuration whose backends come and go at random.
type fleet struct {
	h        *host
	random   *rand.Rand
	up       [fleetSize][2]string // servers of each backend, which answer with their address
	spares   int
	timeout  int
	backends map[int]fleetBackend
	routes   map[string]string // values by host
	rule     string            // a backend that a rule names
	made     bool              // backends have all lines from defaults with a name
}

type fleetBackend struct {
	lines   string
	servers [2]string // what stands behind the address; "-" for no server
}

const fleetSize = 6

// fleetLines are those that spares have, and one that they do not have.
var fleetLines = []string{"    balance roundrobin\n", "    balance leastconn\n    option httpchk\n    default-server inter 50ms fastinter 50ms rise 1 fall 2\n", "    balance random\n"}

func newFleet(h *host, random *rand.Rand) *fleet {
	f := &fleet{h: h, random: random, spares: 4, backends: map[int]fleetBackend{}, routes: map[string]string{}}
	for i := range f.up {
		f.up[i] = [2]string{h.server("127.0.0.2"), h.server("127.0.0.3")}
	}
	return f
}

func (f *fleet) pick(words ...string) string { return words[f.random.Intn(len(words))] }

func (f *fleet) server() string {
	return f.pick("", "", "", "-", " disabled", " weight 3", " maxconn 7", " check inter 50ms fastinter 50ms rise 1 fall 2")
}

// change changes a few things.
func (f *fleet) change() {
	for range 1 + f.random.Intn(3) {
		i := f.random.Intn(fleetSize)
		name, host := fmt.Sprintf("b%d", i), fmt.Sprintf("b%d.test", i)
		b, there := f.backends[i]
		switch f.random.Intn(14) {
		case 0, 1, 2, 3, 4, 5:
			if there { // as a template does: all that leads to it goes, too
				delete(f.backends, i)
				delete(f.routes, host)
				break
			}
			f.backends[i] = fleetBackend{f.pick(fleetLines[0], fleetLines[0], fleetLines[0], fleetLines[1], fleetLines[1], fleetLines[2]), [2]string{f.server(), f.server()}}
			f.routes[host] = name
		case 6, 7, 8:
			if there {
				b.servers[f.random.Intn(2)] = f.server()
				f.backends[i] = b
			}
		case 9:
			f.routes[fmt.Sprintf("other%d.test", f.random.Intn(3))] = f.pick(name, name, "elsewhere", name+",more", "b"+name)
		case 10:
			delete(f.routes, fmt.Sprintf("other%d.test", f.random.Intn(3)))
		case 11:
			if f.rule = ""; there && f.random.Intn(2) == 0 {
				f.rule = name
			}
		case 12:
			f.spares = max(1, f.spares+f.random.Intn(3)-1)
		default:
			f.timeout = f.random.Intn(3)
		}
	}
	if n := strings.TrimPrefix(f.rule, "b"); n != "" {
		if _, there := f.backends[int(n[0]-'0')]; !there {
			f.rule = "" // HAProxy would refuse it
		}
	}
}

func (f *fleet) config() *dataplane.Config {
	var b, m strings.Builder
	path := f.h.local.Layout().Path(dataplane.Map, "hosts.map")
	fmt.Fprintf(&b, "%sfrontend web\n    bind 127.0.0.1:%d\n    timeout client %ds\n", f.h.global(), f.h.port, 60+f.timeout)
	if f.rule != "" {
		fmt.Fprintf(&b, "    use_backend %s if { req.hdr(host) rule.test }\n", f.rule)
	}
	fmt.Fprintf(&b, "    use_backend %%[req.hdr(host),map_str(%s)]\n    default_backend none\nbackend none\n    http-request return status 404\n", path)
	begin := func(name, lines string) {
		if f.made {
			fmt.Fprintf(&b, "backend %s from of-%d\n", name, slices.Index(fleetLines, lines))
			return
		}
		fmt.Fprintf(&b, "backend %s\n%s", name, lines)
	}
	for i, lines := range fleetLines {
		if f.made {
			fmt.Fprintf(&b, "defaults of-%d\n    mode http\n    timeout connect 5m\n    timeout check 5m\n    timeout server 5m\n    option redispatch\n%s", i, lines)
		}
	}
	for i := range f.spares {
		begin(fmt.Sprint(dataplane.SparePrefix, i), fleetLines[i%2])
		if i%4 > 1 {
			b.WriteString("    server s0 127.0.0.1:9 disabled\n    server x 127.0.0.1:9 disabled\n")
		}
	}
	for _, i := range slices.Sorted(maps.Keys(f.backends)) {
		begin(fmt.Sprint("b", i), f.backends[i].lines)
		for j, server := range f.backends[i].servers {
			if server != "-" {
				fmt.Fprintf(&b, "    server s%d %s%s\n", j, f.up[i][j], server)
			}
		}
	}
	m.WriteString("# routes\n")
	for _, host := range slices.Sorted(maps.Keys(f.routes)) {
		fmt.Fprintf(&m, "%s %s\n", host, f.routes[host])
	}
	return f.h.config(b.String(), dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte(m.String())})
}

// answers returns what requests for a host may get: addresses of servers, or a status.
func (f *fleet) answers(host string) []string {
	value := f.routes[host]
	if host == "rule.test" {
		value = f.rule
	}
	i := strings.Index("b0b1b2b3b4b5", value)
	if len(value) != 2 || i < 0 {
		return []string{"404"}
	}
	b, ok := f.backends[i/2]
	if !ok {
		return []string{"404"}
	}
	var answers []string
	for j, server := range b.servers {
		if server != "-" && server != " disabled" {
			answers = append(answers, f.up[i/2][j])
		}
	}
	if len(answers) == 0 {
		return []string{"503"}
	}
	return answers
}

func (f *fleet) get(host string) string {
	status, body := f.h.get(host, "/")
	if status != http.StatusOK {
		return fmt.Sprint(status)
	}
	return body
}

func (f *fleet) hosts() []string {
	hosts := []string{"rule.test", "other0.test", "other1.test", "other2.test"}
	for i := range fleetSize {
		hosts = append(hosts, fmt.Sprintf("b%d.test", i))
	}
	return hosts
}

// serves checks what requests get: nothing but what the configuration says, and each
// server of it.
func (f *fleet) serves(what string) {
	f.h.t.Helper()
	for _, host := range f.hosts() {
		want := f.answers(host)
		seen := map[string]bool{}
		for n := 0; n < 2 || len(seen) < len(want) && n < 200; n++ {
			answer := f.get(host)
			require.Contains(f.h.t, want, answer, "%s: %s", what, host)
			seen[answer] = true
		}
		require.Len(f.h.t, seen, len(want), "%s: %s: %v", what, host, want)
	}
}

// TestSparePlansHold has backends come and go at random, and asks HAProxy after each
// Sync what it serves. Between two of them the controller may start anew, another
// program may reload HAProxy or change it, and the table of names may be lost.
func TestSparePlansHold(t *testing.T) {
	t.Parallel()
	steps := 25
	if *full {
		steps = 100
	}
	for seed := range int64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := attached(t)
			random := rand.New(rand.NewSource(seed)) //nolint:gosec // to be repeatable
			f := newFleet(h, random)
			f.made = seed > 2
			f.sync("at the start", false)
			taken := 0
			for step := range steps {
				unsure := f.meanwhile()
				before := *f
				before.backends, before.routes = maps.Clone(f.backends), maps.Clone(f.routes)
				f.change()
				what := fmt.Sprint("step ", step)
				if random.Intn(4) == 0 {
					f.ahead(what, &before)
				}
				plan := f.sync(what, unsure)
				if strings.Contains(plan, "-> "+dataplane.SparePrefix) || strings.Contains(plan, "defaults (none) -> of-") {
					taken++
				}
			}
			require.Greater(t, taken, steps/25)
		})
	}
}

// meanwhile is what may happen between two changes. It reports true for what only a
// reload puts right.
func (f *fleet) meanwhile() (unsure bool) {
	switch f.random.Intn(12) {
	case 0, 1:
		f.h.attach()
	case 2:
		f.h.reloadByHand()
	case 3:
		f.h.attach()
		unsure = os.Remove(filepath.Join(f.h.dir, ".names.json")) == nil
	case 4:
		f.h.ask(fmt.Sprintf("set server %s%d/s0 state maint", dataplane.SparePrefix, f.random.Intn(4)))
	}
	return unsure
}

// sync syncs, and checks that it is done as planned and that nothing differs then.
func (f *fleet) sync(what string, unsure bool) string {
	t := f.h.t
	t.Helper()
	config := f.config()
	plan, err := f.h.local.DryRun(t.Context(), config)
	require.NoError(t, err)
	result, err := f.h.local.Sync(t.Context(), config)
	require.NoError(t, err, what)
	require.LessOrEqual(t, result.Reloads, 1, what)
	if result.Reloads > 0 {
		f.h.alone()
	}
	if plan.Impact() != dataplane.ImpactReload && !unsure && result.Plan.Impact() != dataplane.ImpactReload {
		require.Zero(t, result.Reloads, "%s: %s %s", what, result.Plan, result.Fallback)
	}
	f.serves(fmt.Sprintf("%s: %s %s", what, result.Plan, result.Fallback))
	left, err := f.h.local.DryRun(t.Context(), config)
	require.NoError(t, err)
	require.True(t, left.Empty(), "%s: %s is left of %s %s", what, left, result.Plan, result.Fallback)
	return result.Plan.String()
}

// ahead does what takes no reload. Each request gets an answer of before, or of then.
func (f *fleet) ahead(what string, before *fleet) {
	t := f.h.t
	t.Helper()
	result, err := f.h.local.Sync(t.Context(), f.config(), dataplane.WithoutReload())
	require.NoError(t, err, what)
	require.Zero(t, result.Reloads)
	for _, host := range f.hosts() {
		may := append(before.answers(host), f.answers(host)...)
		for range 3 {
			require.Contains(t, may, f.get(host), "%s: ahead: %s: %s left: %s", what, host, result.Plan, result.Left)
		}
	}
}
