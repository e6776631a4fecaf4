package dataplane_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// crashes are the ways from one configuration to another on which a process is
// killed.
var crashes = []struct{ name, from, to string }{
	{"servers", "base", "addresses"},
	{"files", "base", "certificates"},
	{"files added", "bare", "rules"},
	{"files deleted", "certificates", "frontends"},
}

// errKilled is what a failpoint panics with.
var errKilled = errors.New("killed")

// diesAt has a Local sync until its n-th step, where it ends. It reports false if
// there are fewer.
func diesAt(t *testing.T, local *dataplane.Local, desired *dataplane.Config, n int) (where string, died bool) {
	t.Helper()
	c := &cut{n: n}
	local.SetFailpoint(func(step string) {
		if !c.at(step) {
			panic(errKilled)
		}
	})
	defer func() {
		if r := recover(); r != nil {
			require.Equal(t, errKilled, r)
			died = true
		}
		if steps, _ := c.reached(); len(steps) > 0 {
			where = fmt.Sprintf("killed at %d: %s", len(steps)-1, steps[len(steps)-1])
		}
	}()
	_, err := local.Sync(t.Context(), desired)
	require.NoError(t, err)
	return "", false
}

// attachedPlace is a HAProxy that the test runs, and that outlives a Local.
func attachedPlace(t *testing.T) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "haptic")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	run := filepath.Join(dir, "run")
	require.NoError(t, os.Mkdir(run, 0o750))
	p := &place{layout: dataplane.Layout{Base: dir}, sockets: run, stats: filepath.Join(run, "haproxy.sock"),
		master: haproxyctl.Master{Path: filepath.Join(run, "master.sock")}}
	p.anew = func() deployer {
		local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: dir, NoStart: true, User: "root"})
		require.NoError(t, err)
		return local
	}
	p.deployer = p.anew()
	p.current = func(t *testing.T, _ *dataplane.Config) *dataplane.Config {
		c, err := p.anew().(*dataplane.Local).Current(t.Context())
		require.NoError(t, err)
		return c
	}
	p.names = func(*testing.T) []string { return filesBelow(t, dir) }

	cfg := filepath.Join(dir, "haproxy.cfg")
	require.NoError(t, os.WriteFile(cfg, []byte("global\n    stats socket "+p.stats+" level admin expose-fd listeners\ndefaults\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\nfrontend none\n    bind unix@"+run+"/none.sock\n"), 0o600))
	cmd := exec.Command("haproxy", "-W", "-S", filepath.Join(run, "master.sock")+",level,admin", "-f", cfg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
		require.Error(t, cmd.Wait())
	})
	eventually(t, "the master answers", func() bool {
		procs, err := p.master.Procs(t.Context())
		return err == nil && procs.WorkerPID() != 0
	})
	return p
}

// filesBelow lists the stored files, the text, the list of them, and the
// sockets not counted.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for _, sub := range []string{".", "maps", "ssl", "general", "run"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		for _, e := range entries {
			name := filepath.Join(sub, e.Name())
			if e.Type().IsRegular() && name != "haproxy.cfg" && name != "files.json" && name != ".lock" {
				names = append(names, name)
			}
		}
	}
	return names
}

// crash is a series of kills on one of the ways.
type crash struct {
	contract
	from, to *dataplane.Config
	states   map[string][]string // by hash, of a process that has loaded it
}

func newCrash(t *testing.T, w *world, p *place, archives map[string]*txtar.Archive, from, to string) *crash {
	t.Helper()
	c := &crash{contract: contract{world: w, place: p}, states: map[string][]string{}}
	c.from, _ = w.render(t, archives[from], p)
	c.to, _ = w.render(t, archives[to], p)
	// What the process has when it has loaded each from its start.
	bare, _ := w.render(t, archives["sections"], p)
	for _, config := range []*dataplane.Config{c.to, c.from} {
		for _, next := range []*dataplane.Config{bare, config} {
			result, err := p.Sync(t.Context(), next)
			require.NoError(t, err)
			require.LessOrEqual(t, result.Reloads, 1)
		}
		c.states[config.Hash()] = c.state(t)
	}
	return c
}

// accepted checks that what lies in the folder now is one of both, and that a
// haproxy which starts with it as it is does so.
func (c *crash) accepted(t *testing.T, where string) {
	t.Helper()
	out, err := exec.Command("haproxy", "-c", "-f", c.layout.ConfigPath()).CombinedOutput()
	require.NoError(t, err, "%s: %s", where, out)
	hash := c.current(t, nil).Hash()
	require.True(t, hash == c.from.Hash() || hash == c.to.Hash(), "%s: a mixture is stored", where)
}

// gets checks that a new deployer gets to a configuration whatever the killed
// one left, and that nothing of that stays.
func (c *crash) gets(t *testing.T, by deployer, config *dataplane.Config, where string) {
	t.Helper()
	var result *dataplane.Result
	eventually(t, where, func() bool { // a master that reloads is away for a moment
		var err error
		result, err = by.Sync(t.Context(), config)
		require.True(t, err == nil || dataplane.Retryable(err), "%s: %v", where, err)
		return err == nil
	})
	require.LessOrEqual(t, result.Reloads, 1)
	want := strings.Join(c.states[config.Hash()], "\n")
	got := strings.Join(c.state(t), "\n")
	require.Equal(t, want, got, "%s: %s", where, result)
	require.Equal(t, config.Hash(), c.current(t, nil).Hash(), where)
	var names []string
	for _, f := range config.Files() {
		dir := filepath.Base(c.layout.Dir(f.Kind))
		names = append(names, filepath.Join(dir, f.Name))
	}
	require.ElementsMatch(t, names, c.names(t), where)
}

func crashWorld(t *testing.T) (*world, map[string]*txtar.Archive) {
	t.Helper()
	_, archives := readArchives(t, "*.txtar")
	w := newWorld(t)
	w.prepare(t, archives)
	return w, archives
}

// TestLocalKilledAtEachStep ends a Local right before and right after each step
// that changes its folder. A new one gets to where the old one was going, or
// back to where it came from, with a HAProxy that has lived on.
func TestLocalKilledAtEachStep(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	w, archives := crashWorld(t)
	t.Run("on the way to", func(t *testing.T) {
		for _, way := range crashes {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				p := attachedPlace(t)
				c := newCrash(t, w, p, archives, way.from, way.to)
				try := 0
				cutAt(t, 4, func(n int) bool {
					where, died := diesAt(t, p.anew().(*dataplane.Local), c.to, n)
					if !died {
						return false
					}
					c.accepted(t, where)
					if try%2 == 0 {
						c.gets(t, p.anew(), c.to, where)
					}
					try++
					c.gets(t, p.anew(), c.from, where)
					return true
				})
			})
		}
	})
}
