package socket

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

func TestMain(m *testing.M) { haproxytest.Main(m) }

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	haproxytest.Eventually(t, what, condition)
}

// process is a running HAProxy with a connection to its worker.
type process struct {
	*testing.T
	layout  config.Layout
	master  *haproxyctl.Master
	stats   string
	pid     int
	worker  *Worker
	leaving Leaving
}

// head is what each configuration begins with. DIR is the folder of the process.
const head = `global
    maxconn 100
    stats socket DIR/stats level admin expose-fd listeners
defaults
    mode http
    timeout connect 1m
    timeout client 1m
    timeout server 1m
`

// start starts HAProxy with a text, which calls its folder DIR.
func start(t *testing.T, text string, files ...config.File) *process {
	t.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is missing:", err)
		}
		t.Skip("haproxy is missing:", err)
	}
	dir, err := os.MkdirTemp("", "socket") // that of the test is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // for the account of haproxy
	p := &process{T: t, layout: config.Layout{Base: dir}, stats: dir + "/stats", leaving: make(Leaving),
		master: &haproxyctl.Master{Path: dir + "/master"}}
	write := func(path string, content []byte) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))                                                //nolint:gosec // see above
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(content, []byte("DIR/"), []byte(dir+"/")), 0o644)) //nolint:gosec // see above
	}
	for _, f := range files {
		write(p.layout.Path(f.Kind, f.Name), f.Content)
	}
	write(p.layout.ConfigPath(), []byte(head+text))
	cmd := exec.Command("haproxy", "-W", "-S", p.master.Path, "-f", p.layout.ConfigPath()) //nolint:gosec // a test
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	p.dial()
	return p
}

// dial connects to the worker that serves.
func (p *process) dial() {
	p.Helper()
	eventually(p.T, "a worker serves", func() bool {
		procs, err := p.master.Procs(p.Context())
		p.pid = procs.WorkerPID()
		return err == nil && p.pid != 0
	})
	var err error
	p.worker, err = Dial(p.Context(), p.stats, p.pid, p.alone)
	require.NoError(p, err)
	p.Cleanup(func() { _ = p.worker.Close() })
}

func (p *process) alone(ctx context.Context) bool {
	procs, err := p.master.Procs(ctx)
	return err == nil && procs.WorkerPID() == p.pid && len(procs.Old)+len(procs.Loading) == 0
}

func (p *process) apply(dos ...change.Do) (int, error) {
	return p.worker.Apply(p.Context(), p.layout, p.leaving, dos)
}

// ask sends one command on a connection of its own, as another writer would.
func (p *process) ask(command string) string { return p.askWith(command, nil) }

func (p *process) askWith(command string, payload []byte) string {
	p.Helper()
	conn, err := haproxyctl.Dial(p.Context(), p.stats)
	require.NoError(p, err)
	defer func() { _ = conn.Close() }()
	command = strings.ReplaceAll(command, "DIR/", p.layout.Base+"/")
	answer := ""
	if payload == nil {
		answer, err = conn.Exec(p.Context(), command)
	} else {
		answer, err = conn.ExecPayload(p.Context(), command, payload)
	}
	require.NoError(p, err)
	return answer
}

func (p *process) read(files ...config.File) *change.Process {
	p.Helper()
	cfg, err := config.New("global\n", files...)
	require.NoError(p, err)
	got, err := p.worker.Read(p.Context(), p.layout, cfg)
	require.NoError(p, err)
	return got
}

func file(kind config.FileKind, name string, lines ...string) config.File {
	return config.File{Kind: kind, Name: name, Content: []byte(strings.Join(lines, "\n") + "\n")}
}

// made is a self-signed certificate, with its key unless it is a CA. A blank line
// between the blocks is common, and would end a payload.
func made(t *testing.T, kind config.FileKind, name, host string) config.File {
	t.Helper()
	content, key := haproxytest.SelfSigned(t, host)
	if kind == config.Certificate {
		content = slices.Concat(content, []byte("\n\n"), key)
	}
	return config.File{Kind: kind, Name: name, Content: content}
}

func ref(backend, server string) change.ServerRef {
	return change.ServerRef{Backend: backend, Server: server}
}

func set(server change.ServerRef, fieldsAndValues ...string) change.Do {
	do := &change.SetServer{Ref: server}
	for i := 0; i < len(fieldsAndValues); i += 2 {
		do.Set = append(do.Set, change.Setting{Row: change.FieldRow(fieldsAndValues[i]), Value: fieldsAndValues[i+1]})
	}
	return do
}

func add(backend, line string) change.Do { return addWords(backend, strings.Fields(line)...) }

func addWords(backend string, words ...string) change.Do {
	server, ok := config.ParseServer(append([]string{"server"}, words...))
	if !ok {
		panic(words)
	}
	return &change.AddServer{Ref: ref(backend, server.Name), Server: &server}
}
