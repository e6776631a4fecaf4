package dataplane_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// One change after the other takes a reload, and each meets a slow upload that keeps
// the worker of before. There are never more than 8 of those. What takes no reload goes
// on, and the rest follows when one of them ends.
func TestLocalReloadBomb(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	text := func(server string, change int) *dataplane.Config {
		return h.config(h.web("server a "+server, fmt.Sprintf("timeout queue %ds", 100+change)))
	}
	_, err := h.local.Sync(t.Context(), text(one, 0))
	require.NoError(t, err)
	master := haproxyctl.Master{Path: filepath.Join(h.dir, "run", "master.sock")}
	var uploads []func()
	most, waited := 0, 0
	for change := range 31 {
		uploads = append(uploads, h.hold("a"))
		result, err := h.local.Sync(t.Context(), text(one, 1+change))
		if err != nil {
			require.ErrorIs(t, err, dataplane.ErrOldWorkers)
			require.True(t, dataplane.Retryable(err))
			require.ErrorContains(t, err, "8 have connections, and at most 8 may")
			require.Len(t, result.Left.Ops, 1)
			require.Zero(t, result.Reloads)
			waited++
		}
		procs, err := master.Procs(t.Context())
		require.NoError(t, err)
		most = max(most, len(procs.Old))
	}
	t.Logf("%d old workers at most, %d changes waited", most, waited)
	require.Equal(t, 8, most)
	require.Equal(t, 31-8, waited)

	result, err := h.local.Sync(t.Context(), text(two, 31))
	require.ErrorIs(t, err, dataplane.ErrOldWorkers)
	require.NotZero(t, result.Commands)
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body, "an address does not wait")
	result, err = h.local.Sync(t.Context(), text(two, 31), dataplane.WithoutReload())
	require.NoError(t, err)
	require.False(t, result.Left.Empty())

	uploads[0]()
	eventually(t, "the change follows", func() bool {
		result, err = h.local.Sync(t.Context(), text(two, 31))
		return err == nil
	})
	require.Equal(t, 1, result.Reloads)
	for _, release := range uploads[1:] {
		release()
	}
}

// The owner of one backend keeps all old workers alive that there may be. Others get one reload
// each, as far as the reserve goes, and that owner none. What it waits for goes with theirs.
func TestLocalOldWorkersAreShared(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	text := func(loud int, others ...string) *dataplane.Config {
		all := h.web("server a "+one, fmt.Sprintf("timeout queue %ds", 100+loud))
		for i, other := range others {
			all += fmt.Sprintf("backend %s_web_80\n    timeout queue %ds\n", other, 100+i)
		}
		return h.config(all)
	}
	var uploads []func()
	for loud := range dataplane.DefaultMaxOldWorkers + 1 {
		_, err := h.local.Sync(t.Context(), text(loud))
		require.NoError(t, err)
		uploads = append(uploads, h.hold("a"))
	}
	waits := func(cfg *dataplane.Config) {
		t.Helper()
		_, err := h.local.Sync(t.Context(), cfg)
		require.ErrorIs(t, err, dataplane.ErrOldWorkers)
	}
	reloads := func(cfg *dataplane.Config) {
		t.Helper()
		result, err := h.local.Sync(t.Context(), cfg)
		require.NoError(t, err)
		require.Equal(t, 1, result.Reloads)
		uploads = append(uploads, h.hold("a"))
	}
	waits(text(100))
	reloads(text(100, "v"))
	waits(text(101, "v"))
	waits(text(100, "v", "v_more"))
	reloads(text(101, "v", "w"))
	waits(text(101, "v", "w", "x"))
	for _, release := range uploads {
		release()
	}
	eventually(t, "they follow", func() bool {
		_, err := h.local.Sync(t.Context(), text(102, "v", "w", "x"))
		return err == nil
	})
}

// A server that comes back while it has connections takes a reload. While that waits
// for old workers, what takes none goes on.
func TestLocalServerReturnsWhileReloadsWait(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	slow, two, three := h.server("127.0.0.2"), h.server("127.0.0.3"), h.server("127.0.0.4")
	var releases []func()
	text := func(change int, servers ...string) *dataplane.Config {
		return h.config(h.web(append(servers, fmt.Sprintf("timeout queue %ds", 100+change))...))
	}
	for change := range 8 {
		_, err := h.local.Sync(t.Context(), text(change, "server slow "+slow, "server b "+two+" weight 1"))
		require.NoError(t, err)
		releases = append(releases, h.hold("slow"))
	}
	_, err := h.local.Sync(t.Context(), text(8, "server slow "+slow, "server b "+two+" weight 1"))
	require.NoError(t, err)
	releases = append(releases, h.hold("slow"))
	_, err = h.local.Sync(t.Context(), text(8, "server b "+two+" weight 1"))
	require.NoError(t, err)

	_, err = h.local.Sync(t.Context(), text(8, "server slow "+slow, "server b "+two+" weight 1"))
	require.ErrorIs(t, err, dataplane.ErrOldWorkers)
	_, err = h.local.Sync(t.Context(), text(8, "server slow "+slow, "server b "+three+" weight 1"))
	require.ErrorIs(t, err, dataplane.ErrOldWorkers)
	require.Equal(t, map[string]int{three: 4}, h.answers(4), "an address does not wait")
	releases[8]()
	eventually(t, "the server follows, without a reload", func() bool {
		result, err := h.local.Sync(t.Context(), text(8, "server slow "+slow, "server b "+three+" weight 1"))
		return err == nil && result.Reloads == 0
	})
	for _, release := range releases[:8] {
		release()
	}
}
