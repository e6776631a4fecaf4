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

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// memory makes a folder for which fsync costs nothing, if there is one.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "store")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// folder is a store without a HAProxy.
type folder struct {
	testing.TB
	*Host
}

func newFolder(t testing.TB, dir string) *folder {
	t.Helper()
	h, err := New(Options{Dir: dir, NoStart: true, User: "root"})
	require.NoError(t, err)
	return &folder{t, h}
}

// put stores a configuration, as a Sync does whose reload ends well or not.
func (f *folder) put(cfg *config.Config, loads bool) {
	f.Helper()
	require.NoError(f, f.change(cfg, loads))
}

func (f *folder) change(cfg *config.Config, loads bool) error {
	if err := errors.Join(f.store.prepare(), f.recover(f.opts.NoStart)); err != nil {
		return err
	}
	if _, err := f.store.load(true); err != nil && !errors.Is(err, config.ErrInvalidConfig) {
		return err
	}
	w, err := f.store.stage(cfg, false)
	if err != nil {
		return err
	}
	if err := errors.Join(f.mark(w.before), w.publish()); err != nil {
		return err
	}
	if !loads {
		err = w.undo()
		f.unmark()
		return err
	}
	f.unmark()
	return w.finish()
}

// public is what a HAProxy finds in the folder.
func content(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, name := range public() {
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil {
			if raw, err := os.ReadFile(filepath.Join(dir, name)); err == nil && name == mainFile {
				found[name] = string(raw)
			}
			continue
		}
		for _, e := range entries {
			raw, err := os.ReadFile(filepath.Join(dir, name, e.Name()))
			require.NoError(t, err)
			found[name+"/"+e.Name()] = string(raw)
		}
	}
	return found
}

func contentOf(cfg *config.Config) map[string]string {
	want := map[string]string{mainFile: cfg.Main()}
	for _, f := range cfg.Files {
		want[nameOf(f.Kind, f.Name)] = string(f.Content)
	}
	return want
}

func oneFile(kind config.FileKind, name, content string) config.File {
	return config.File{Kind: kind, Name: name, Content: []byte(content)}
}

// steps are configurations each of which follows another one.
func configs(t testing.TB) []*config.Config {
	a, b, m, l := oneFile(config.Certificate, "a.pem", "a"), oneFile(config.Certificate, "b.pem", "b"), oneFile(config.Map, "m.map", "k v\n"), oneFile(config.CRTList, "l.txt", "l\n")
	var many []config.File
	for i := range 2 * manyFiles {
		many = append(many, oneFile(config.General, fmt.Sprintf("g%d", i), fmt.Sprint(i)))
	}
	return []*config.Config{
		parse(t, "global\n", a, m),
		parse(t, "global\n", a, oneFile(config.Map, "m.map", "k w\n")),
		parse(t, "global\n maxconn 1\n", b, l),
		parse(t, "global\n maxconn 1\n", oneFile(config.Certificate, "b.pem", ""), oneFile(config.CA, "l.txt", "l\n")),
		parse(t, "global\n", many...),
		parse(t, "global\n"),
		parse(t, "global\n", a, m),
	}
}

// Each configuration is where HAProxy looks for it, nothing else is, and another
// process reads the same.
func TestStore(t *testing.T) {
	t.Parallel()
	dir := memory(t)
	f := newFolder(t, dir)
	for i, cfg := range configs(t) {
		f.put(cfg, true)
		require.Equal(t, contentOf(cfg), content(t, dir))
		for _, reader := range []*folder{f, newFolder(t, dir)} {
			read, err := reader.Current(t.Context())
			require.NoError(t, err)
			require.Equal(t, cfg.Hash(), read.Hash(), i)
		}
		f.put(configs(t)[(i+2)%5], false) // goes back
		require.Equal(t, contentOf(cfg), content(t, dir))
		require.Equal(t, []string{".gen-", ".general-", ".maps-", ".ssl-"}, (&site{TB: t, dir: dir}).hidden())
		w, err := f.store.stage(cfg, false)
		require.NoError(t, err)
		require.Same(t, f.store.seen, w.next, "nothing to write")
		require.Zero(t, w.files)
	}
}

// killed ends a change right at its n-th point, and reports false if it has fewer.
func killed(f *folder, n int, do func() error) (at string) {
	dead := errors.New("killed")
	f.SetFailpoint(func(step string) {
		if n--; n < 0 {
			at = step
			panic(dead)
		}
	})
	defer func() {
		if r := recover(); r != nil && r != any(dead) {
			panic(r)
		}
	}()
	require.NoError(f, do())
	return ""
}

// A process that is killed at any step leaves the old or the new configuration,
// whole, and one that comes after it gets to each of them.
func TestStoreKilledAtEachStep(t *testing.T) {
	t.Parallel()
	all := configs(t)
	for i := range len(all) - 1 {
		for _, loads := range []bool{true, false} {
			t.Run(fmt.Sprint(i, loads), func(t *testing.T) {
				t.Parallel()
				from, to := all[i], all[i+1]
				for n := 0; ; n += 2 { // after a step is before the next one
					dir := memory(t)
					newFolder(t, dir).put(from, true)
					f := newFolder(t, dir)
					at := killed(f, n, func() error { return f.change(to, loads) })
					if at == "" {
						require.Greater(t, n, 12)
						return
					}
					whole(t, dir, at, from, to)
				}
			})
		}
	}
}

