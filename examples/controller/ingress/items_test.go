package ingress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestItemsStay: the items of a list are its elements in their order, whatever changed
// before, and one that stays is the same pointer.
func TestItemsStay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 16))
	var routes Routes
	last := map[Path]any{}
	for range 300 {
		var list []Path
		for key := range r.IntN(30) {
			if r.IntN(4) > 0 {
				list = append(list, Path{Key: fmt.Sprintf("%02d", key), Backend: fmt.Sprint(r.IntN(2))})
			}
		}
		next := Routes{Prefix: list}
		if r.IntN(5) == 0 { // as it was
			next.Prefix = slices.Clone(routes.Prefix)
		}
		next.Keep(&routes)
		items := next.Input(Settings{}).Each["maps/prefix.map"].Items
		require.Equal(t, (*Path)(nil), items[0])
		require.Len(t, items, 1+len(next.Prefix))
		now := map[Path]any{}
		for i, item := range items[1:] {
			p := *item.(*Path)
			require.Equal(t, next.Prefix[i], p)
			if before, ok := last[p]; ok {
				require.Same(t, before, item)
			}
			now[p] = item
		}
		require.Equal(t, items, next.Input(Settings{}).Each["maps/prefix.map"].Items)
		routes, last = next, now
	}
}

// TestEachOf: templates say by what they print whether they are for one item.
func TestEachOf(t *testing.T) {
	engine, err := Compile(fstest.MapFS{
		"haproxy.cfg":                {Data: []byte("global\n")},
		"haproxy.d/backend.cfg":      {Data: []byte("backend {{ backend.Name }}\n    # of {{ len(backends) }}\n")},
		"maps/exact.map":             {Data: []byte("{% if route != nil %}{{ route.Key }} x\n{% end %}")},
		"maps/prefix.map":            {Data: []byte("{% for route in prefix %}{{ route.Key }} x\n{% end %}")},
		"maps/hosts.map":             {Data: []byte("{% for host in hosts %}{{ host.Name }} x\n{% end %}")},
		"crt-lists/certificates.txt": {Data: []byte("# none\n")},
	}, dataplane.Layout{})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"haproxy.d/backend.cfg": true, "maps/exact.map": true, "maps/prefix.map": false,
		"maps/paths_reg.map": false, "haproxy.d/userlist.cfg": false, "maps/hosts.map": false, "maps/wildcards.map": false, "crt-lists/certificates.txt": false,
		"haproxy.d/tcp.cfg": false, "maps/names-exact.map": false, "maps/names-prefix.map": false, "maps/names_reg.map": false, "maps/passed.map": false}, EachOf(engine))
}
