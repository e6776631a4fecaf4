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

// TestContractInherits goes between texts with several defaults sections, with
// and without names, under which proxies fall by where they stand. The Dataplane
// API orders sections and writes no "from" of its own, so that all of them would
// fall under the last.
func TestContractInherits(t *testing.T) {
	t.Parallel()
	_, archives := readArchives(t, "inherit/*.txtar")
	w := newWorld(t)
	w.prepare(t, archives)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	w.servers["taken"] = fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)
	t.Run("at", func(t *testing.T) {
		places(t, func(t *testing.T, settle func(t *testing.T) *place) {
			c := &contract{world: w, place: settle(t), states: map[string][]string{}}
			c.step(t, "nothing", "several", archives["several"], false)
			c.step(t, "several", "swapped", archives["swapped"], true)
			c.step(t, "swapped", "several", archives["several"], true)

			config, _ := w.render(t, archives["wrong"], c.place)
			_, err := c.Sync(t.Context(), config)
			var e *dataplane.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.Contains(t, e.Output, "no-such-keyword")
			require.Equal(t, "    no-such-keyword", strings.Split(config.Main(), "\n")[e.Line-1], "%v", err)
			c.step(t, "wrong", "swapped", archives["swapped"], true)
			c.step(t, "swapped", "several", archives["several"], true)
			if c.cannotTell() {
				return
			}
			config, _ = w.render(t, archives["taken"], c.place)
			_, err = c.Sync(t.Context(), config)
			require.ErrorIs(t, err, dataplane.ErrReload)
			config, checks := w.render(t, archives["several"], c.place)
			c.serves(t, checks, false)
			c.isStored(t, config)
			c.isDone(t, config)
			c.step(t, "taken", "swapped", archives["swapped"], true)
		})
	})
}
