package haptic

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readmeHead stands above the program of the README.
const readmeHead = `package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"testing/fstest"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
	"github.com/hapticsdk/haptic/validate"
	corev1 "k8s.io/api/core/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Println(err)
	}
}
`

const readmeManifest = `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 127.0.0.1, ports: [{port: %d}]}
`

// TestReadmeRuns builds the program of the README and has it serve a Service.
func TestReadmeRuns(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, 1)
	if _, err := exec.LookPath("haproxy"); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "readme") // haproxy runs under an account of its own
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o711))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	program := strings.NewReplacer("/tmp/haptic", filepath.Join(dir, "state"), "127.0.0.1:8080", addr).Replace(blocks[0][1])
	binary := buildReadme(t, dir, readmeHead+program)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }))
	t.Cleanup(server.Close)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "manifests"), 0o755))
	manifest := fmt.Sprintf(readmeManifest, server.Listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifests", "web.yaml"), []byte(manifest), 0o644))
	cmd, printed := exec.Command(binary), &lockedBuffer{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, printed, printed
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
		if t.Failed() {
			t.Log(printed)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	require.Eventually(t, func() bool {
		req, err := http.NewRequest(http.MethodGet, "http://"+addr+"/", nil)
		require.NoError(t, err)
		req.Host = "web.test"
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body) == "served"
	}, time.Minute, 20*time.Millisecond)
}

// buildReadme builds a program as a package of this module.
func buildReadme(t *testing.T, dir, program string) string {
	root, err := os.Getwd()
	require.NoError(t, err)
	source, overlay, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "readme", "main.go"): source}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	out, err := exec.Command("go", "build", "-o", binary, "-overlay", overlay, "./readme").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}
