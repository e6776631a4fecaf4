package dataplanetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// step is one request and what the real API answers to it. In path and body,
// {dir} is the folder of the configuration, {dir%2F} the same as an element of a
// path, {v} its version, and {name} what an earlier step has saved under that
// name.
type step struct {
	do     string // method and path below services/haproxy
	body   string // JSON if it begins with { or [, else plain text
	file   string // uploads the body as a file of that name, in a form
	header string // one more, "Name: value"

	status int
	want   string // part of the body
	reload bool   // a Reload-ID comes with it
	save   string // name for the identifier in the answer: of a reload, else "id" in the body

	differs string // why the body is not compared with that of the real one
}

// scenario is a story that begins with a fresh configuration. Its steps read as
// a description of the API.
type scenario struct {
	name  string
	steps []step
	from  int    // version of HAProxy, 10 x major + minor, that it takes
	judge bool   // haproxy decides what the answers are, so that there has to be one
	skip  string // why the real one is not asked
}

// subject is an API that a scenario is told to.
type subject struct {
	url, dir string
	version  int64
	saved    map[string]string
	ids      []string // saved identifiers, to be replaced in bodies
}

// TestConformance tells every scenario to a Server without a haproxy and to one
// with it, and where DATAPLANEAPI_BIN names a real Dataplane API to that: the
// statuses must be those of the table, and the bodies of success say the same.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			told := map[string][]string{}
			tell := func(name string, open func(t *testing.T) *subject) {
				t.Run(name, func(t *testing.T) { told[name] = open(t).tell(t, sc.steps) })
			}
			if !sc.judge {
				tell("pretender", func(t *testing.T) *subject {
					return subjectOf(dataplanetest.New(t, &dataplanetest.Options{Config: startText, ReloadDelay: time.Hour}))
				})
			}
			binary := haproxyBinary(t)
			if binary == "" || haproxyVersion(t, binary) < sc.from {
				return
			}
			tell("haproxy", func(t *testing.T) *subject { return subjectOf(withHAProxy(t, binary)) })
			if api := os.Getenv("DATAPLANEAPI_BIN"); api != "" && sc.skip == "" {
				tell("dataplaneapi", func(t *testing.T) *subject { return startReal(t, api, binary, withHAProxy(t, binary)) })
			}
			compare(t, sc.steps, told)
		})
	}
}

// compare compares the bodies of the real API with those of ours.
func compare(t *testing.T, steps []step, told map[string][]string) {
	real := told["dataplaneapi"]
	for name, ours := range told {
		if len(real) != len(steps) || len(ours) != len(steps) || name == "dataplaneapi" {
			continue
		}
		for i, st := range steps {
			if st.differs == "" && st.status < 300 && !within(ours[i], real[i]) {
				t.Errorf("%s: %s: body differs:\n%s", name, st.do, cmp.Diff(real[i], ours[i]))
			}
		}
	}
}

// within reports whether a body is the same as the real one, which may tell more:
// other fields of objects.
func within(ours, real string) bool {
	var a, b any
	if json.Unmarshal([]byte(ours), &a) != nil || json.Unmarshal([]byte(real), &b) != nil {
		return ours == real
	}
	return valueWithin(a, b)
}

func valueWithin(ours, real any) bool {
	switch a := ours.(type) {
	case map[string]any:
		b, ok := real.(map[string]any)
		for name, value := range a {
			ok = ok && valueWithin(value, b[name])
		}
		return ok
	case []any:
		b, ok := real.([]any)
		return ok && slices.EqualFunc(a, b, valueWithin)
	}
	return ours == real
}

const startText = `global
  maxconn 100

defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s

frontend f
  bind unix@f.sock
  default_backend b

backend b
  balance roundrobin
  server s1 127.0.0.1:1001 weight 10
  server s2 127.0.0.1:1002
`

func withHAProxy(t *testing.T, binary string) *dataplanetest.Server {
	t.Helper()
	return dataplanetest.New(t, &dataplanetest.Options{Config: startText, ReloadDelay: time.Hour, HAProxy: &dataplanetest.HAProxy{Binary: binary}})
}

func subjectOf(s *dataplanetest.Server) *subject {
	return &subject{url: s.URL(), dir: filepath.Dir(s.Layout().ConfigPath()), saved: map[string]string{}}
}

// haproxyBinary finds a haproxy, "" if there is none and need not be.
func haproxyBinary(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("haproxy")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("there is no haproxy, which CI must have")
	}
	return binary
}

func haproxyVersion(t *testing.T, binary string) int {
	t.Helper()
	out, err := exec.Command(binary, "-v").Output()
	require.NoError(t, err)
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "HAProxy version %d.%d", &major, &minor); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return 10*major + minor
}

