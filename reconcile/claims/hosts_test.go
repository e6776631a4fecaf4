package claims_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/claims"
)

// world is a graph with hosts. Its options stay when it restarts.
type world struct {
	t      *testing.T
	shared []string
	grace  time.Duration
	g      *derive.Graph
	routes *derive.Input[string, *route]
	hosts  *claims.Hosts
	list   *claims.Listing

	earlier map[string]string // until the first commit
}

// start makes a process that knows what an earlier one had.
func (w *world) start(earlier map[string]string) {
	var all map[string]*route
	if w.routes != nil {
		all = maps.Collect(w.routes.All())
	}
	w.g, w.earlier = derive.New(), earlier
	w.routes = derive.NewInput[string, *route](w.g, "routes")
	w.hosts = claims.NewHosts(w.g, w.routes.Collection, claimsOf, claims.HostOptions{
		Shared: w.shared, Grace: w.grace, Earlier: func(host string) string { return w.earlier[host] },
	})
	w.list = w.hosts.List(func(*derive.Reads, string) bool { return false })
	for name, r := range all {
		w.routes.Set(name, r)
	}
}

func newHosts(t *testing.T, shared ...string) *world {
	w := &world{t: t, shared: shared}
	w.start(nil)
	return w
}

func (w *world) set(r *route)   { w.routes.Set(r.Namespace+"/"+r.Name, r) }
func (w *world) del(key string) { w.routes.Delete(key) }

// owners computes the owners and accepts them.
func (w *world) owners() map[string]string {
	w.t.Helper()
	require.NoError(w.t, w.g.Run(w.t.Context()))
	require.NoError(w.t, w.g.Commit())
	w.earlier = nil
	return maps.Collect(w.hosts.Owners.All())
}

// TestGrace: an owner whose object is replaced keeps its hosts from claims that were refused so far,
// also over a restart, and not for longer than the grace period.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, grace: claims.UsualGrace}
		w.start(nil)
		hosts := []string{"x.test", "*.y.test", claims.AnyHost}
		of := func(namespace string) map[string]string {
			return map[string]string{"x.test": namespace, "*.y.test": namespace, "*": namespace}
		}
		shop, evil := newRoute("shop", "web", 5, hosts...), newRoute("evil", "web", 1, append(hosts, "a.y.test")...)
		w.set(shop)
		require.Equal(t, of("shop"), w.owners())
		w.set(evil)
		require.Equal(t, of("shop"), w.owners())
		require.Zero(t, w.g.Next(), "nothing waits while the owner claims them")

		for range 2 { // the second time begins anew
			w.del("shop/web")
			require.Equal(t, of("shop"), w.owners())
			require.Contains(t, w.hosts.NotOwned(nil, "a.y.test", "evil"), "belongs to namespace shop with *.y.test")
			require.Equal(t, claims.UsualGrace, time.Until(w.g.Next()))
			time.Sleep(claims.UsualGrace - time.Second)
			require.Equal(t, of("shop"), w.owners())
			w.set(shop)
			require.Equal(t, of("shop"), w.owners())
			require.Zero(t, w.g.Next())
		}
		w.del("shop/web")
		w.start(of("shop"))
		require.Equal(t, of("shop"), w.owners(), "after a restart")
		time.Sleep(claims.UsualGrace)
		want := of("evil")
		want["a.y.test"] = "evil"
		require.Equal(t, want, w.owners())
		require.Zero(t, w.g.Next())
		w.del("evil/web")
		require.Empty(t, w.owners(), "a host that nobody claims is free")
	})
}

// TestOwnersKeepTheirHosts: an older object, or one that claims a wildcard above, takes
// nothing from a namespace that has it, and gets what that gives back. So it is after a restart.
func TestOwnersKeepTheirHosts(t *testing.T) {
	w := newHosts(t)
	w.set(newRoute("shop", "web", 5, "a.x.test", "*.x.test", claims.AnyHost))
	want := map[string]string{"a.x.test": "shop", "*.x.test": "shop", "*": "shop"}
	require.Equal(t, want, w.owners())
	w.set(newRoute("evil", "web", 1, "a.x.test", "b.x.test", "*.a.x.test", "*.x.test", claims.AnyHost))
	for range 2 {
		require.Equal(t, want, w.owners())
		require.Equal(t, "b.x.test belongs to namespace shop with *.x.test, which claimed it first", w.hosts.NotOwned(nil, "b.x.test", "evil"))
		require.Equal(t, "what no host matches belongs to namespace shop, which claimed it first", w.hosts.NotOwned(nil, "*", "evil"))
		require.Empty(t, w.hosts.NotOwned(nil, "b.x.test", "shop"))
		require.Empty(t, w.hosts.NotOwned(nil, "free.test", "evil"))
		w.start(want)
	}
	w.owners()
	w.set(newRoute("shop", "other", 9, "a.x.test"))
	w.del("shop/web")
	require.Equal(t, map[string]string{"a.x.test": "shop", "b.x.test": "evil", "*.a.x.test": "evil", "*.x.test": "evil", "*": "evil"}, w.owners())
}

