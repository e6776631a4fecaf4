package dataplane_test

import (
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

// site is an API under test, with a haproxy or one who pretends behind it.
type site struct {
	*dataplanetest.Server
	endpoint dataplane.Endpoint
	real     bool // there is a haproxy
	foreign  bool // the API is not ours: state comes from the disk, faults are not to be had
}

func (s *site) client(t testing.TB, o *dataplane.ClientOptions) *dataplane.Client {
	t.Helper()
	if o == nil {
		o = &dataplane.ClientOptions{}
	}
	o.Layout = s.Layout()
	c, err := dataplane.NewClient(s.endpoint, o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// reloadTimeout is for tests of reloads that fail: one of an API that does not
// tell so takes as long.
func (s *site) reloadTimeout() time.Duration {
	if s.foreign {
		return 3 * time.Second
	}
	return patience
}

// stored is the text on disk, without the lines of the API.
func (s *site) stored(t *testing.T) string {
	t.Helper()
	if !s.foreign {
		return s.Raw()
	}
	b, err := os.ReadFile(s.Layout().ConfigPath())
	require.NoError(t, err)
	var plain strings.Builder
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "# _") {
			plain.WriteString(line)
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
		require.NoError(t, err)
		req.SetBasicAuth(s.endpoint.Username, s.endpoint.Password)
		req.Header.Set("Content-Type", "text/plain")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
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
			endpoint, _ := startDataplaneAPI(t, binary, s)
			test(t, &site{Server: s, endpoint: endpoint, real: true, foreign: true})
		})
	}
}

func siteHAProxy(t testing.TB) *dataplanetest.HAProxy {
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
func startDataplaneAPI(t testing.TB, binary string, s *dataplanetest.Server) (dataplane.Endpoint, *foreignAPI) {
	t.Helper()
	port := localPort(t)
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
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	api := &foreignAPI{binary: binary, file: file, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	api.start(t)
	t.Cleanup(api.kill)
	return dataplane.Endpoint{Name: "real", URL: api.url, Username: "admin", Password: "secret"}, api
}

// foreignAPI is a real Dataplane API that runs.
type foreignAPI struct {
	binary, file, url string
	cmd               *exec.Cmd
}

func (a *foreignAPI) start(t testing.TB) {
	t.Helper()
	a.cmd = exec.Command(a.binary, "-f", a.file)
	require.NoError(t, a.cmd.Start())
	waitForSite(t, func() bool {
		res, err := http.Get(a.url + "/v3/info")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return true
	})
}

// kill ends it at once.
func (a *foreignAPI) kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

func waitForSite(t testing.TB, ready func() bool) {
	t.Helper()
	eventually(t, "the site is ready", ready)
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

	more   string // more servers
	extra  []dataplane.File
	list   string // more entries of the crt-list
	second []byte // another certificate in the crt-list
	filter string // what follows its name there
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
` + d.more
}

func (d desired) config(t *testing.T) *dataplane.Config {
	t.Helper()
	files := []dataplane.File{
		{Kind: dataplane.Map, Name: "m.map", Content: []byte(d.mapText)},
		{Kind: dataplane.Certificate, Name: "a.pem", Content: d.certificate},
		{Kind: dataplane.CRTList, Name: "list.txt", Content: []byte(d.layout.Path(dataplane.Certificate, "a.pem") + "\n" + d.list)},
	}
	if d.second != nil {
		list := &files[2]
		list.Content = append(list.Content, d.layout.Path(dataplane.Certificate, "b.pem")+d.filter+"\n"...)
		files = append(files, dataplane.File{Kind: dataplane.Certificate, Name: "b.pem", Content: d.second})
	}
	files = append(files, d.extra...)
	if !d.noFiles {
		files = append(files, dataplane.File{Kind: dataplane.General, Name: "sorry.http", Content: []byte(d.page)})
	}
	c, err := dataplane.NewConfig(d.text(), files...)
	require.NoError(t, err)
	return c
}

func siteCertificate(t testing.TB, name string) []byte {
	t.Helper()
	certificate, key := haproxytest.SelfSigned(t, name)
	return append(certificate, key...)
}

func fingerprintOf(certificate []byte) string {
	block, _ := pem.Decode(certificate)
	sum := sha1.Sum(block.Bytes) //nolint:gosec // see the import
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// memoryAPI is a Dataplane API that is asked without a socket in between.
type memoryAPI struct {
	*dataplanetest.Server
	endpoint dataplane.Endpoint
	client   *http.Client
}

type handlerTransport struct{ handler http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

func newMemoryAPI(t *testing.T) *memoryAPI {
	s := dataplanetest.New(t, nil)
	return &memoryAPI{s, s.Endpoint(), &http.Client{Transport: handlerTransport{s}}}
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