// whole checks what a killed process left.
func whole(t *testing.T, dir, at string, from, to *config.Config) {
	t.Helper()
	is := content(t, dir)
	require.Contains(t, []map[string]string{contentOf(from), contentOf(to)}, is, at)
	current, err := newFolder(t, dir).Current(t.Context())
	require.NoError(t, err, at)
	require.Contains(t, []string{from.Hash(), to.Hash()}, current.Hash(), at)

	next := newFolder(t, dir)
	require.NoError(t, next.recover(next.opts.NoStart), at)
	if is := content(t, dir); func() bool { next.learn(); return next.doubt }() {
		require.Equal(t, contentOf(from), is, at)
	}
	next.unmark()
	for _, cfg := range []*config.Config{to, from} {
		next.put(cfg, true)
		require.Equal(t, contentOf(cfg), content(t, dir), at)
	}
	require.Len(t, (&site{TB: t, dir: dir}).hidden(), 4, at)
}

// plain makes a folder as operators have it.
func plain(t *testing.T) (dir string, cfg *config.Config) {
	t.Helper()
	s := &site{TB: t, dir: memory(t)}
	s.write("haproxy.cfg", "global\n")
	s.write("ssl/own.pem", "own")
	s.write("ssl/own/own.pem", "own")
	s.write("general/own.http", "own")
	return s.dir, parse(t, "global\n")
}

// A folder with plain files is taken over, and files that do not belong to the
// configuration stay, whatever changes, and wherever the process is killed.
func TestStoreTakesOver(t *testing.T) {
	t.Parallel()
	to := parse(t, "global\n maxconn 1\n", oneFile(config.Certificate, "b.pem", "b"), oneFile(config.General, "g.http", "g"))
	for n, at := 0, "start"; at != ""; n++ {
		dir, from := plain(t)
		f := newFolder(t, dir)
		current, err := f.Current(t.Context())
		require.NoError(t, err)
		require.Equal(t, from.Hash(), current.Hash())
		if n > 0 { // the first goes all the way
			at = killed(f, n-1, func() error { return f.change(to, true) })
		}
		current, err = newFolder(t, dir).Current(t.Context())
		require.NoError(t, err)
		require.Contains(t, []string{from.Hash(), to.Hash()}, current.Hash(), at)
		s := &site{TB: t, dir: dir}
		stays := func() {
			require.Equal(t, "own", s.read("ssl/own.pem"), at)
			require.Equal(t, "own", s.read("ssl/own/own.pem"), at)
			require.Equal(t, "own", s.read("general/own.http"), at)
		}
		stays()
		require.Equal(t, current.Main(), s.read("haproxy.cfg"))
		next := newFolder(t, dir)
		next.put(to, true)
		stays()
		require.Equal(t, "b", s.read("ssl/b.pem"), at)
		require.Equal(t, "g", s.read("general/g.http"), at)
		require.DirExists(t, filepath.Join(dir, "maps")+"/.", at)
		require.Len(t, s.hidden(), 4, at)
	}
}

// Files that another program changed, deleted or put in place of a link are
// noticed, and written again.
func TestStoreNoticesDrift(t *testing.T) {
	t.Parallel()
	dir := memory(t)
	s := &site{TB: t, dir: dir}
	f := newFolder(t, dir)
	want := parse(t, "global\n", oneFile(config.Certificate, "a.pem", "a"), oneFile(config.General, "g.txt", "g"))
	f.put(want, true)
	remove := func(name string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, name))) }
	for name, spoil := range map[string]func(){
		"in place":        func() { s.write("haproxy.cfg", "global\n maxconn 9\n") },
		"no text":         func() { s.write("haproxy.cfg", "spoilt") },
		"empty":           func() { s.write("haproxy.cfg", "") },
		"deleted":         func() { remove("ssl/a.pem") },
		"certificate":     func() { s.write("ssl/a.pem", "z") },
		"link replaced":   func() { remove("haproxy.cfg"); s.write("haproxy.cfg", "global\n maxconn 8\n") },
		"link deleted":    func() { remove("haproxy.cfg") },
		"folder replaced": func() { remove("ssl"); s.write("ssl/a.pem", "y") },
		"folder deleted":  func() { remove("general") },
		"manifest":        func() { s.write("current/files.json", "{") },
		"no manifest":     func() { remove("current/files.json") },
		"generation":      func() { remove(f.store.current()) },
		"no current":      func() { remove("current") },
	} {
		spoil()
		if is, err := f.store.load(true); err == nil && is != nil && name != "no manifest" {
			require.NotEqual(t, want.Hash(), is.Hash(), name)
		}
		f.put(want, true)
		require.Equal(t, contentOf(want), content(t, dir), name)
		is, err := newFolder(t, dir).Current(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, want.Hash(), is.Hash(), name)
	}
}

