package validate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// TestSandboxPaths names one and the same files in all ways that HAProxy knows.
func TestSandboxPaths(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	base := t.TempDir()
	if err := os.MkdirAll(filepath.Join(base, "errors"), 0o755); err != nil {
		t.Fatal(err)
	}
	page := []byte("HTTP/1.0 400 Bad\r\nContent-Length: 0\r\n\r\n")
	if err := os.WriteFile(filepath.Join(base, "errors", "400.http"), page, 0o644); err != nil {
		t.Fatal(err)
	}
	const proxy = "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nfrontend f\n  bind 127.0.0.1:9999"
	const mapped = "\n  http-request set-header x \"%[path,map("
	for name, c := range map[string]struct{ global, use string }{
		"absolute":               {"", " ssl crt " + base + "/ssl/a.pem" + mapped + base + "/maps/m.map)]\"\n  errorfile 400 " + base + "/errors/400.http\n"},
		"bases":                  {"  crt-base " + base + "/ssl\n", " ssl crt a.pem\n"},
		"base of all":            {"  crt-base " + base + "\n", " ssl crt ssl/a.pem\n"},
		"base in quotes":         {"  crt-base \"" + base + "\"\n", " ssl crt ssl/a.pem\n"},
		"default path of config": {"  default-path config\n", mapped + "maps/m.map)]\"\n  errorfile 400 errors/400.http\n"},
		"default path of origin": {"  default-path origin " + base + "\n", mapped + "maps/m.map)]\"\n  errorfile 400 errors/400.http\n"},
		"relative to the base":   {"", mapped + "maps/m.map)]\"\n  errorfile 400 errors/400.http\n"},
		"variable":               {"  setenv MAPS " + base + "/maps\n", mapped + "${MAPS}/m.map)]\"\n"},
		"sockets and pid file":   {"  stats socket " + base + "/run.sock\n  pidfile " + base + "/pid\n  chroot /nowhere\n", "\n  bind unix@" + base + "/general/x.sock\n"},
		"lua":                    {"  lua-load " + base + "/general/x.lua\n", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := dataplane.NewConfig("global\n  maxconn 10\n"+c.global+proxy+c.use,
				dataplane.File{Kind: dataplane.Map, Name: "m.map", Content: []byte("a b\n")},
				dataplane.File{Kind: dataplane.Certificate, Name: "a.pem", Content: pair(t)},
				dataplane.File{Kind: dataplane.General, Name: "x.lua", Content: []byte("core.Info('x')\n")})
			if err != nil {
				t.Fatal(err)
			}
			v := &validate.Validator{Layout: dataplane.Layout{Base: base}, Timeout: patience}
			if _, err := v.Check(t.Context(), cfg); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { onlyPage(t, base) })
}

// onlyPage wants the base of this machine to be as it was.
func onlyPage(t *testing.T, base string) {
	t.Helper()
	var left []string
	if err := filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			left = append(left, path)
		}
		return err
	}); err != nil || len(left) != 1 {
		t.Errorf("the base of this machine has %v, %v; want what it had", left, err)
	}
}