// TestNoOwner: texts that are no hosts have no owner, and an object without a namespace that
// the map can hold claims nothing.
func TestNoOwner(t *testing.T) {
	w := newHosts(t)
	w.set(newRoute("", "web", 1, "a.test"))
	w.set(newRoute("*", "web", 1, "a.test"))
	w.set(newRoute("a b", "web", 1, "a.test"))
	w.set(newRoute("shop", "web", 2, "A.test", "a.test:80", "a b", "", "a.*"))
	require.Empty(t, w.owners())
}

// TestSharedHosts: all namespaces own them, and what is below them.
func TestSharedHosts(t *testing.T) {
	w := newHosts(t, "x.test", "*.y.test")
	w.set(newRoute("shop", "web", 1, "x.test", "*.y.test", "z.test"))
	w.set(newRoute("evil", "web", 2, "x.test", "a.y.test", "z.test"))
	require.Equal(t, map[string]string{"x.test": "*", "*.y.test": "*", "a.y.test": "*", "z.test": "shop"}, w.owners())
	require.Empty(t, w.hosts.NotOwned(nil, "x.test", "evil"))
}

// TestListing: a name without anything of its own is left out below the wildcard of its
// namespace, and an entry keeps its pointer.
func TestListing(t *testing.T) {
	w := newHosts(t)
	w.set(newRoute("evil", "web", 1, "b.x.test"))
	w.owners()
	w.set(newRoute("shop", "web", 2, "*.x.test", "a.x.test", "x.test"))
	w.owners()
	before := w.list.Hosts.Get(nil).Slice()
	require.Equal(t, []string{"*.x.test shop", "b.x.test evil", "x.test shop"}, entries(before))
	w.set(newRoute("shop", "more", 3, "*.a.x.test"))
	w.owners()
	require.Same(t, before[0], w.list.Hosts.Get(nil).Slice()[1])
	require.Equal(t, []string{".a.x.test shop", ".x.test shop"}, entries(w.list.Wildcards(nil)))
}

func entries(all []*claims.Host) (text []string) {
	for _, h := range all {
		text = append(text, h.Name+" "+h.Namespace)
	}
	return text
}

// TestRandomClaims: whatever comes and goes, a namespace keeps what it claims, and has nothing
// that it does not claim. Neither a rollback, a restart nor computing all again changes that.
func TestRandomClaims(t *testing.T) {
	names := []string{"x.test", "a.x.test", "*.x.test", "b.a.x.test", "*.a.x.test", "*.test", claims.AnyHost}
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(1, seed))
		w := newHosts(t)
		before := map[string]string{}
		change := func() {
			of, name := []string{"shop", "evil", "aaa"}[r.IntN(3)], string(rune('a'+r.IntN(3)))
			if r.IntN(3) == 0 {
				w.del(of + "/" + name)
				return
			}
			w.set(newRoute(of, name, int64(r.IntN(3)), names[r.IntN(len(names))], names[r.IntN(len(names))]))
		}
		for step := range 40 {
			change()
			require.NoError(t, w.g.Run(t.Context()))
			w.g.Rollback()
			require.Equal(t, before, maps.Collect(w.hosts.Owners.All()))
			change()
			now := w.owners()
			require.NoError(t, w.g.RunAll(t.Context()))
			require.Equal(t, now, maps.Collect(w.hosts.Owners.All()))
			w.g.Rollback()
			checkOwners(t, w, before, now)
			if before = now; step%10 == 9 {
				w.start(now)
				require.Equal(t, now, w.owners(), "seed %d, step %d: a restart", seed, step)
			}
		}
	}
}

func checkOwners(t *testing.T, w *world, before, now map[string]string) {
	claimed := map[[2]string]bool{}
	for _, r := range w.routes.All() {
		for _, host := range r.hosts {
			claimed[[2]string{host, r.Namespace}] = true
		}
	}
	for host, ns := range before {
		if claimed[[2]string{host, ns}] {
			require.Equal(t, ns, now[host], "%s keeps %s", ns, host)
		}
	}
	for host, ns := range now {
		require.True(t, claimed[[2]string{host, ns}], "%s has %s", ns, host)
	}
	wildcards := slices.DeleteFunc(slices.Collect(maps.Keys(before)), func(h string) bool { return !strings.HasPrefix(h, "*.") || before[h] != now[h] })
	slices.SortFunc(wildcards, func(a, b string) int { return len(b) - len(a) })
	for host, ns := range now {
		for _, w := range wildcards {
			if host != w && strings.HasSuffix(host, w[1:]) && before[host] != ns {
				require.Equal(t, now[w], ns, "%s gets %s below %s", ns, host, w)
				break // the closest decides
			}
		}
	}
}
