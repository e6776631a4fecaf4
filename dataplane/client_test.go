package dataplane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// site is an API under test, with a haproxy or one who pretends behind it.
type site struct {
	*dataplanetest.Server
	endpoint dataplane.Endpoint
	real     bool // there is a haproxy
	foreign  bool // the API is not ours: state comes from the disk, faults are not to be had
}

func (s *site) client(t *testing.T, o *dataplane.ClientOptions) *dataplane.Client {
	t.Helper()
	if o == nil {
		o = &dataplane.ClientOptions{}
	}
	o.Layout = s.Layout()
	c, err := dataplane.NewClient(s.endpoint, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// stored is the text on disk, without the lines of the API. The real one writes
// "from unnamed_defaults_1" from its second write on only, so that is left out.
func (s *site) stored(t *testing.T) string {
	t.Helper()
	if !s.foreign {
		return s.Raw()
	}
	b, err := os.ReadFile(s.Layout().ConfigPath())
	if err != nil {
		t.Fatal(err)
	}
	var plain strings.Builder
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "# _") {
			plain.WriteString(strings.Replace(line, " from unnamed_defaults_1", "", 1))
		}
	}
	return plain.String()
}

// file is the content of a stored file, "" if there is none.
func (s *site) file(kind dataplane.FileKind, name string) string {
	if !s.foreign {
		content, _ := s.File(kind, name)
		return string(content)
	}
	b, _ := os.ReadFile(s.Layout().Path(kind, name))
	return string(b)
}

// interfere has somebody else write a text.
func (s *site) interfere(t *testing.T, text string) {
	t.Helper()
	if !s.foreign {
		s.Write(text)
		return
	}
	do := func(method, path string, body io.Reader) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, s.endpoint.URL+"/v3/"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(s.endpoint.Username, s.endpoint.Password)
		req.Header.Set("Content-Type", "text/plain")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	version := do("GET", "info", http.NoBody).Header.Get("Configuration-Version")
	res := do("POST", "services/haproxy/configuration/raw?skip_reload=true&version="+version, strings.NewReader(text))
	if res.StatusCode != http.StatusCreated {
		t.Fatalf("status %d", res.StatusCode)
	}
}

// sites runs a test against each API that there is.
func sites(t *testing.T, test func(t *testing.T, s *site)) {
	t.Run("fake", func(t *testing.T) {
		s := dataplanetest.New(t, nil)
		test(t, &site{Server: s, endpoint: s.Endpoint()})
	})
	t.Run("haproxy", func(t *testing.T) {
		s := dataplanetest.New(t, &dataplanetest.Options{HAProxy: siteHAProxy(t)})
		test(t, &site{Server: s, endpoint: s.Endpoint(), real: true})
	})
	if binary := os.Getenv("DATAPLANEAPI_BIN"); binary != "" {
		t.Run("dataplaneapi", func(t *testing.T) {
			s := dataplanetest.New(t, &dataplanetest.Options{HAProxy: siteHAProxy(t)})
			test(t, &site{Server: s, endpoint: startDataplaneAPI(t, binary, s), real: true, foreign: true})
		})
	}
}

func siteHAProxy(t *testing.T) *dataplanetest.HAProxy {
	t.Helper()
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no haproxy, which CI must have")
		}
		t.Skip("there is no haproxy")
	}
	return &dataplanetest.HAProxy{Binary: binary}
}

// startDataplaneAPI runs a real Dataplane API on the haproxy of a server.
func startDataplaneAPI(t *testing.T, binary string, s *dataplanetest.Server) dataplane.Endpoint {
	t.Helper()
	port := sitePort(t)
	reload, master := s.ReloadCommand()
	l := s.Layout()
	dir := filepath.Dir(l.ConfigPath())
	settings := fmt.Sprintf(`config_version: 2
name: test
dataplaneapi:
  host: 127.0.0.1
  port: %d
  scheme: [http]
  user: [{name: admin, password: secret, insecure: true}]
  transaction: {transaction_dir: %[2]s/tx, backups_number: 0}
  resources: {maps_dir: %[3]s, ssl_certs_dir: %[4]s, general_storage_dir: %[5]s, spoe_dir: %[2]s/spoe, dataplane_storage_dir: %[2]s/dp}
haproxy:
  config_file: %[6]s
  haproxy_bin: haproxy
  master_worker_mode: true
  master_runtime: %[7]s
  reload: {reload_delay: 1, reload_strategy: custom, reload_cmd: %[8]s, restart_cmd: "true"}
`, port, dir, l.Dir(dataplane.Map), l.Dir(dataplane.Certificate), l.Dir(dataplane.General), l.ConfigPath(), master, reload)
	file := filepath.Join(dir, "dataplaneapi.yml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-f", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	waitForSite(t, func() bool {
		res, err := http.Get(url + "/v3/info")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return true
	})
	return dataplane.Endpoint{Name: "real", URL: url, Username: "admin", Password: "secret"}
}

func waitForSite(t *testing.T, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-time.After(10 * time.Second):
			t.Fatal("not ready in time")
		}
	}
}

func sitePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// desired is a configuration with something of everything.
type desired struct {
	layout      dataplane.Layout
	global      string // lines for the global section
	bind        string // more lines for the frontend
	s1, s2      string // words of the servers
	mapText     string
	page        string
	certificate []byte
	noFiles     bool // leaves the general file out
}

func newDesired(t *testing.T, s *site) desired {
	return desired{
		layout: s.Layout(), s1: "127.0.0.1:1001 weight 10", s2: "127.0.0.1:1002 disabled",
		mapText: "/a a\n/b b\n", page: "HTTP/1.0 503 Sorry\r\n\r\n", certificate: siteCertificate(t, "a.test"),
	}
}

func (d desired) text() string {
	errorfile := ""
	if !d.noFiles {
		errorfile = "  errorfile 503 " + d.layout.Path(dataplane.General, "sorry.http") + "\n"
	}
	return `global
  maxconn 100
` + d.global + `
defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
` + errorfile + `
frontend f
  bind unix@` + d.layout.Path(dataplane.General, "f.sock") + `
  bind unix@` + d.layout.Path(dataplane.General, "t.sock") + ` ssl crt-list ` + d.layout.Path(dataplane.CRTList, "list.txt") + `
` + d.bind + `  http-request set-header X-Map %[path,map(` + d.layout.Path(dataplane.Map, "m.map") + `)]
  default_backend b

backend b
  balance roundrobin
  server s1 ` + d.s1 + `
  server s2 ` + d.s2 + `
`
}

