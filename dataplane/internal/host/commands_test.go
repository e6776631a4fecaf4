package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// HAProxy has a runtime change that cannot be stored, and the error says so. The next
// Sync stores it, and tells it again if HAProxy was started or reloaded meanwhile.
func TestSyncToldAndNotStored(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(s *site, worker int) (other bool){
		"nothing": func(*site, int) bool { return false },
		"HAProxy ends": func(s *site, worker int) bool {
			require.NoError(s, syscall.Kill(worker, syscall.SIGKILL))
			return true
		},
		"another program reloads": func(s *site, _ int) bool {
			_, _, err := s.master.Reload(s.Context())
			require.NoError(s, err)
			return true
		},
		"the controller ends": func(s *site, _ int) bool { s.again(); return false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func(t testing.TB) *site { s, _ := started(t); return s }
			if name != "HAProxy ends" {
				start = attached
			}
			s := start(t)
			before, next := s.text("one", "server a 192.0.2.1:80"), s.text("one", "server a 192.0.2.2:80")
			last := s.sync(before)
			full := errors.New("no space")
			left := 1
			out, err := s.Sync(t.Context(), parse(t, next), change.Limits{Fence: func() error {
				if left--; left < 0 {
					return full
				}
				return nil
			}})
			require.ErrorIs(t, err, full)
			require.ErrorContains(t, err, "HAProxy has the change, and loses it if it starts or reloads before the next Sync has stored it")
			require.NotZero(t, out.Commands)
			require.Empty(t, out.Hash)
			has := func(address string) bool { return strings.Contains(s.ask("show servers state shop"), address) }
			require.True(t, has("192.0.2.2"))
			require.Equal(t, before, s.read("haproxy.cfg"))

			if meanwhile(s, last.WorkerPID) {
				eventually(t, "another worker serves what is stored", func() bool {
					procs, err := s.master.Procs(t.Context())
					return err == nil && procs.WorkerPID() != 0 && procs.WorkerPID() != last.WorkerPID && len(procs.Old) == 0
				})
				require.True(t, has("192.0.2.1"))
				require.NotZero(t, s.sync(next).Commands)
			} else {
				out := s.sync(next)
				require.Zero(t, out.Reloads+out.Commands)
				require.Equal(t, 1, out.Files)
				require.Equal(t, last.WorkerPID, out.WorkerPID)
			}
			require.True(t, has("192.0.2.2"))
			require.Equal(t, next, s.read("haproxy.cfg"))
			require.Empty(t, s.sync(next).Steps)
		})
	}
}

// A reload that fails between does not settle it: the next Sync reloads, and so does a
// process that comes before it, as HAProxy does not show the change.
func TestSyncToldAndNotStoredAndFailedReload(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	before := s.text("one", "server a 192.0.2.1:80 maxconn 5")
	s.sync(before)
	full := errors.New("no space")
	left := 1
	_, err := s.Sync(t.Context(), parse(t, s.text("one", "server a 192.0.2.1:80 maxconn 6")), change.Limits{Fence: func() error {
		if left--; left < 0 {
			return full
		}
		return nil
	}})
	require.ErrorIs(t, err, full)
	_, err = s.Sync(t.Context(), parse(t, s.text("one", "no such keyword")), change.Limits{})
	require.ErrorIs(t, err, config.ErrReload)
	require.FileExists(t, s.markPath())
	out := s.sync(before)
	require.Equal(t, 1, out.Reloads)
	require.Equal(t, halfDone, out.Fallback)
	require.NoFileExists(t, s.markPath())
	require.Empty(t, s.sync(before).Steps)
}

