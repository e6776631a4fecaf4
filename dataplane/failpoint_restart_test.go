package dataplane_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// TestLocalKilledWithItsHAProxy ends a Local that supervises HAProxy, which
// goes with it, at steps all along the way. The next one starts HAProxy with
// one of both configurations, whole, and gets to the desired one.
func TestLocalKilledWithItsHAProxy(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	w, archives := crashWorld(t)
	t.Run("on the way to", func(t *testing.T) {
		for _, way := range []struct{ name, from, to string }{{"first", "", "rules"}, {"files", "certificates", "rules"}} {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				cutAt(t, 8, func(n int) bool {
					h := newHost(t)
					p := &place{layout: h.local.Layout(), sockets: filepath.Join(h.dir, "run"), stats: h.local.RuntimeSocket(),
						master: haproxyctl.Master{Path: filepath.Join(h.dir, "run", "master.sock")}}
					to, checks := w.render(t, archives[way.to], p)
					hashes := []string{to.Hash()}
					fence, lost := fenceAfter(0)
					_, err := h.local.Sync(t.Context(), to, fence) // Run has the folder then
					require.ErrorIs(t, err, lost)
					if way.from != "" {
						from, _ := w.render(t, archives[way.from], p)
						_, err = h.local.Sync(t.Context(), from)
						require.NoError(t, err)
						hashes = append(hashes, from.Hash())
					}
					where, died := diesAt(t, h.local, to, n)
					h.stop()
					h.start()

					current, err := h.local.Current(t.Context())
					require.NoError(t, err)
					if current != nil || way.from != "" {
						require.Contains(t, hashes, current.Hash(), where)
						eventually(t, "it serves what is stored: "+where, func() bool { return p.worker() != "" })
					}
					_, err = h.local.Sync(t.Context(), to)
					require.NoError(t, err, where)
					p.serves(t, checks, true)
					require.Len(t, filesBelow(t, h.dir), len(to.Files()), where)
					h.stop()
					return died
				})
			})
		}
	})
}
