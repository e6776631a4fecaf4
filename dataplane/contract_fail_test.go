package dataplane_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestContractRefused tries what HAProxy refuses, when it is asked or not
// before it loads it. Everything stays as it was, in the process and on the
// disk, and what comes next is as cheap as if nothing had been tried.
func TestContractRefused(t *testing.T) {
	t.Parallel()
	refused, archives := readArchives(t, "refused/*.txtar")
	_, good := readArchives(t, "*.txtar")
	w := newWorld(t)
	w.prepare(t, archives)
	w.prepare(t, good)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	w.servers["taken"] = fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)
	t.Run("at", func(t *testing.T) {
		places(t, func(t *testing.T, settle func(t *testing.T) *place) {
			c := &contract{world: w, place: settle(t), states: map[string][]string{}}
			c.step(t, "nothing", "base", good["base"], false)
			base, checks := w.render(t, good["base"], c.place)
			for _, name := range refused {
				if c.cannotTell() && archives[name].Comment != nil && strings.Contains(string(archives[name].Comment), "only the load shows it") {
					continue
				}
				worker, names := c.worker(), c.names(t)
				config, _ := w.render(t, archives[name], c.place)
				planned, err := c.DryRun(t.Context(), config)
				require.NoError(t, err, "a preflight does not ask HAProxy")
				require.Equal(t, dataplane.ImpactReload, planned.Impact())
				_, err = c.Sync(t.Context(), config)
				require.Error(t, err, name)
				require.True(t, errors.Is(err, dataplane.ErrInvalid) || errors.Is(err, dataplane.ErrReload), "%s: %v", name, err)
				require.Equal(t, errors.Is(err, dataplane.ErrListen), dataplane.Retryable(err), "%s: %v", name, err)
				var e *dataplane.Error
				require.True(t, errors.As(err, &e))
				require.NotEmpty(t, e.Output, "%s: %v", name, err)
				require.NotContains(t, e.Output, "BEGIN")

				require.Equal(t, worker, c.worker(), name)
				if errors.Is(err, dataplane.ErrListen) { // no reload was tried, and what takes none is done
					_, err = c.Sync(t.Context(), base)
					require.NoError(t, err)
				}
				require.Equal(t, names, c.names(t), name)
				c.serves(t, checks, false)
				c.sameState(t, "base")
				c.isStored(t, base)
				c.isDone(t, base)

				// From HAProxy 3.1 on a master whose last load failed does not
				// pass on unix sockets: with another failure they would be lost.
				c.step(t, "base", "bare", good["bare"], true)
				c.step(t, "bare", "base", good["base"], true)
			}
			for _, name := range []string{"addresses", "base"} {
				c.step(t, "refused", name, good[name], true)
			}
			c.place.deployer = c.anew() // which may start HAProxy anew
			eventually(t, "it serves", func() bool { return c.worker() != "" })
			again, err := c.Sync(t.Context(), base)
			require.NoError(t, err)
			require.True(t, again.Plan.Empty(), "%s", again.Plan)
			require.Zero(t, again.Reloads)
			c.sameState(t, "base")
		})
	})
}

// cannotTell reports whether a reload that failed looks to the Dataplane API
// like one that did not: so HAProxy 2.6 behind a command that only signals it.
// The Client sees that no new worker comes, takes the outcome for open, and has
// HAProxy reload the next time.
func (c *contract) cannotTell() bool {
	answer, err := c.ask("show info")
	return err == nil && c.foreign && strings.Contains(answer, "Version: 2.6")
}

// A configuration that is refused says where, and in HAProxy's words.
func TestContractSaysWhere(t *testing.T) {
	t.Parallel()
	_, archives := readArchives(t, "refused/keyword.txtar")
	w := newWorld(t)
	w.prepare(t, archives)
	t.Run("at", func(t *testing.T) {
		places(t, func(t *testing.T, settle func(t *testing.T) *place) {
			p := settle(t)
			config, _ := w.render(t, archives["keyword"], p)
			_, err := p.Sync(t.Context(), config)
			var e *dataplane.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.Contains(t, e.Output, "no-such-keyword")
			require.Equal(t, "haproxy.cfg", e.File)
			lines := strings.Split(config.Main(), "\n")
			require.Equal(t, "    no-such-keyword", lines[e.Line-1], "%v", err)
			require.Empty(t, p.names(t))
		})
	})
}