// A HAProxy that another program reloads while it is told something has the files of
// before. The Sync notices, and reloads.
func TestSyncReloadedBetweenTellingAndStoring(t *testing.T) {
	t.Parallel()
	s := attached(t)
	first := s.sync(s.text("one", "server a 192.0.2.1:80"))
	s.SetFailpoint(func(step string) {
		if step != "after tell" {
			return
		}
		_, _, err := s.master.Reload(t.Context())
		require.NoError(t, err)
		eventually(t, "another worker serves", func() bool {
			procs, err := s.master.Procs(t.Context())
			return err == nil && procs.WorkerPID() != 0 && procs.WorkerPID() != first.WorkerPID
		})
	})
	next := s.text("one", "server a 192.0.2.2:80")
	out := s.sync(next)
	require.Equal(t, 1, out.Reloads)
	require.Equal(t, "the process was replaced meanwhile", out.Fallback)
	s.SetFailpoint(nil)
	require.Equal(t, next, s.read("haproxy.cfg"))
	require.Contains(t, s.ask("show servers state shop"), "192.0.2.2")
	require.Empty(t, s.sync(next).Steps)
}

// One file that changes is put in the place of the one before it, in the generation that
// there is. A process that is killed at any step leaves one of both, whole.
func TestStoreInPlace(t *testing.T) {
	t.Parallel()
	files := []config.File{oneFile(config.Certificate, "a.pem", "a"), oneFile(config.Certificate, "b.pem", "b"), oneFile(config.Map, "m.map", "k v\n")}
	from := parse(t, "global\n", files...)
	for _, to := range map[string]*config.Config{
		"text":        parse(t, "global\n maxconn 1\n", files...),
		"map":         parse(t, "global\n", files[0], files[1], oneFile(config.Map, "m.map", "k w\n")),
		"certificate": parse(t, "global\n", files[0], oneFile(config.Certificate, "b.pem", "c"), files[2]),
	} {
		for n := 0; ; n++ {
			dir := memory(t)
			f := newFolder(t, dir)
			f.put(from, true)
			generation, beside := f.store.current(), stampOf(filepath.Join(dir, "ssl/a.pem"))
			at := killed(f, n, func() error {
				w, err := f.store.stage(to, true)
				if err != nil {
					return err
				}
				return errors.Join(w.publish(), w.finish())
			})
			require.Equal(t, generation, f.store.current())
			require.Equal(t, beside, stampOf(filepath.Join(dir, "ssl/a.pem")), "it is the same file")
			whole(t, dir, at, from, to)
			if at == "" {
				require.Equal(t, 4, n, "it writes and renames")
				break
			}
		}
	}
}

// A change in place is undone where HAProxy does not load it in the end.
func TestStoreInPlaceUndone(t *testing.T) {
	t.Parallel()
	dir := memory(t)
	f := newFolder(t, dir)
	from, to := parse(t, "global\n"), parse(t, "global\n maxconn 1\n")
	f.put(from, true)
	w, err := f.store.stage(to, true)
	require.NoError(t, err)
	require.NoError(t, errors.Join(w.publish(), w.publish()), "the second time it does nothing")
	require.Equal(t, contentOf(to), content(t, dir))
	require.NoError(t, w.undo())
	require.Equal(t, contentOf(from), content(t, dir))
	current, err := f.Current(t.Context())
	require.NoError(t, err)
	require.Equal(t, from.Hash(), current.Hash())
}

// Syncs that only tell HAProxy something look at all files now and then.
func TestStoreLooksAtEachFileNowAndThen(t *testing.T) {
	t.Parallel()
	dir := memory(t)
	f := newFolder(t, dir)
	cfg := parse(t, "global\n", oneFile(config.Certificate, "a.pem", "a"))
	f.put(cfg, true)
	spoil := func(name string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, "global # spoilt ", name, "\n"), 0o600))
	}
	spoil("ssl/a.pem")
	load := func(all bool) string {
		is, err := f.store.load(all)
		require.NoError(t, err)
		return is.Hash()
	}
	require.Equal(t, cfg.Hash(), load(false), "it has looked a moment ago")
	f.store.looked = f.store.looked.Add(-2 * lookEvery)
	require.NotEqual(t, cfg.Hash(), load(false))
	f.put(cfg, true)
	spoil("ssl/a.pem")
	require.NotEqual(t, cfg.Hash(), load(true))
	f.put(cfg, true)
	spoil("haproxy.cfg")
	require.NotEqual(t, cfg.Hash(), load(false), "the text is looked at always")
}