// startReal runs a real Dataplane API on the haproxy of a server, in a folder
// that only the two know.
func startReal(t *testing.T, api, haproxy string, s *dataplanetest.Server) *subject {
	t.Helper()
	port := freePort(t)
	reload, master := s.ReloadCommand()
	l := s.Layout()
	sub := subjectOf(s)
	sub.url = fmt.Sprintf("http://127.0.0.1:%d", port)
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
  haproxy_bin: %[9]s
  master_worker_mode: true
  master_runtime: %[7]s
  reload: {reload_delay: 3600, reload_strategy: custom, reload_cmd: %[8]s, restart_cmd: "true"}
`, port, sub.dir, l.Dir(dataplane.Map), l.Dir(dataplane.Certificate), l.Dir(dataplane.General), l.ConfigPath(), master, reload, haproxy)
	file := filepath.Join(sub.dir, "dataplaneapi.yml")
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	cmd := exec.Command(api, "-f", file)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitUntil(t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return sub
}

func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Error("not ready in time")
			return
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// tell takes all steps and returns the bodies of the answers, without what
// changes from run to run.
func (sub *subject) tell(t *testing.T, steps []step) (bodies []string) {
	t.Helper()
	sub.version = 1
	for i, st := range steps {
		res, body := sub.ask(t, st)
		where := fmt.Sprintf("step %d, %s", i+1, st.do)
		if res.StatusCode != st.status || !strings.Contains(sub.mask(body), sub.fill(st.want)) {
			t.Errorf("%s: got %d, want %d %s\n%s", where, res.StatusCode, st.status, st.want, body)
		}
		if got := res.Header.Get("Reload-ID") != ""; got != st.reload {
			t.Errorf("%s: Reload-ID %q, want one: %v", where, res.Header.Get("Reload-ID"), st.reload)
		}
		if st.save != "" {
			sub.keep(t, where, st, res, body)
		}
		if st.status != http.StatusInternalServerError {
			if _, err := fmt.Sscan(res.Header.Get("Configuration-Version"), &sub.version); err != nil {
				t.Errorf("%s: Configuration-Version: %v", where, err)
			}
		}
		bodies = append(bodies, sub.mask(body))
	}
	return bodies
}

// keep saves an identifier: of the reload, or of the object, which is in a list
// the first that is wanted.
func (sub *subject) keep(t *testing.T, where string, st step, res *http.Response, body string) {
	name, id := st.save, res.Header.Get("Reload-ID")
	if id == "" {
		list := []json.RawMessage{[]byte(body)}
		_ = json.Unmarshal([]byte(body), &list)
		i := slices.IndexFunc(list, func(one json.RawMessage) bool { return strings.Contains(sub.mask(string(one)), st.want) })
		var object struct{ ID string }
		if i < 0 || json.Unmarshal(list[i], &object) != nil || object.ID == "" {
			t.Fatalf("%s: no identifier in %s", where, body)
		}
		id = object.ID
	}
	sub.saved[name] = id
	if len(id) > len("99") { // a number would be found elsewhere
		sub.ids = append(sub.ids, id, "$"+name)
	}
}

func (sub *subject) fill(text string) string {
	for name, value := range sub.saved {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return strings.NewReplacer("{v}", fmt.Sprint(sub.version), "{dir}", sub.dir, "{dir%2F}", url.PathEscape(sub.dir+"/")).Replace(text)
}

func (sub *subject) ask(t *testing.T, st step) (*http.Response, string) {
	t.Helper()
	method, path, _ := strings.Cut(sub.fill(st.do), " ")
	body := []byte(sub.fill(st.body))
	kind := "text/plain"
	switch {
	case st.file != "":
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		part, err := w.CreateFormFile("file_upload", st.file)
		require.NoError(t, err)
		_, _ = part.Write(body)
		_ = w.Close()
		body, kind = form.Bytes(), w.FormDataContentType()
	case strings.HasPrefix(st.body, "{") || strings.HasPrefix(st.body, "["):
		kind = "application/json"
	}
	req, err := http.NewRequestWithContext(t.Context(), method, sub.url+"/v3/services/haproxy/"+path, bytes.NewReader(body))
	require.NoError(t, err)
	req.SetBasicAuth("admin", "secret")
	if len(body) > 0 {
		req.Header.Set("Content-Type", kind)
	}
	if name, value, ok := strings.Cut(st.header, ": "); ok {
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Fatalf("%s: %v", st.do, err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", st.do, err)
	}
	return res, string(out)
}

var (
	hashLine = regexp.MustCompile(`_md5hash=[0-9a-f]{32}`)
	uuid     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	handle   = regexp.MustCompile(`0x[0-9a-f]+`)
)

// mask replaces what changes from run to run, and sorts the fields of objects.
func (sub *subject) mask(body string) string {
	body = strings.NewReplacer(sub.ids...).Replace(body)
	body = strings.ReplaceAll(body, sub.dir, "/etc/haproxy")
	body = hashLine.ReplaceAllLiteralString(body, "_md5hash=#")
	body = uuid.ReplaceAllLiteralString(body, "$uuid")
	body = handle.ReplaceAllLiteralString(body, "0x")
	body = strings.TrimSpace(body)
	var value any
	if json.Unmarshal([]byte(body), &value) == nil {
		sorted, _ := json.Marshal(value)
		return string(sorted)
	}
	return body
}
