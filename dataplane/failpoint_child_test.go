package dataplane_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// victimDir makes the test binary a process that does one Sync of a Local that
// is attached to the HAProxy of that folder, with what lies in its folder
// "desired". It asks its parent before each step that changes the folder.
const victimDir = "HAPTIC_TEST_VICTIM_DIR"

func victim(dir string) {
	run := filepath.Join(dir, "run")
	local, err := dataplane.NewLocal(dataplane.LocalOptions{
		Dir: dir, NoStart: true, User: "root", MasterSocket: filepath.Join(run, "master.via"), RuntimeSocket: filepath.Join(run, "haproxy.via"),
	})
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "victim:", err)
			os.Exit(1)
		}
	}
	fail(err)
	desired, err := dataplane.ReadConfig(os.DirFS(filepath.Join(dir, "desired")), "haproxy.cfg")
	fail(err)
	answers := bufio.NewReader(os.Stdin)
	local.SetFailpoint(func(step string) {
		fmt.Println(step)
		if _, err := answers.ReadString('\n'); err != nil {
			select {} // until it is killed
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	_, err = local.Sync(ctx, desired)
	fail(err)
}

// relay passes on what comes in at a socket, and asks before each
// command that changes something, and after "reload".
func relay(t *testing.T, c *cut, listen, target string) (stop func()) {
	return between(t, listen, target, func(conn, to *net.UnixConn) {
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = io.Copy(conn, to)
			_ = conn.Close()
		}()
		if relayCommands(c, bufio.NewReader(conn), to) {
			_ = to.CloseWrite()
		} else {
			_ = to.Close()
		}
		<-answered
	})
}

// relayCommands reports whether who sends them has come to the end.
func relayCommands(c *cut, from *bufio.Reader, to io.Writer) (ended bool) {
	payload := false
	for {
		line, err := from.ReadString('\n')
		if line != "" {
			command := strings.TrimSpace(line)
			counts := !payload && command != "" && !strings.HasPrefix(command, "show") && !strings.HasPrefix(command, "prompt")
			if counts && !c.at("before "+command) {
				return false
			}
			if payload {
				payload = command != ""
			} else {
				payload = strings.HasSuffix(command, "<<")
			}
			if _, err := io.WriteString(to, line); err != nil {
				return false
			}
			if command == "reload" && !c.at("after reload") {
				return false
			}
		}
		if err != nil {
			return true
		}
	}
}

// killedVictim runs a process that does a Sync, and kills it at its n-th point.
// It returns all points that it came to, and whether it was killed.
func killedVictim(t *testing.T, dir string, n int, steps bool) (points []string, killed bool) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	cmd.Stderr = os.Stderr
	answers, err := cmd.StdinPipe()
	require.NoError(t, err)
	asks, err := cmd.StdoutPipe()
	require.NoError(t, err)
	c := &cut{n: n, end: func() { _ = cmd.Process.Kill() }}
	run := filepath.Join(dir, "run")
	stopMaster := relay(t, c, filepath.Join(run, "master.via"), filepath.Join(run, "master.sock"))
	defer stopMaster()
	stopStats := relay(t, c, filepath.Join(run, "haproxy.via"), filepath.Join(run, "haproxy.sock"))
	defer stopStats()
	c.mu.Lock() // until there is a process to kill
	err = cmd.Start()
	c.mu.Unlock()
	require.NoError(t, err)
	for lines := bufio.NewScanner(asks); lines.Scan(); {
		if steps && strings.HasPrefix(lines.Text(), "before") && !c.at(lines.Text()) {
			break
		}
		_, _ = io.WriteString(answers, "\n")
	}
	_ = answers.Close()
	err = cmd.Wait()
	points, killed = c.reached()
	if !killed {
		require.NoError(t, err)
	}
	return points, killed
}

// TestLocalProcessKilled kills a whole process with SIGKILL before each command
// that it sends to HAProxy, and while HAProxy reloads. The next one gets to
// where it was going, or back to where it came from.
func TestLocalProcessKilled(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	w, archives := crashWorld(t)
	t.Run("on the way to", func(t *testing.T) {
		for _, way := range append(slices.Clone(crashes), struct{ name, from, to string }{"map", "base", "maps"}, struct{ name, from, to string }{"weights", "addresses", "weights"}) {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				p := attachedPlace(t)
				c := newCrash(t, w, p, archives, way.from, way.to)
				desired := filepath.Join(p.layout.Base, "desired")
				writeConfig(t, desired, c.to)
				try := 0
				cutAt(t, 2, func(n int) bool {
					points, killed := killedVictim(t, p.layout.Base, n, way.name == "weights")
					require.NotEmpty(t, points)
					if !killed {
						return false
					}
					where := "killed at " + points[len(points)-1]
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

// writeConfig writes a configuration for ReadConfig.
func writeConfig(t *testing.T, dir string, config *dataplane.Config) {
	t.Helper()
	layout := dataplane.Layout{Base: dir}
	write := func(path string, content []byte) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	write(layout.ConfigPath(), []byte(config.Main()))
	for _, f := range config.Files() {
		write(layout.Path(f.Kind, f.Name), f.Content)
	}
	read, err := dataplane.ReadConfig(os.DirFS(dir), "haproxy.cfg")
	require.NoError(t, err)
	require.Equal(t, config.Hash(), read.Hash())
}
