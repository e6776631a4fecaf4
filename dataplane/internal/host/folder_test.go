package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// readOnly mounts a folder that every account may write to. The function makes it
// read-only, or not.
func readOnly(t *testing.T, dir string) (set func(bool)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=1777"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return func(yes bool) {
		flags := uintptr(unix.MS_REMOUNT)
		if yes {
			flags |= unix.MS_RDONLY
		}
		require.NoError(t, unix.Mount("", dir, "", flags, "size=1m,mode=1777"))
	}
}

// HAProxy ends in a reload in which it cannot make its master socket. Nothing is
// reloaded as long as that is so, and what takes no reload goes on.
func TestSyncWhereSocketsCannotBeMade(t *testing.T) {
	dir := newDir(t)
	sockets := dir + "s"
	set := readOnly(t, sockets)
	for name, socket := range map[string]string{"of the master": filepath.Join(sockets, "m.sock"), "that is new": ""} {
		t.Run(name, func(t *testing.T) {
			set(false)
			s := &site{t, newHost(t, Options{Dir: dir, MasterSocket: socket}), dir}
			stop := running(t, s.Host)
			defer stop()
			text := func(body, address string) string {
				text := s.text(body, "server a "+address)
				if body == "two" && socket == "" {
					text = strings.Replace(text, "frontend web\n", fmt.Sprintf("frontend web\n    bind unix@%s/new.sock\n", sockets), 1)
				}
				return text
			}
			first := s.sync(text("one", "192.0.2.1:80"))
			set(true)
			for range 2 {
				out, err := s.Sync(t.Context(), parse(t, text("two", "192.0.2.2:80")), change.Limits{})
				require.ErrorIs(t, err, config.ErrListen)
				require.ErrorIs(t, err, unix.EROFS)
				require.Equal(t, socket == "", errors.Is(err, config.ErrReload), "the configuration asks for what fails")
				require.ErrorContains(t, err, sockets)
				require.True(t, config.Retryable(err, 0))
				require.NoError(t, s.Serving())
				require.Equal(t, first.WorkerPID, out.WorkerPID)
				require.Zero(t, out.Reloads)
				require.Equal(t, "one", s.body())
				require.Contains(t, s.ask("show servers state shop"), "192.0.2.2")
			}
			set(false)
			require.Equal(t, 1, s.sync(text("two", "192.0.2.2:80")).Reloads)
			s.serves("two")
			left, err := filepath.Glob(sockets + "/*try*")
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// The folder becomes read-only when all but the reload is done.
func TestSyncWhereSocketsCannotBeMadeAnyMore(t *testing.T) {
	dir := newDir(t)
	set := readOnly(t, dir+"s")
	s := &site{t, newHost(t, Options{Dir: dir, MasterSocket: filepath.Join(dir+"s", "m.sock")}), dir}
	running(t, s.Host)
	good := s.text("one", "server a 192.0.2.1:80")
	first := s.sync(good)
	s.SetFailpoint(func(step string) { set(step == "after rename current") })
	_, err := s.Sync(t.Context(), parse(t, s.text("two", "server a 192.0.2.1:80")), change.Limits{})
	require.ErrorIs(t, err, config.ErrListen)
	require.Equal(t, good, s.read("haproxy.cfg"))
	s.SetFailpoint(nil)
	set(true)
	out, err := s.Sync(t.Context(), parse(t, s.text("two", "server a 192.0.2.2:80")), change.Limits{})
	require.ErrorIs(t, err, config.ErrListen)
	require.Equal(t, first.WorkerPID, out.WorkerPID)
	require.Contains(t, s.ask("show servers state shop"), "192.0.2.2")
	require.NoError(t, s.Serving())
	set(false)
	require.Equal(t, 1, s.sync(s.text("two", "server a 192.0.2.2:80")).Reloads)
	s.serves("two")
}

func TestSocketsOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"bind /run/x.sock":                    {"/run/x.sock"},
		"bind unix@/run/x.sock,:80 mode 600":  {"/run/x.sock"},
		"bind \"/run/x.sock\"":                {"/run/x.sock"},
		"stats socket /run/y.sock level user": {"/run/y.sock"},
		"bind unix@x.sock":                    nil,
		"bind abns@/x":                        nil,
		"bind \"/run/$NAME\"":                 nil,
		"bind-process 1":                      nil,
		"bind":                                nil,
		"stats uri /x":                        nil,
	} {
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(socketsOf(parse(t, "global\nfrontend web\n    "+line+"\n").Index()))), line)
	}
	require.Empty(t, socketsOf(parse(t, "global\n    unix-bind prefix /x\nfrontend web\n    bind /run/x.sock\n").Index()))
}
