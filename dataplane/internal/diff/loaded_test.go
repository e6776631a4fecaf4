package diff

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// Where the quick look says that a process has what its section says, so does the one at
// all lines; and it does say so of plain servers.
func TestAsLoaded(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // to be repeatable
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	quick, differ := 0, 0
	for range 30000 {
		text := "defaults\n" + pick("", " mode http\n") + "backend b\n"
		text += pick("", "", "", "", " balance roundrobin\n", " default-server weight 3\n", " server-template t 2 192.0.2.9:80\n", "\tserver\n")
		p := &change.Process{Servers: make(map[change.ServerRef]change.ServerState)}
		for range random.IntN(3) {
			name, address := pick("a", "b", "c"), pick("192.0.2.1:80", "192.0.2.1:80", "192.0.2.2:80", "[2001:db8::1]:80", "shop:80", "192.0.2.1")
			text += pick(" ", "\t") + pick("server ", "server\t") + name + pick(" ", "  ") + address +
				pick("", "", "", " weight 3", " weight 3 weight 1", " maxconn 7", " check", " disabled", " enabled", " disabled enabled", " track b/a", " sni weight", " cookie \"a b\"", " # x") + "\n"
			if random.IntN(8) > 0 {
				is, _ := netip.ParseAddrPort(pick(address, address, address, "192.0.2.2:80"))
				p.Servers[change.ServerRef{Backend: "b", Server: pick(name, name, name, "x")}] = change.ServerState{
					ID: random.IntN(3), Address: is, Weight: 1 + 2*random.IntN(2), State: pick(change.Ready, change.Ready, change.Maint, "drain", "")}
			}
		}
		x := config.Empty().With(text).Index()
		s := x.List[len(x.List)-1]
		var names []string
		for ref := range p.Servers {
			names = append(names, ref.Server)
		}
		same := runningSection(x, s, p, names) == s.Text
		if !same {
			differ++
		}
		if asLoaded(s, p, len(names)) {
			quick++
			require.True(t, same, "%s%v", text, p.Servers)
		}
	}
	require.Greater(t, quick, 3000)
	require.Greater(t, differ, 3000)
	for _, line := range []string{"server a 192.0.2.1:80", "server a 192.0.2.1:80 weight 1 maxconn 10 check", "server a 192.0.2.1:80 disabled"} {
		state := change.Ready
		if strings.HasSuffix(line, "disabled") {
			state = change.Maint
		}
		p := &change.Process{Servers: map[change.ServerRef]change.ServerState{
			{Backend: "b", Server: "a"}: {ID: 7, Address: netip.MustParseAddrPort("192.0.2.1:80"), Weight: 1, State: state}}}
		s := config.Empty().With(fmt.Sprintf("backend b\n    %s\n", line)).Index().List[0]
		require.True(t, asLoaded(s, p, 1), line)
		require.False(t, asLoaded(s, p, 2), line)
	}
}