// What is stored does not grow with what does not change: a map entry leaves
// the certificates alone.
func TestStoreShares(t *testing.T) {
	t.Parallel()
	dir := memory(t)
	f := newFolder(t, dir)
	cert, other := oneFile(config.Certificate, "a.pem", "a"), oneFile(config.Certificate, "b.pem", "b")
	f.put(parse(t, "global\n", cert, oneFile(config.Map, "m.map", "k v\n")), true)
	inode := func() fileStamp { return stampOf(filepath.Join(dir, "ssl/a.pem")) }
	before, folder := inode(), f.store.seen.folders["ssl"]
	f.put(parse(t, "global\n", cert, oneFile(config.Map, "m.map", "k w\n")), true)
	require.Equal(t, folder, f.store.seen.folders["ssl"])
	f.put(parse(t, "global\n", cert, other, oneFile(config.Map, "m.map", "k w\n")), true)
	require.NotEqual(t, folder, f.store.seen.folders["ssl"])
	require.Equal(t, before, inode())
}

// A write that fails leaves nothing.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	dir := memory(t)
	f := newFolder(t, dir)
	from := parse(t, "global\n", oneFile(config.Map, "m.map", "k v\n"))
	f.put(from, true)
	f.SetFailpoint(func(step string) {
		if step == "before write .maps-000003/m.map" {
			require.NoError(t, os.Mkdir(filepath.Join(dir, ".maps-000003/m.map"), 0o700))
		}
	})
	err := f.change(parse(t, "global\n", oneFile(config.Map, "m.map", "k w\n")), true)
	require.ErrorIs(t, err, os.ErrExist)
	require.Equal(t, contentOf(from), content(t, dir))
	require.Len(t, (&site{TB: t, dir: dir}).hidden(), 4)
	f.SetFailpoint(nil)
	f.put(parse(t, "global\n", oneFile(config.Map, "m.map", "k w\n")), true)
}

// HAProxy's group may read, and others may not.
func TestStorePermissions(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can choose an account")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	h, err := New(Options{Dir: dir})
	require.NoError(t, err)
	h.store.account.Name, h.store.account.GID, h.store.account.UID = "some", 4321, 1234
	for parent := filepath.Dir(dir); parent != "/"; parent = filepath.Dir(parent) {
		if info, err := os.Stat(parent); err == nil && info.Mode().Perm()&1 == 0 {
			require.NoError(t, os.Chmod(parent, 0o755))
		}
	}
	f := &folder{t, h}
	f.put(parse(t, "global\n", oneFile(config.Map, "m.map", "k v\n")), true)
	for name, want := range map[string]string{".": "drwxr-x--- 0 4321", "run": "drwxr-x--- 1234 4321", "maps": "drwxr-x--- 0 4321",
		"current/": "drwxr-x--- 0 4321", "haproxy.cfg": "-rw-r----- 0 4321", "maps/m.map": "-rw-r----- 0 4321"} {
		info, err := os.Stat(dir + "/" + name)
		require.NoError(t, err)
		uid, gid := owner(info)
		require.Equal(t, want, fmt.Sprintln(info.Mode(), uid, gid)[:len(want)], name)
	}
}

// BenchmarkStore changes one map entry, one certificate or the text beside 5,000
// certificates.
func BenchmarkStore(b *testing.B) {
	files := func(n, m int) []config.File {
		all := []config.File{oneFile(config.Map, "m.map", fmt.Sprintf("k %d\n", m))}
		for i := range brief(5000) {
			content := strings.Repeat("x", 3000)
			if i == 0 {
				content = fmt.Sprint(n)
			}
			all = append(all, oneFile(config.Certificate, fmt.Sprintf("c%d.pem", i), content))
		}
		return all
	}
	for name, next := range map[string]func(n int) *config.Config{
		"map":         func(n int) *config.Config { return parse(b, "global\n", files(0, n)...) },
		"certificate": func(n int) *config.Config { return parse(b, "global\n", files(n, 0)...) },
		"text":        func(n int) *config.Config { return parse(b, fmt.Sprintf("global\n maxconn %d\n", n+1), files(0, 0)...) },
		"nothing":     func(int) *config.Config { return parse(b, "global\n", files(0, 0)...) },
	} {
		b.Run(name, func(b *testing.B) {
			f := newFolder(b, b.TempDir())
			f.put(next(0), true)
			for n := 1; b.Loop(); n++ {
				b.StopTimer()
				cfg := next(n)
				b.StartTimer()
				f.put(cfg, true)
			}
		})
	}
}

func owner(info os.FileInfo) (uid, gid uint32) {
	sys := info.Sys().(*syscall.Stat_t)
	return sys.Uid, sys.Gid
}

// brief is n, or a part of it with -short: CI runs each benchmark once.
func brief(n int) int {
	if testing.Short() {
		return n / 50
	}
	return n
}
