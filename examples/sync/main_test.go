package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder makes a folder with a configuration whose files lie below base.
func folder(t *testing.T, base, server string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "haproxy.cfg"), `global
    stats socket `+filepath.Join(base, "run", "haproxy.sock")+` level admin expose-fd listeners
defaults
    mode http
    timeout connect 1s
    timeout client 10s
    timeout server 10s
frontend web
    bind unix@`+filepath.Join(base, "run", "web.sock")+`
    use_backend %[path,map(`+filepath.Join(base, "maps", "paths.map")+`,shop)]
backend shop
    server s1 `+server+`
`)
	write(t, filepath.Join(dir, "maps", "paths.map"), "/shop shop\n")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func environment(user, password string) func(string) string {
	return func(name string) string {
		return map[string]string{"HAPTIC_DATAPLANE_USERNAME": user, "HAPTIC_DATAPLANE_PASSWORD": password}[name]
	}
}

// output takes lines from two goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func TestSyncEndpoint(t *testing.T) {
	api := dataplanetest.New(t, nil)
	const base = "/etc/haproxy"
	env := environment("admin", "secret")
	step := func(code int, env func(string) string, want string, args ...string) {
		t.Helper()
		var stdout, stderr output
		require.Equal(t, code, run(t.Context(), args, env, &stdout, &stderr), "%s%s", &stdout, &stderr)
		if code == failed {
			require.Empty(t, stdout.String())
			require.Contains(t, stderr.String(), want)
			require.NotContains(t, stderr.String(), "secret")
			return
		}
		require.Contains(t, stdout.String(), want)
		require.Empty(t, stderr.String())
	}
	one, two := folder(t, base, "192.0.2.1:80"), folder(t, base, "192.0.2.7:80")
	step(differ, env, "+ backend shop", "-endpoint", api.URL(), "-dry-run", one)
	require.EqualValues(t, 1, api.Version(), "nothing was changed")
	step(done, env, "1 reload", "-endpoint", api.URL(), one)
	require.Equal(t, []string{"paths.map"}, api.Files("map"))
	step(done, env, "0 reloads", "-endpoint", api.URL(), one)
	step(done, env, "No changes", "-endpoint", api.URL(), "-dry-run", one)
	step(done, env, "0 reloads", "-endpoint", api.URL(), filepath.Join(two, "haproxy.cfg"))
	require.Contains(t, api.Raw(), "192.0.2.7:80")

	// Credentials from a file, which wins.
	file := filepath.Join(t.TempDir(), "credentials")
	write(t, file, "admin:secret\n")
	step(done, environment("admin", "wrong"), "0 reloads", "-endpoint", api.URL(), "-credentials", file, two)
	write(t, file, "secret\n")
	step(failed, env, "want one line NAME:PASSWORD", "-endpoint", api.URL(), "-credentials", file, two)
	step(failed, env, "no such file", "-endpoint", api.URL(), "-credentials", file+"x", two)
	step(failed, environment("admin", "wrong"), "not authorised", "-endpoint", api.URL(), two)
	step(failed, env, "connect", "-endpoint", "unix:///no/such.sock", "-timeout", "1m", two)

	for want, args := range map[string][]string{
		"want either -endpoint or -local": {two},
		"-start goes with -local":         {"-endpoint", api.URL(), "-start", two},
		"want one folder":                 {"-endpoint", api.URL()},
		"flags in front of it":            {"-endpoint", api.URL(), two, "-dry-run"},
		"flag provided but not defined":   {"-password", "x", two},
		"no such file":                    {"-endpoint", api.URL(), filepath.Join(two, "x.cfg")},
		"open haproxy.cfg":                {"-endpoint", api.URL(), t.TempDir()},
	} {
		step(failed, env, want, args...)
	}
	step(failed, environment("", ""), "want credentials", "-endpoint", api.URL(), two)

	var stdout, stderr output
	require.Equal(t, done, run(t.Context(), []string{"-h"}, env, &stdout, &stderr))
	require.Contains(t, stderr.String(), "usage: sync -endpoint URL [flags] FOLDER")
	require.Contains(t, stderr.String(), "-credentials")
}

