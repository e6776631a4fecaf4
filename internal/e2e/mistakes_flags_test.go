package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wrongStart is a controller that must not start.
type wrongStart struct {
	name   string
	flags  []string // each after those of a controller that would start; the last one counts
	says   []string // in the last line
	env    []string
	during string // flags in whose place these are
	known  string
}

// runFlags starts the controller with flags that are wrong. The error is the last
// line, names the flag, and nothing was started.
func runFlags(t *testing.T, b *board, g *group) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	taken, err := net.Listen("tcp", subnet+"219:9090")
	must(t, err)
	defer taken.Close()
	first := startController(t, options{binary: *mistakesController, addr: subnet + "218", debugPort: 9118, args: []string{"-manifests", dir}})
	for _, w := range []wrongStart{
		{name: "-http-addr x", flags: []string{"-http-addr", "x"}, says: []string{"-http-addr", `"x"`}},
		{name: "a port beyond all ports", flags: []string{"-http-addr", ":80800"}, says: []string{"-http-addr", "80800"}},
		{name: "the same address twice", flags: []string{"-https-addr", subnet + "219:8080"}, says: []string{"-http-addr", "-https-addr", ":8080"}},
		{name: "-namespace with blanks", flags: []string{"-namespace", "NO SUCH"}, says: []string{"-namespace", "NO SUCH"}},
		{name: "negative -maxconn", flags: []string{"-maxconn", "-1"}, says: []string{"-maxconn", "-1"}},
		{name: "-maxconn that is no number", flags: []string{"-maxconn", "many"}, says: []string{"-maxconn", "many"}},
		{name: "negative -debounce", flags: []string{"-debounce", "-1s"}, says: []string{"-debounce", "-1s"}},
		{name: "a duration without a unit", flags: []string{"-min-interval", "5"}, says: []string{"-min-interval", `"5"`}},
		{name: "no folder of manifests", flags: []string{"-manifests", filepath.Join(dir, "none")}, says: []string{"-manifests", filepath.Join(dir, "none"), "no such file"}},
		{name: "a file in place of a folder", flags: []string{"-manifests", file("a.yaml", "")}, says: []string{"-manifests", "a.yaml", "folder"}},
		{name: "no folder of templates", flags: []string{"-templates", filepath.Join(dir, "none")}, says: []string{"-templates", "none"}},
		{name: "a label selector that is none", during: "-manifests -local", flags: []string{"-pods", "app in (", "-pod-namespace", "x"}, says: []string{"-pods", "app in ("}},
		{name: "a URL that is none", during: "-local", flags: []string{"-endpoint", "localhost:5555"}, env: []string{"HAPTIC_DATAPLANE_USERNAME=x", "HAPTIC_DATAPLANE_PASSWORD=y"}, says: []string{"-endpoint", "localhost:5555"}},
		{name: "no token", flags: []string{"-debug-token-file", filepath.Join(dir, "none")}, says: []string{"-debug-token-file", "none", "no such file"}},
		{name: "a kubeconfig that is none", during: "-manifests", flags: []string{"-kubeconfig", file("kubeconfig", "x: [")}, says: []string{"-kubeconfig", "kubeconfig"}},
		{name: "a flag that there is not", flags: []string{"-htp-addr", ":80"}, says: []string{"-htp-addr"}},
		{name: "a limit that there is not", flags: []string{"-limit", "path=5"}, says: []string{"-limit", "path"}},
		{name: "the debug address is taken", flags: []string{"-debug-addr", subnet + "219:9090", "-debug-token-file", file("token", "canary-debug-token")}, says: []string{"-debug-addr", subnet + "219:9090", "in use"}},
		{name: "the metrics address is taken", flags: []string{"-metrics-addr", subnet + "219:9090"}, says: []string{"-metrics-addr", subnet + "219:9090", "in use"}},
		{name: "the folder of another controller", flags: []string{"-local", first.state}, says: []string{first.state}},
	} {
		t.Run(w.name, func(t *testing.T) { w.start(t, b, g, dir) })
	}
}

// start starts the controller, which must end by itself.
func (w *wrongStart) start(t *testing.T, b *board, g *group, manifests string) {
	r := &row{group: g.name, name: w.name}
	m := &mistake{known: w.known}
	defer b.add(t, r, m)
	args := []string{}
	for flag, value := range map[string]string{"-manifests": manifests, "-http-addr": subnet + "219:8080",
		"-https-addr": subnet + "219:8443", "-metrics-addr": "", "-debug-addr": "127.0.0.1:9119", "-local": shortDir(t)} {
		if !strings.Contains(w.during, flag) {
			args = append(args, flag, value)
		}
	}
	binary := *mistakesController
	if binary == "" {
		binary = env.controller
	}
	start := time.Now()
	p, err := startProcess("controller", w.env, binary, append(args, w.flags...)...)
	must(t, err)
	defer p.kill()
	if err := poll(t.Context(), *assertedWithin, func() error {
		if p.ended() == nil {
			return fmt.Errorf("it runs: %s", cut(p.out.tail(), 300))
		}
		return nil
	}); err != nil {
		r.notSaid, r.notAgain = err, err
		r.problem("%v", err)
		_, _ = p.terminate(syscall.SIGINT, patience)
		return
	}
	r.said = time.Since(start)
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	last := find(lines[len(lines)-1:], w.says)
	r.named, r.lines = last, len(lines)
	if last == "" || p.cmd.ProcessState.ExitCode() < 1 {
		r.problem("exit code %d, and the last line has not all of %q: %s", p.cmd.ProcessState.ExitCode(), w.says, cut(lines[len(lines)-1], 300))
	}
	if len(lines) > 4 {
		r.problem("%d lines: %s", len(lines), cut(strings.Join(lines, " | "), 400))
	}
}