func (d desired) config(t *testing.T) *dataplane.Config {
	t.Helper()
	files := []dataplane.File{
		{Kind: dataplane.Map, Name: "m.map", Content: []byte(d.mapText)},
		{Kind: dataplane.Certificate, Name: "a.pem", Content: d.certificate},
		{Kind: dataplane.CRTList, Name: "list.txt", Content: []byte(d.layout.Path(dataplane.Certificate, "a.pem") + "\n")},
	}
	if !d.noFiles {
		files = append(files, dataplane.File{Kind: dataplane.General, Name: "sorry.http", Content: []byte(d.page)})
	}
	c, err := dataplane.NewConfig(d.text(), files...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func siteCertificate(t testing.TB, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(out, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
}

func fingerprintOf(certificate []byte) string {
	block, _ := pem.Decode(certificate)
	sum := sha1.Sum(block.Bytes) //nolint:gosec // see the import
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

func syncSite(t *testing.T, c *dataplane.Client, config *dataplane.Config) *dataplane.Result {
	t.Helper()
	r, err := c.Sync(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if r.Hash != config.Hash() || r.Plan == nil || r.Duration <= 0 {
		t.Errorf("result %+v", r)
	}
	return r
}

// TestClientChanges deploys a configuration, then one change, and says what
// the change must cost. Afterwards nothing may differ, also for a client that
// knows nothing.
func TestClientChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(t *testing.T, d *desired)
		reloads int
		impact  dataplane.Impact
		check   func(t *testing.T, s *site, d desired)
	}{
		"nothing": {
			change: func(*testing.T, *desired) {},
		},
		"address and weight": {
			change: func(_ *testing.T, d *desired) { d.s1 = "127.0.0.2:1003 weight 20" },
			impact: dataplane.ImpactRuntime,
			check: func(t *testing.T, s *site, _ desired) {
				if address, _ := s.LoadedServer("b", "s1"); address != "127.0.0.2:1003" {
					t.Errorf("s1 has %s", address)
				}
			},
		},
		"a slot comes to life": {
			change: func(_ *testing.T, d *desired) { d.s2 = "127.0.0.3:1004" },
			impact: dataplane.ImpactRuntime,
			check: func(t *testing.T, s *site, _ desired) {
				if address, state := s.LoadedServer("b", "s2"); address != "127.0.0.3:1004" || state != "ready" {
					t.Errorf("s2 has %s %s", address, state)
				}
			},
		},
		"map entries": {
			change: func(_ *testing.T, d *desired) { d.mapText = "/a changed\n/c c\n" },
			impact: dataplane.ImpactRuntime,
			check: func(t *testing.T, s *site, d desired) {
				loaded := s.LoadedMap("m.map")
				if len(loaded) != 2 || loaded["/a"] != "changed" || loaded["/c"] != "c" {
					t.Errorf("loaded %v", loaded)
				}
				if got := s.file(dataplane.Map, "m.map"); got != d.mapText {
					t.Errorf("stored %q", got)
				}
			},
		},
		"map entry with a blank": {
			change:  func(_ *testing.T, d *desired) { d.mapText = "/a a\n/b two words\n" },
			impact:  dataplane.ImpactReload,
			reloads: 1,
		},
		"certificate": {
			change: func(t *testing.T, d *desired) { d.certificate = siteCertificate(t, "a.test") },
			impact: dataplane.ImpactRuntime,
			check: func(t *testing.T, s *site, d desired) {
				if got := s.LoadedCertificate("a.pem"); got != fingerprintOf(d.certificate) {
					t.Errorf("loaded %s", got)
				}
			},
		},
		"directive": {
			change:  func(_ *testing.T, d *desired) { d.global = "  nbthread 2\n" },
			impact:  dataplane.ImpactReload,
			reloads: 1,
		},
		"content of a general file": {
			change:  func(_ *testing.T, d *desired) { d.page = "HTTP/1.0 503 No\r\n\r\n" },
			impact:  dataplane.ImpactReload,
			reloads: 1,
		},
		"a file goes": {
			change:  func(_ *testing.T, d *desired) { d.noFiles = true },
			impact:  dataplane.ImpactReload,
			reloads: 1,
			check: func(t *testing.T, s *site, _ desired) {
				if got := s.file(dataplane.General, "sorry.http"); got != "" {
					t.Errorf("still there: %q", got)
				}
			},
		},
		"comment": {
			change: func(_ *testing.T, d *desired) { d.global = "  # nothing\n" },
		},
		"all at once": {
			change: func(t *testing.T, d *desired) {
				d.global, d.s1, d.mapText = "  nbthread 2\n", "127.0.0.9:9", "/z z\n"
				d.certificate = siteCertificate(t, "a.test")
			},
			impact:  dataplane.ImpactReload,
			reloads: 1,
			check: func(t *testing.T, s *site, d desired) {
				address, _ := s.LoadedServer("b", "s1")
				if loaded := s.LoadedMap("m.map"); loaded["/z"] != "z" || address != "127.0.0.9:9" || s.LoadedCertificate("a.pem") != fingerprintOf(d.certificate) {
					t.Errorf("loaded %v %s", loaded, address)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sites(t, func(t *testing.T, s *site) {
				d := newDesired(t, s)
				client := s.client(t, nil)
				if r := syncSite(t, client, d.config(t)); r.Reloads != 1 || r.Files < 4 {
					t.Errorf("first: %v", r)
				}
				before := s.WorkerPID()
				c.change(t, &d)
				config := d.config(t)
				plan, err := client.DryRun(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				r := syncSite(t, client, config)
				if plan.Impact() != c.impact || r.Plan.Impact() != c.impact || r.Reloads != c.reloads || r.Fallback != "" {
					t.Errorf("want %v and %d reloads\nplan %v\ndone %v\n%v", c.impact, c.reloads, plan, r, r.Plan)
				}
				if reloaded := s.WorkerPID() != before; reloaded != (c.reloads > 0) {
					t.Errorf("reloaded: %v", reloaded)
				}
				if c.check != nil {
					c.check(t, s, d)
				}
				pid := s.WorkerPID()
				for _, again := range []*dataplane.Client{client, s.client(t, nil)} {
					if plan, err := again.DryRun(t.Context(), config); err != nil || !plan.Empty() {
						t.Errorf("still differs: %v %v", plan, err)
					}
					if r := syncSite(t, again, config); !r.Plan.Empty() || r.Reloads != 0 {
						t.Errorf("again: %v", r)
					}
				}
				if s.WorkerPID() != pid {
					t.Error("a sync with nothing to do reloaded")
				}
			})
		})
	}
}

func TestClientSomebodyElseWrites(t *testing.T) {
	sites(t, func(t *testing.T, s *site) {
		d := newDesired(t, s)
		client := s.client(t, nil)
		syncSite(t, client, d.config(t))
		want := s.stored(t)
		s.interfere(t, strings.Replace(want, "maxconn 100", "maxconn 99", 1))
		if s.stored(t) == want {
			t.Fatal("nothing has changed")
		}
		r := syncSite(t, client, d.config(t))
		if got := s.stored(t); got != want || r.Plan.Empty() || r.Reloads != 1 {
			t.Errorf("%v\n%s", r, got)
		}
	})
}

func TestClientRefusedConfiguration(t *testing.T) {
	sites(t, func(t *testing.T, s *site) {
		if !s.real {
			s = &site{Server: dataplanetest.New(t, &dataplanetest.Options{Validate: func(text string) string {
				for i, line := range strings.Split(text, "\n") {
					if strings.Contains(line, "bogus") {
						return fmt.Sprintf("msg=\"parsing [/tmp/x:%d] : unknown keyword 'bogus'\"", i+1)
					}
				}
				return ""
			}})}
			s.endpoint = s.Endpoint()
		}
		d := newDesired(t, s)
		client := s.client(t, nil)
		syncSite(t, client, d.config(t))
		text, pid, version := s.stored(t), s.WorkerPID(), s.Version()
		bad := d
		bad.global, bad.mapText = "  bogus keyword\n", "/n new\n"
		_, err := client.Sync(t.Context(), bad.config(t))
		var e *dataplane.Error
		if !errors.As(err, &e) || !errors.Is(err, dataplane.ErrInvalid) || dataplane.Retryable(err) {
			t.Fatalf("got %v", err)
		}
		if e.Line != 3 || e.File != "haproxy.cfg" || !strings.Contains(e.Output, "bogus") || e.Endpoint != s.endpoint.Name || e.Status != 400 {
			t.Errorf("got %+v", e)
		}
		if s.stored(t) != text || s.WorkerPID() != pid || s.Version() != version || s.file(dataplane.Map, "m.map") != d.mapText {
			t.Error("something was left behind")
		}
		if r := syncSite(t, client, d.config(t)); r.Reloads != 0 || !r.Plan.Empty() {
			t.Errorf("after it: %v", r)
		}
	})
}

func TestClientFailedReload(t *testing.T) {
	sites(t, func(t *testing.T, s *site) {
		d := newDesired(t, s)
		client := s.client(t, &dataplane.ClientOptions{ReloadTimeout: 3 * time.Second})
		syncSite(t, client, d.config(t))
		text, pid := s.stored(t), s.WorkerPID()
		bad := d
		bad.mapText = "/a another\n"
		taken, err := net.Listen("tcp", "127.0.0.1:0") // valid, but not to be had
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = taken.Close() }()
		bad.bind = "  bind " + taken.Addr().String() + "\n"
		if !s.real {
			s.FailReload("cannot bind socket")
		}
		_, err = client.Sync(t.Context(), bad.config(t))
		var e *dataplane.Error
		if !errors.As(err, &e) || !errors.Is(err, dataplane.ErrReload) || dataplane.Retryable(err) {
			t.Fatalf("got %v", err)
		}
		if !s.foreign && !strings.Contains(e.Output, "cannot bind") {
			t.Errorf("output %q", e.Output)
		}
		if got := s.stored(t); got != text {
			t.Errorf("stored before:\n%s\nnow:\n%s", text, got)
		}
		if now := s.WorkerPID(); now != pid {
			t.Errorf("worker %d -> %d", pid, now)
		}
		if got := s.file(dataplane.Map, "m.map"); got != d.mapText {
			t.Errorf("map %q", got)
		}
		if !s.foreign && s.Memory() != text {
			t.Error("the API still has the failed text in memory")
		}
		if r := syncSite(t, client, d.config(t)); r.Reloads != 0 {
			t.Errorf("after it: %v", r)
		}
		_ = taken.Close()
		if r := syncSite(t, client, bad.config(t)); r.Reloads != 1 {
			t.Errorf("with the port free: %v", r)
		}
	})
}
