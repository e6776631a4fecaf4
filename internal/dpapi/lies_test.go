package dpapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// raw answers with bytes that no HTTP server would send, until the other side leaves.
func raw(w http.ResponseWriter, head string, chunk []byte) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, head)
	for err == nil && chunk != nil {
		_, err = conn.Write(chunk)
	}
}

func files(ctx context.Context, c *dpapi.Client) error {
	_, err := c.Files(ctx, dpapi.Maps)
	return err
}

// An API that lies costs neither memory nor time.
func TestLies(t *testing.T) {
	const mb = 1 << 20
	filler := bytes.Repeat([]byte("x"), mb)
	long := strings.Repeat("x", 50*mb)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		_, _ = z.Write(make([]byte, mb))
	}
	_ = z.Close()
	say := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	listOf := func(element string) string {
		return "[" + strings.Repeat(element+",", 1_000_000) + element + "]"
	}
	stats := func(ctx context.Context, c *dpapi.Client) error { _, err := c.ServerStats(ctx, ""); return err }
	text := func(ctx context.Context, c *dpapi.Client) error { _, err := c.GetRaw(ctx); return err }
	for name, lie := range map[string]struct {
		serve http.HandlerFunc
		ask   func(context.Context, *dpapi.Client) error
		want  string // in the error
		most  uint64 // MB that may be allocated, all together
	}{
		"headers": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nX-Long: ", filler)
		}, files, "response headers exceeded", 8},
		"informational answers": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "", bytes.Repeat([]byte("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n"), 1000))
		}, files, "", 8},
		"trailers": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Long\r\n\r\n2\r\n[]\r\n0\r\nX-Long: ", filler)
		}, files, "trailer", 8},
		"no end": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\n\r\n", filler)
		}, files, "larger than 16777216 bytes", 128},
		"no end of an error": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 500 No\r\n\r\n", filler)
		}, files, "status 500", 8},
		"gzip bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		}, text, "", 16},
		"message":         {say(400, `{"code":400,"message":"`+long+`"}`), files, "status 400", 8},
		"version":         {say(200, `{"api":{"version":`+strings.Repeat("1", 15*mb)+`}}`), func(ctx context.Context, c *dpapi.Client) error { _, err := c.Info(ctx); return err }, "decode", 160},
		"deep":            {say(200, strings.Repeat("[", 1_000_000)+strings.Repeat("]", 1_000_000)), files, "depth", 64},
		"deep and hidden": {say(200, `{"a":`+strings.Repeat("[", 1_000_000)+strings.Repeat("]", 1_000_000)+`}`), stats, "depth", 64},
		"empty objects":   {say(200, listOf("{}")), files, "more than 500000 elements", 320},
		"nulls":           {say(200, listOf("null")), files, "more than 500000 elements", 320},
		"numbers":         {say(200, listOf("0")), files, "of a wrong type", 200},
		"statistics":      {say(200, `{"stats":`+listOf("{}")+`}`), stats, "more than 500000 elements", 400},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, lie.serve)
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			err := lie.ask(t.Context(), c)
			runtime.ReadMemStats(&after)
			used := (after.TotalAlloc - before.TotalAlloc) / mb
			t.Logf("%d MB, %v", used, time.Since(start))
			if used > lie.most {
				t.Errorf("%d MB", used)
			}
			if err == nil && lie.want != "" || err != nil && !strings.Contains(err.Error(), lie.want) {
				t.Errorf("%.300v", err)
			}
			if err != nil && len(err.Error()) > 5000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// A byte a second is given up after the time of one request.
func TestDrips(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-r.Context().Done():
				tick.Stop()
				return
			case <-tick.C:
				_, _ = io.WriteString(w, "[")
				w.(http.Flusher).Flush()
			}
		}
	}))
	t.Cleanup(s.Close)
	start := time.Now()
	err := files(t.Context(), client(t, s.URL, dpapi.Options{Timeout: time.Second}))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// No redirect is followed, whoever makes the HTTP client: neither our password nor a
// configuration with its keys goes to another.
func TestRedirects(t *testing.T) {
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		stolen = append(stolen, r.Header.Get("Authorization")+string(body))
	}))
	t.Cleanup(thief.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+r.URL.Path, status)
		}))
		t.Cleanup(s.Close)
		for _, given := range []*http.Client{nil, {}, {Transport: &http.Transport{}}} {
			c := client(t, s.URL, dpapi.Options{Username: "u", Password: "p", HTTPClient: given})
			_, err := c.Push(t.Context(), "global\n", 1, dpapi.ForceReload)
			if err := errors.Join(files(t.Context(), c)); dpapi.Status(err) != status {
				t.Errorf("%v", err)
			}
			if dpapi.Status(err) != status {
				t.Errorf("%v", err)
			}
		}
	}
	if len(stolen) > 0 {
		t.Errorf("%q", stolen)
	}
}

// What the API sends back of our own header is not shown, however it packs it.
func TestEchoes(t *testing.T) {
	const user, password = "admin", "s3cr/t \"pass\"\u00e9+word"
	header := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	forms := map[string]string{
		"plain": password, "header": "Basic " + header, "password": base64.StdEncoding.EncodeToString([]byte(password)), "url": base64.URLEncoding.EncodeToString([]byte(user + ":" + password)),
		"query": url.QueryEscape(password), "path": url.PathEscape(password), "late": strings.Repeat("x", 4096-5) + password,
	}
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for name, echo := range forms {
		for where, body := range map[string]string{
			"message": `{"message":` + quoted(echo) + `}`, "text": echo, "again": quoted(`{"message":` + quoted(echo) + `}`), "cut": `{"message":` + quoted(echo) + strings.Repeat(" ", 100_000),
		} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(s.Close)
			c := client(t, s.URL, dpapi.Options{Username: user, Password: password})
			hidden(t, name+" "+where, files(t.Context(), c), password, header)
		}
		for where, head := range map[string]string{
			"status line": "NOT-HTTP " + strings.ReplaceAll(echo, "\n", "") + "\r\n\r\n",
			"a time":      "HTTP/1.1 200 OK\r\n\r\n" + `{"not_after":` + quoted(echo) + `}`,
		} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { raw(w, head, nil) }))
			t.Cleanup(s.Close)
			_, err := client(t, s.URL, dpapi.Options{Username: user, Password: password}).CertificateInfo(t.Context(), "a.pem")
			hidden(t, name+" "+where, err, password, header)
		}
	}
}

func hidden(t *testing.T, name string, err error, password, header string) {
	t.Helper()
	text := fmt.Sprintf("%v %q", err, err)
	for _, secret := range []string{password, password[:12], "s3cr", header, header[:20], base64.StdEncoding.EncodeToString([]byte(password))[:16], url.QueryEscape(password), url.PathEscape(password)} {
		if err == nil || strings.Contains(text, secret) {
			t.Errorf("%s: %.300s", name, text)
			return
		}
	}
}

// Nothing that the API says steers a terminal.
func TestControlCharacters(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "a\x1b[2Jb\u009bc\u202ed\nline two")
	})
	var s *dpapi.StatusError
	if err := files(t.Context(), c); !errors.As(err, &s) || s.Message != "a\\u001b[2Jb\\u009bc\\u202ed\nline two" {
		t.Errorf("%q", err)
	}
}
