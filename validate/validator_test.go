package validate_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// script writes an executable that stands in for haproxy.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "haproxy")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// counting wraps the real haproxy and counts how often it checks.
func counting(t *testing.T) (binary string, checks func() int) {
	t.Helper()
	needHAProxy(t)
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		haproxy = "/usr/sbin/haproxy"
	}
	log := filepath.Join(t.TempDir(), "checks")
	binary = script(t, fmt.Sprintf("[ \"$1\" = -c ] && echo check >>%s\nexec %s \"$@\"\n", log, haproxy))
	return binary, func() int {
		b, err := os.ReadFile(log)
		if err != nil {
			return 0
		}
		return strings.Count(string(b), "\n")
	}
}

func TestRemembers(t *testing.T) {
	t.Parallel()
	binary, checks := counting(t)
	v := &validate.Validator{Binary: binary, NoInherit: true, Timeout: patience}
	bad := text(t, strings.Replace(good, "mode http", "mode nonsense", 1))
	for i := range 3 {
		report, err := v.Check(t.Context(), text(t, good))
		if err != nil || report.Remembered != (i > 0) || report.Inherited {
			t.Fatalf("call %d: %+v, %v", i, report, err)
		}
		if report.HAProxyVersion == "" || strings.ContainsAny(report.HAProxyVersion, "- ") {
			t.Errorf("version %q", report.HAProxyVersion)
		}
		var invalid *validate.Error
		if _, err := v.Check(t.Context(), bad); !errors.As(err, &invalid) || invalid.Findings[0].Line != 4 {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if n := checks(); n != 2 {
		t.Errorf("haproxy ran %d times, want 2", n)
	}
}

func pair(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pairOf(t, key)
}

func weakPair(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return pairOf(t, key)
}

func pairOf(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "a.example"},
		NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
}

const inheritable = `global
  maxconn 100
defaults
  mode http
  timeout connect 1s
  timeout client 1s
  timeout server 1s
frontend web
  bind 127.0.0.1:9999 ssl crt /etc/haproxy/ssl/a.pem
  http-request set-header x %[path,map_beg(/etc/haproxy/maps/paths.map,none)]
  http-request set-header y %[path,map_reg(/etc/haproxy/maps/regs.map,none)]
  default_backend shop
backend shop
  balance roundrobin
  server a 127.0.0.1:8001 check weight 10
  server b 127.0.0.1:8002 check weight 10
`

// TestInherits changes one thing after another in an accepted configuration.
func TestInherits(t *testing.T) {
	t.Parallel()
	cert, other := pair(t), pair(t)
	type files map[string]string
	base := files{"ssl/a.pem": string(cert), "maps/paths.map": "/a one\n", "maps/regs.map": "^/a one\n"}
	with := func(t *testing.T, main string, changed files) *dataplane.Config {
		var all []dataplane.File
		for name, content := range base {
			if c, ok := changed[name]; ok {
				content = c
			}
			kind := dataplane.Map
			if strings.HasPrefix(name, "ssl/") {
				kind = dataplane.Certificate
			}
			all = append(all, dataplane.File{Kind: kind, Name: filepath.Base(name), Content: []byte(content)})
		}
		cfg, err := dataplane.NewConfig(main, all...)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	tests := []struct {
		name     string
		old, new string // in the text
		files    files
		inherits bool
		invalid  bool
	}{
		{name: "address", old: "127.0.0.1:8002", new: "127.0.0.9:8003", inherits: true},
		{name: "weight", old: "8002 check weight 10", new: "8002 check weight 20", inherits: true},
		{name: "another server", old: "backend shop\n  balance roundrobin\n", new: "backend shop\n  balance roundrobin\n  server c 127.0.0.1:8004 check weight 10\n", inherits: true},
		{name: "a server less", old: "  server b 127.0.0.1:8002 check weight 10\n", new: "", inherits: true},
		{name: "map of strings", files: files{"maps/paths.map": "/a two\n/b three\n"}, inherits: true},
		{name: "certificate", files: files{"ssl/a.pem": string(other)}, inherits: true},
		{name: "map of regular expressions", files: files{"maps/regs.map": "^/(a two\n"}, invalid: true},
		{name: "weak certificate", files: files{"ssl/a.pem": string(weakPair(t))}, invalid: true},
		{name: "broken certificate", files: files{"ssl/a.pem": string(cert[:100])}, invalid: true},
		{name: "certificate of another key", files: files{"ssl/a.pem": string(cert[:len(cert)/2]) + string(other[len(other)/2:])}, invalid: true},
		{name: "weight too high", old: "8002 check weight 10", new: "8002 check weight 300", invalid: true},
		{name: "new option", old: "8002 check weight 10", new: "8002 check weight 10 nonsense", invalid: true},
		{name: "two servers of one name", old: "server b", new: "server a", invalid: true},
		{name: "no port", old: "127.0.0.1:8002", new: "127.0.0.1:x", invalid: true},
		{name: "time-out", old: "timeout client 1s", new: "timeout client 2s"},
		{name: "balance", old: "balance roundrobin", new: "balance nonsense", invalid: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			binary, checks := counting(t)
			v := &validate.Validator{Binary: binary, Timeout: patience}
			if _, err := v.Semantics(t.Context(), with(t, inheritable, nil)); err != nil {
				t.Fatal(err)
			}
			cfg := with(t, strings.Replace(inheritable, tt.old, tt.new, 1), tt.files)
			report, err := v.Semantics(t.Context(), cfg)
			var invalid *validate.Error
			if errors.As(err, &invalid) != tt.invalid || err != nil && invalid == nil {
				t.Fatalf("invalid %v: %v", tt.invalid, err)
			}
			if report != nil && report.Inherited != tt.inherits {
				t.Errorf("inherited %v", report.Inherited)
			}
			want := 2
			if tt.inherits {
				want = 1
			}
			if n := checks(); n != want {
				t.Errorf("haproxy ran %d times, want %d", n, want)
			}
			// What is inherited must be what haproxy itself would say.
			if _, real := (&validate.Validator{NoInherit: true, Timeout: patience}).Semantics(t.Context(), cfg); (real == nil) != (err == nil) {
				t.Errorf("haproxy says %v", real)
			}
		})
	}
}

// TestInheritsFromTheBaseOnly walks away from the base in small steps: each
// is compared with what haproxy checked, never with what was inherited.
func TestInheritsFromTheBaseOnly(t *testing.T) {
	t.Parallel()
	binary, checks := counting(t)
	v := &validate.Validator{Binary: binary, Timeout: patience}
	for i := range 5 {
		main := strings.Replace(good, "8002", strconv.Itoa(8002+i), 1)
		report, err := v.Check(t.Context(), text(t, main))
		if err != nil || report.Inherited != (i > 0) {
			t.Fatalf("step %d: %+v %v", i, report, err)
		}
	}
	// The base had no maxconn of 200; the last inherited one had neither.
	if _, err := v.Check(t.Context(), text(t, strings.Replace(good, "100", "200", 1))); err != nil {
		t.Fatal(err)
	}
	if n := checks(); n != 2 {
		t.Errorf("haproxy ran %d times, want 2", n)
	}
}

// TestInheritsBothPhases: what haproxy alone accepted passes phase 1 no sooner than it is asked.
func TestInheritsBothPhases(t *testing.T) {
	t.Parallel()
	v := &validate.Validator{Timeout: patience, Binary: script(t, "echo 'HAProxy version 2.6.12'\n")} // it accepts all
	wrong := strings.Replace(good, "mode http", "mode http\n  nonsense", 1)
	if _, err := v.Semantics(t.Context(), text(t, wrong)); err != nil {
		t.Fatal(err)
	}
	for port := range 3 {
		_, err := v.Check(t.Context(), text(t, strings.Replace(wrong, "8002", strconv.Itoa(8003+port), 1)))
		var invalid *validate.Error
		if !errors.As(err, &invalid) || invalid.Phase != validate.PhaseSyntax {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := v.Check(t.Context(), text(t, good)); err != nil {
		t.Fatal(err)
	}
	if report, err := v.Check(t.Context(), text(t, strings.Replace(good, "8002", "8009", 1))); err != nil || !report.Inherited {
		t.Fatal(report, err)
	}
}

// hanging is a haproxy that starts a child and does not end. The child's number
// stands in the file from the moment when it is there.
func hanging(t *testing.T) (binary, pidFile string) {
	pidFile = filepath.Join(t.TempDir(), "pid")
	return script(t, "[ \"$1\" = -v ] && { echo 'HAProxy version 9.9.9-dev'; exit; }\n"+
		"sleep 1000 & echo $! >"+pidFile+".new; mv "+pidFile+".new "+pidFile+"\nwait\n"), pidFile
}

// TestHangingBinary ends a check while its process group does something.
func TestHangingBinary(t *testing.T) {
	t.Parallel()
	binary, pidFile := hanging(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pid := make(chan string, 1)
	go func() {
		pid <- strings.TrimSpace(awaitFile(ctx, pidFile))
		cancel()
	}()
	v := &validate.Validator{Binary: binary, Timeout: patience}
	_, err := v.Semantics(ctx, text(t, good))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if state := processState(t, <-pid); state != "" && state != "Z" {
		t.Errorf("the child of the binary is still there, in state %s", state)
	}
}

// TestTimeout ends a check that nobody else ends.
func TestTimeout(t *testing.T) {
	t.Parallel()
	binary, _ := hanging(t)
	v := &validate.Validator{Binary: binary, Timeout: 100 * time.Millisecond}
	if _, err := v.Semantics(t.Context(), text(t, good)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if _, err := v.Semantics(t.Context(), text(t, good)); !strings.HasSuffix(err.Error(), ": it did not finish within 100ms") {
		t.Fatalf("got %v", err)
	}
}

// TestOutputIsBounded: however much haproxy says, an error is one that people read, and
// no character of it steers a terminal.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	v := &validate.Validator{Timeout: patience, Binary: script(t, `[ "$1" = -v ] && { echo 'HAProxy version 2.6.12'; exit; }
i=0
while [ $i -lt 200 ]; do
	printf '[ALERT]    (1) : config : \033[2J%05000d\n' $i
	i=$((i+1))
done
exit 1
`)}
	_, err := v.Semantics(t.Context(), text(t, good))
	var invalid *validate.Error
	if !errors.As(err, &invalid) || len(invalid.Findings) != 200 || !strings.HasSuffix(err.Error(), "\n\tand 150 more") {
		t.Fatalf("%.300v", err)
	}
	if said := err.Error(); len(said) > 300_000 || strings.Contains(said, "\x1b") || !strings.Contains(said, "0 ...") {
		t.Errorf("%d bytes: %.300q", len(said), said)
	}
}

// awaitFile returns the content of a file once it is there.
func awaitFile(ctx context.Context, path string) string {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if b, err := os.ReadFile(path); err == nil {
			return string(b)
		}
		select {
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
	}
}

// processState waits until a process is gone or has ended.
func processState(t *testing.T, pid string) string {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return ""
		}
		state := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))[0]
		if state == "Z" || state == "X" {
			return "Z"
		}
		select {
		case <-tick.C:
		case <-deadline:
			return state
		}
	}
}

func TestBrokenBinary(t *testing.T) {
	t.Parallel()
	v := &validate.Validator{Timeout: patience, Binary: script(t, "[ \"$1\" = -v ] && { echo 'HAProxy version 9.9.9-dev'; exit; }\nkill -9 $$\n")}
	if _, err := v.Semantics(t.Context(), text(t, good)); !errors.Is(err, validate.ErrBinary) {
		t.Errorf("killed: %v", err)
	}
	v = &validate.Validator{Timeout: patience, Binary: script(t, "echo something else\n")}
	if _, err := v.Semantics(t.Context(), text(t, good)); !errors.Is(err, validate.ErrBinary) {
		t.Errorf("not haproxy: %v", err)
	}
	if _, err := v.Semantics(t.Context(), nil); err == nil {
		t.Error("no configuration: no error")
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	layout := dataplane.Layout{Base: "/srv/lb", Maps: "/data/maps", Certificates: "/data/maps/certs", General: "/srv/lb"}
	main := strings.Replace(good, "  default_backend", `  bind 127.0.0.1:9998 ssl crt-list /srv/lb/list.txt
  http-request set-header x %[path,map_beg(/data/maps/a.map)]
  http-request set-header y /data/mapsnot/etc/data/maps/b
  default_backend`, 1)
	cfg, err := dataplane.NewConfig(main,
		dataplane.File{Kind: dataplane.Map, Name: "a.map", Content: []byte("a b\n")},
		dataplane.File{Kind: dataplane.Certificate, Name: "c.pem", Content: pair(t)},
		dataplane.File{Kind: dataplane.CRTList, Name: "list.txt", Content: []byte("/data/maps/certs/c.pem a.example\n")})
	if err != nil {
		t.Fatal(err)
	}
	v := &validate.Validator{Layout: layout, Timeout: patience}
	if _, err := v.Check(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	bad, err := dataplane.NewConfig(strings.Replace(main, "mode http", "mode nonsense", 1), cfg.Files()...)
	if err != nil {
		t.Fatal(err)
	}
	var invalid *validate.Error
	if _, err := v.Check(t.Context(), bad); !errors.As(err, &invalid) || invalid.Findings[0].File != "/srv/lb/haproxy.cfg" {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	v := &validate.Validator{Timeout: patience}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			main := strings.Replace(good, "maxconn 100", "maxconn "+strconv.Itoa(100+i%3), 1)
			if _, err := v.Check(context.Background(), text(t, main)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
