package dataplanetest_test

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// ask sends one request and returns status, headers and body.
func ask(t *testing.T, s *dataplanetest.Server, method, path, contentType, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+"/v3/"+path, strings.NewReader(body))
	require.NoError(t, err)
	req.SetBasicAuth("admin", "secret")
	req.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, res.Header, string(out)
}

func upload(name, content string) (contentType, body string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file_upload", name)
	_, _ = io.WriteString(part, content)
	_ = w.Close()
	return w.FormDataContentType(), b.String()
}

// TestAnswers lists what has been seen of the real API, one request a row.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const raw = "services/haproxy/configuration/raw"
	const maps, certs = "services/haproxy/storage/maps", "services/haproxy/storage/ssl_certificates"
	mapType, mapBody := upload("site.example.com.txt", "a b\n")
	for name, c := range map[string]struct {
		method, path, contentType, body string
		header                          []string
		status                          int
		want                            string // part of the body
	}{
		"info":                {method: "GET", path: "info", status: 200, want: "v3.2.4"},
		"raw":                 {method: "GET", path: raw, status: 200, want: "maxconn 100"},
		"no version":          {method: "POST", path: raw, body: "global\n", status: 400, want: "version"},
		"stale version":       {method: "POST", path: raw + "?version=7", body: "global\n", status: 409, want: "given version is 7"},
		"empty":               {method: "POST", path: raw + "?version=1", status: 422},
		"scheduled":           {method: "POST", path: raw + "?version=1", body: "global\n  maxconn 5\n", status: 202, want: "# _version=2\n"},
		"skipped":             {method: "POST", path: raw + "?version=1&skip_reload=true", body: "global\n  maxconn 5\n", status: 201, want: "  maxconn 5\n"},
		"only validated":      {method: "POST", path: raw + "?version=9&only_validate=true", body: "global\n  maxconn 5\n", status: 202, want: "maxconn 100"},
		"conditionals vanish": {method: "POST", path: raw + "?version=1&skip_reload=true", body: "global\n.if true\n  maxconn 5\n.endif\n", status: 201, want: "# _version=2"},
		"unknown action":      {method: "POST", path: raw + "?version=1&skip_reload=true", body: "backend b\n  server s 192.0.2.1:1\n", header: []string{"X-Runtime-Actions", "Dance b s now"}, status: 201},
		"unknown server":      {method: "POST", path: raw + "?version=1&skip_reload=true", body: "global\n", header: []string{"X-Runtime-Actions", "SetServerState b s maint"}, status: 500, want: "No such backend"},
		"renamed":             {method: "POST", path: maps, contentType: mapType, body: mapBody, status: 201, want: "site_example_com.txt.map"},
		"empty map":           {method: "PUT", path: maps + "/here.map", status: 422},
		"absent map":          {method: "PUT", path: maps + "/absent.map", body: "x", status: 404},
		"not a certificate":   {method: "PUT", path: certs + "/here.pem", body: "x", status: 500, want: "certificate"},
		"unknown path":        {method: "GET", path: "services/haproxy/transactionz", status: 404},
		"map not loaded":      {method: "GET", path: "services/haproxy/runtime/maps/here.map/entries", status: 404},
		"unknown reload":      {method: "GET", path: "services/haproxy/reloads/2026-01-01-1", status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dataplanetest.New(t, nil)
			s.SetFile(dataplane.Map, "here.map", []byte("a b\n"))
			s.SetFile(dataplane.Certificate, "here.pem", []byte("x"))
			status, header, body := ask(t, s, c.method, c.path, c.contentType, c.body, c.header...)
			if status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("got %d %s", status, body)
			}
			if header.Get("Configuration-Version") == "" {
				t.Error("no version in the header")
			}
		})
	}
}

func TestRuntimeCertificatesSince32(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"v3.0.15": "404 page", "v3.1.2": "404 page", "v3.2.4": "not found", "v3.4.0": "not found"} {
		s := dataplanetest.New(t, &dataplanetest.Options{APIVersion: version})
		if status, _, body := ask(t, s, "GET", "services/haproxy/runtime/ssl_certs/a.pem", "", ""); status != 404 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s", version, status, body)
		}
	}
}

func TestScheduledReload(t *testing.T) {
	t.Parallel()
	s := dataplanetest.New(t, &dataplanetest.Options{ReloadDelay: time.Millisecond})
	status, header, _ := ask(t, s, "POST", "services/haproxy/configuration/raw?version=1", "text/plain", "global\n")
	id := header.Get("Reload-ID")
	if status != 202 || id == "" {
		t.Fatalf("status %d, id %q", status, id)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 5000 {
		if _, _, body := ask(t, s, "GET", "services/haproxy/reloads/"+id, "", ""); strings.Contains(body, "succeeded") {
			return
		}
		<-tick.C
	}
	t.Fatal("the reload does not take place")
}

func TestFailedReloadRevertsTheDiskOnly(t *testing.T) {
	t.Parallel()
	s := dataplanetest.New(t, nil)
	s.FailReload("no luck")
	before := s.Raw()
	status, _, body := ask(t, s, "POST", "services/haproxy/configuration/raw?version=1&force_reload=true", "text/plain", "global\n  maxconn 3\n")
	if status != 400 || !strings.Contains(body, "Reload failed: no luck") {
		t.Errorf("got %d %s", status, body)
	}
	if s.Raw() != before || !strings.Contains(s.Memory(), "maxconn 3") || s.Version() != 2 {
		t.Errorf("version %d, disk %q, memory %q", s.Version(), s.Raw(), s.Memory())
	}
}

func TestRealHAProxyEndsWithTheServer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no haproxy, which CI must have")
		}
		t.Skip("there is no haproxy")
	}
	s := dataplanetest.New(t, &dataplanetest.Options{HAProxy: &dataplanetest.HAProxy{}})
	pid := s.WorkerPID()
	if pid == 0 {
		t.Fatal("no worker")
	}
	config, err := dataplane.NewConfig("global\n  maxconn 50\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nfrontend f\n  bind unix@f.sock\nbackend b\n  server s 127.0.0.1:1\n")
	require.NoError(t, err)
	r, err := dataplane.Sync(context.Background(), s.Endpoint(), config, &dataplane.ClientOptions{Layout: s.Layout()})
	require.NoError(t, err)
	if now := s.WorkerPID(); now == pid || r.WorkerPID != now || r.Reloads != 1 {
		t.Errorf("worker %d -> %d, %v", pid, now, r)
	}
	dir := s.Layout().Dir(dataplane.Map)
	s.Close()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