// The certificate of the API is checked against the CA that is named.
func TestSyncHTTPS(t *testing.T) {
	api := dataplanetest.New(t, nil)
	behind, err := url.Parse(api.URL())
	require.NoError(t, err)
	proxy := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(behind))
	t.Cleanup(proxy.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})))
	dir := folder(t, "/etc/haproxy", "192.0.2.1:80")
	var stdout, stderr output
	code := run(t.Context(), []string{"-endpoint", proxy.URL, "-ca", ca, dir}, environment("admin", "secret"), &stdout, &stderr)
	require.Equal(t, done, code, "%s", &stderr)
	require.Contains(t, api.Raw(), "192.0.2.1:80")
}

// shortDir makes a folder whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sync")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return filepath.Join(dir, "state")
}

func needHAProxy(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is missing:", err)
		}
		t.Skip("haproxy is missing:", err)
	}
}

// says waits until something has been printed.
func (o *output) says(t *testing.T, want string) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(o.String(), want) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("does not say %q in time: %s", want, o)
		}
	}
}

// One run starts HAProxy, serves what changes, and stops it when it is
// interrupted.
func TestSyncStart(t *testing.T) {
	needHAProxy(t)
	base, env := shortDir(t), environment("", "")
	served := folder(t, base, "192.0.2.1:80")
	var stdout, stderr output
	require.Equal(t, differ, run(t.Context(), []string{"-local", base, "-dry-run", served}, env, &stdout, &stderr), "%s", &stderr)

	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan int, 1)
	var serving, complaints output
	go func() {
		ended <- run(ctx, []string{"-local", base, "-start", served}, env, &serving, &complaints)
	}()
	serving.says(t, "0 reloads")

	// The folder is read again at a signal; what is wrong with it ends nothing.
	write(t, filepath.Join(served, "maps", "paths.map"), "/shop shop\n/blog shop\n")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	serving.says(t, "+ map entry /blog in map paths.map (runtime)")
	text, err := os.ReadFile(filepath.Join(served, "haproxy.cfg"))
	require.NoError(t, err)
	write(t, filepath.Join(served, "haproxy.cfg"), string(text)+"    bogus\n")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	complaints.says(t, "unknown keyword 'bogus'")

	// A second run would disturb the first one, and says so.
	require.Equal(t, failed, run(t.Context(), []string{"-local", base, served}, env, &stdout, &stderr))
	require.Contains(t, stderr.String(), "in use by another process; a sync with -start takes")
	interrupt()
	require.Equal(t, done, <-ended, "%s", &complaints)
}

// A folder that cannot be used is an error at once.
func TestSyncStartNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	write(t, file, "")
	var stdout, stderr output
	args := []string{"-local", file, "-start", folder(t, file, "192.0.2.1:80")}
	require.Equal(t, failed, run(t.Context(), args, environment("", ""), &stdout, &stderr))
	require.Contains(t, stderr.String(), file+": not a directory")
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"), "%s", &stderr)
}

// A HAProxy that somebody else runs.
func TestSyncLocal(t *testing.T) {
	needHAProxy(t)
	base, env := shortDir(t), environment("", "")
	one := folder(t, base, "192.0.2.1:80")
	require.NoError(t, os.MkdirAll(filepath.Join(base, "run"), 0o755))
	require.NoError(t, os.CopyFS(base, os.DirFS(one)))
	cmd := exec.Command("haproxy", "-W", "-db", "-S", filepath.Join(base, "run", "master.sock")+",level,admin", "-f", filepath.Join(base, "haproxy.cfg"))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait()
	})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var stdout, stderr output
	for begun := time.Now(); run(t.Context(), []string{"-local", base, one}, env, &stdout, &stderr) != done; <-tick.C {
		require.Less(t, time.Since(begun), time.Minute, "%s", &stderr) // till then it may have only begun
	}
	stdout = output{}
	require.Equal(t, done, run(t.Context(), []string{"-local", base, folder(t, base, "192.0.2.7:80")}, env, &stdout, &stderr), "%s", &stderr)
	require.Contains(t, stdout.String(), "address: 192.0.2.1:80 -> 192.0.2.7:80")
	require.Contains(t, stdout.String(), "0 reloads")
}
