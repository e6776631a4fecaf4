package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A controller ends right before and right after each step of a change in which
// backends come and go. The next one gets to where that was going, or back, with at
// most one reload, and requests get what the configuration says.
func TestSpareKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for name, pool := range map[string]func(*host, int) *pool{"spare": newPool, "made": newMadePool} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedAtEachStep(t, pool)
		})
	}
}

func killedAtEachStep(t *testing.T, newPool func(*host, int) *pool) {
	h := attached(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	from := newPool(h, 3).with("old", one).with("stays", one)
	to := newPool(h, 3).with("stays", two).with("shop", one).with("blog", two)
	arrives := func(p *pool, where string) {
		t.Helper()
		h.attach()
		text, file := p.text()
		result := h.sync(text, file)
		require.LessOrEqual(t, result.Reloads, 1, where)
		for _, name := range []string{"old", "stays", "shop", "blog"} {
			if servers, ok := p.be[name]; ok {
				_, body := h.get(name+".test", "/")
				require.Contains(t, servers, " "+body+"\n", "%s: %s", where, result)
			} else {
				p.lacks(name)
			}
		}
		p.clean()
	}
	from.sync(1)
	to.sync(0) // one more name than none
	try := 0
	cutAt(t, 1, func(n int) bool {
		arrives(from, "before")
		from.more = fmt.Sprintf("backend other%d\n    timeout server 7s\n", n) // the reload makes all spares free
		from.sync(1)
		from.more = ""
		from.sync(0)
		where, died := diesAt(t, h.local, to.config(), n)
		if try++; try%2 == 0 {
			arrives(to, where)
		}
		arrives(from, where)
		return died
	})
	require.Greater(t, try, 4)
}
