package validate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// TestMain wants that no test leaves a folder of a check behind.
func TestMain(m *testing.M) {
	tmp, err := os.MkdirTemp("", "v-") // Lua cuts long paths
	if err == nil {
		err = errors.Join(os.Chmod(tmp, 0o755), os.Setenv("TMPDIR", tmp)) // haproxy runs under another account
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		left, err := filepath.Glob(filepath.Join(tmp, "haproxy-check-*"))
		if err != nil || len(left) > 0 {
			fmt.Fprintln(os.Stderr, "left behind:", left, err)
			code = 1
		}
		_ = os.RemoveAll(tmp)
		os.Exit(code)
	}))
}

// patience is for a haproxy that takes half a second on a machine that has
// nothing else to do.
const patience = time.Minute

// needHAProxy skips a test where there is no haproxy, except in CI.
func needHAProxy(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("/usr/sbin/haproxy"); err == nil {
		return
	}
	if _, err := exec.LookPath("haproxy"); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("haproxy is not installed")
	}
	t.Skip("haproxy is not installed")
}

// config makes a configuration from a txtar archive: haproxy.cfg and files in
// maps/, ssl/, general/ and crt-list/.
func config(t testing.TB, files []txtar.File) *dataplane.Config {
	t.Helper()
	var main string
	var all []dataplane.File
	kinds := map[string]dataplane.FileKind{"maps": dataplane.Map, "ssl": dataplane.Certificate,
		"general": dataplane.General, "crt-list": dataplane.CRTList}
	for _, f := range files {
		dir, name := path.Split(f.Name)
		if f.Name == "haproxy.cfg" {
			main = string(f.Data)
		} else if kind, ok := kinds[strings.TrimSuffix(dir, "/")]; ok {
			all = append(all, dataplane.File{Kind: kind, Name: name, Content: f.Data})
		}
	}
	cfg, err := dataplane.NewConfig(main, all...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// text makes a configuration of nothing but haproxy.cfg.
func text(t testing.TB, main string) *dataplane.Config {
	t.Helper()
	return config(t, []txtar.File{{Name: "haproxy.cfg", Data: []byte(main)}})
}

var update = flag.Bool("update", false, "write what was found into the scripts")

// TestScripts runs both phases on the configurations in testdata. The files
// "syntax", "semantics" and "warnings" hold the findings, one a line; a file
// that is not there means none. Where a later haproxy finds something else, a
// file such as "semantics-3.1" holds all that it finds from that version on.
// The words of haproxy are those of 2.6; with another version only the
// positions are compared.
func TestScripts(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) { runScript(t, script) })
	}
}

func runScript(t *testing.T, script string) {
	t.Parallel()
	archive, err := txtar.ParseFile(script)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(t, archive.Files)
	v := &validate.Validator{Timeout: patience}
	got := map[string]string{"syntax": findings(t, validate.PhaseSyntax, v.Syntax(cfg))}
	report, err := v.Semantics(t.Context(), cfg)
	got["semantics"] = findings(t, validate.PhaseSemantics, err)
	if report != nil {
		got["warnings"] = list(report.Warnings)
		if got["syntax"] != "" {
			t.Errorf("phase 1 refuses what haproxy takes:\n%s", got["syntax"])
		}
	}
	if *update {
		rewrite(t, script, archive, got)
		return
	}
	version := versionOf(t, v)
	same := func(a, b string) bool { return a == b }
	if version != [2]int{2, 6} {
		same = func(a, b string) bool { return positions(a) == positions(b) }
	}
	for _, name := range []string{"syntax", "semantics", "warnings"} {
		want := expected(t, archive, name, version)
		if name == "syntax" && got[name] != want || !same(got[name], want) {
			t.Errorf("%s: got\n%swant\n%s", name, got[name], want)
		}
	}
}

// versionOf returns major and minor version of the haproxy that decides.
func versionOf(t *testing.T, v *validate.Validator) [2]int {
	t.Helper()
	report, err := v.Semantics(t.Context(), text(t, good))
	if err != nil {
		t.Fatal(err)
	}
	return parseVersion(t, report.HAProxyVersion)
}

func parseVersion(t *testing.T, s string) (version [2]int) {
	t.Helper()
	if _, err := fmt.Sscanf(s, "%d.%d", &version[0], &version[1]); err != nil {
		t.Fatalf("version %q: %v", s, err)
	}
	return version
}

// expected returns the file of that name for the latest version up to this one.
func expected(t *testing.T, archive *txtar.Archive, name string, version [2]int) string {
	t.Helper()
	var want string
	var of [2]int
	for _, f := range archive.Files {
		var since [2]int // for every version
		if suffix, ok := strings.CutPrefix(f.Name, name+"-"); ok {
			since = parseVersion(t, suffix)
		} else if f.Name != name {
			continue
		}
		if slices.Compare(since[:], version[:]) <= 0 && slices.Compare(since[:], of[:]) >= 0 {
			want, of = string(f.Data), since
		}
	}
	return want
}

// findings lists what an error of a phase says.
func findings(t *testing.T, phase validate.Phase, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var invalid *validate.Error
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	if invalid.Phase != phase {
		t.Errorf("phase %s, want %s", invalid.Phase, phase)
	}
	return list(invalid.Findings)
}

func list(findings []validate.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

// positions keeps file and line of each finding.
func positions(list string) string {
	var b strings.Builder
	for line := range strings.Lines(list) {
		b.WriteString(strings.SplitN(line, ": ", 2)[0] + "\n")
	}
	return b.String()
}

func rewrite(t *testing.T, script string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool {
		_, ours := got[f.Name]
		return ours
	})
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name] != "" {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	if err := os.WriteFile(script, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestContextAndBinary(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	cfg := text(t, good)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(validate.Validator).Semantics(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled context: %v", err)
	}
	if _, err := (&validate.Validator{Binary: "/nonexistent/haproxy"}).Semantics(t.Context(), cfg); !errors.Is(err, validate.ErrNoBinary) {
		t.Errorf("no binary: %v", err)
	}
}

const good = `global
  maxconn 100
defaults
  mode http
  timeout connect 1s
  timeout client 1s
  timeout server 1s
frontend web
  bind 127.0.0.1:9999
  default_backend shop
backend shop
  server a 127.0.0.1:8001 check
  server b 127.0.0.1:8002 check
`
