package fetch

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// wire answers requests without a network, so that time can be a test's.
type wire struct {
	mu       sync.Mutex
	requests []*http.Request
	answer   func(n int, r *http.Request) (*http.Response, error) // n from 1
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.requests = append(w.requests, r)
	n := len(w.requests)
	w.mu.Unlock()
	return w.answer(n, r)
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

func response(status int, body string, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

// page is a server of one content that can be changed.
type page struct {
	mu      sync.Mutex
	content string
}

func (p *page) set(content string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.content = content
}

func (p *page) answer(int, *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return response(200, p.content), nil
}

func gzipped(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
}

func fetch(t *testing.T, s *Store, url string) (*Fetcher, string) {
	t.Helper()
	f := s.Begin(t.Context(), nil)
	content, err := f.fetch(url, nil)
	require.NoError(t, err)
	return f, content
}

func TestFetch(t *testing.T) {
	hang := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/gone", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "hidden", http.StatusGone) })
	mux.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotModified) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1001)) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < 1000; i++ {
			fmt.Fprint(w, strings.Repeat("x", 1000))
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, r *http.Request) { gzipped(w, strings.Repeat("x", 1<<20)) })
	mux.HandleFunc("/exact", func(w http.ResponseWriter, r *http.Request) { gzipped(w, strings.Repeat("x", 1000)) })
	mux.HandleFunc("/truncated", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "short")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begin")
		w.(http.Flusher).Flush()
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	})
	mux.HandleFunc("/forbidden", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/secret", http.StatusFound) })
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(hang)

	for _, c := range []struct {
		path, want, err string
		is              error
	}{
		{path: "/ok", want: "ok"},
		{path: "/there", want: "ok"},
		{path: "/exact", want: strings.Repeat("x", 1000)},
		{path: "/gone", err: "status 410 Gone"},
		{path: "/empty", err: "status 204 No Content"},
		{path: "/304", err: "status 304 Not Modified"},
		{path: "/large", err: "too large: 1001 bytes, 1000 are allowed"},
		{path: "/endless", err: "too large: more than 1000 bytes"},
		{path: "/bomb", err: "too large: more than 1000 bytes"},
		{path: "/truncated", err: "unexpected EOF"},
		{path: "/slow", is: context.DeadlineExceeded}, // on a busy machine while it connects, in other words
		{path: "/loop", err: "more than 5, one after the other"},
		{path: "/file", err: "not an http or https URL"},
		{path: "/secret", err: "not allowed: no"},
		{path: "/forbidden", err: "not allowed: no"},
	} {
		s := &Store{Retries: -1, MaxBytes: 1000, Timeout: 300 * time.Millisecond, Allow: func(u *url.URL) error {
			if u.Path == "/secret" {
				return errors.New("no")
			}
			return nil
		}}
		if c.path != "/slow" {
			s.Timeout = 0
		}
		content, err := s.Begin(t.Context(), nil).fetch(server.URL+c.path, nil)
		if c.is != nil {
			require.ErrorIs(t, err, c.is, c.path)
		}
		if c.err != "" || c.is != nil {
			require.ErrorContains(t, err, c.err, c.path)
			require.ErrorContains(t, err, server.URL+c.path)
			continue
		}
		require.NoError(t, err, c.path)
		require.Equal(t, c.want, content)
	}

	// A port that was just closed may be somebody else's by now; this one nobody takes.
	_, err := (&Store{Retries: -1}).Begin(t.Context(), nil).fetch("http://127.0.0.1:1", nil)
	require.ErrorContains(t, err, "connection refused")
}

func TestURLsAndOptions(t *testing.T) {
	s := &Store{}
	for _, c := range []struct {
		url     string
		options map[string]any
		want    string
	}{
		{"https://a.test/x", nil, ""},
		{"file:///etc/passwd", nil, "not an http or https URL"},
		{"ftp://a.test/", nil, "not an http or https URL"},
		{"a.test/x", nil, "not an http or https URL"},
		{"http:opaque-s3cret", nil, "not an http or https URL"},
		{"http:///x", nil, "not an http or https URL"},
		{"", nil, "not an http or https URL"},
		{"http://a.test/\nHost: b", nil, "not a URL"},
		{"http://user:s3cret/@a.test/", nil, "not a URL"},
		{"http://a.test/", map[string]any{"intervall": "1s"}, `no option is called "intervall"`},
		{"http://a.test/", map[string]any{"interval": 7}, "option interval is a int, not a string"},
		{"http://a.test/", map[string]any{"interval": "-1s"}, "not more than zero"},
		{"http://a.test/", map[string]any{"timeout": "soon"}, "option timeout"},
		{"http://a.test/", map[string]any{"token": "s3cret", "password": "s3cret"}, "two credentials"},
		{"http://user:s3cret@a.test/?s3cret", map[string]any{"token": "s3cret"}, "two credentials"},
		{"http://a.test/?a=s3cret&s3cret", map[string]any{"token": "s3cret\r\nX: y"}, "white space"},
	} {
		_, _, err := s.parse(c.url, c.options)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "s3cret")
	}
	_, opts, err := s.parse("http://a.test/", map[string]any{"interval": "1ms"})
	require.NoError(t, err)
	require.Equal(t, time.Second, opts.interval, "a floor")
}

// FuzzURL: whatever stands around them, neither a password nor the query prints.
func FuzzURL(f *testing.F) {
	f.Add("http://", "/x", "key=")
	f.Add("HTTPS://", "", "")
	f.Add("a/b:", "@", "&&")
	f.Add("", "%", "%zz")
	f.Fuzz(func(t *testing.T, scheme, path, query string) {
		raw := scheme + "user:s3cret@h.test/" + path + "?" + query + "s3cret"
		if strings.ContainsAny(scheme, "?#@") || strings.Count(scheme, "/") > 2 || strings.ContainsAny(path, "?#") {
			t.Skip("then the password is another part of the URL")
		}
		s := &Store{Retries: -1, Allow: func(*url.URL) error { return errors.New("no") }}
		_, err := s.Begin(t.Context(), nil).fetch(raw, nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "s3cret")
	})
}

func TestCredentials(t *testing.T) {
	var elsewhere atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere.Store(r.Header.Get("Authorization"))
		fmt.Fprint(w, "elsewhere")
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	s := &Store{Retries: -1}
	f := s.Begin(t.Context(), nil)
	get := func(url string, options map[string]any) string {
		content, err := f.fetch(url, options)
		require.NoError(t, err)
		return content
	}
	withUser := strings.Replace(server.URL, "http://", "http://admin:s3cret@", 1)
	require.Equal(t, "Basic YWRtaW46czNjcmV0", get(withUser+"/x?key=s3cret", nil))
	require.Equal(t, "Basic YWRtaW46czNjcmV0", get(server.URL+"/x", map[string]any{"username": "admin", "password": "s3cret"}))
	require.Equal(t, "Bearer s3cret", get(server.URL+"/x", map[string]any{"token": "s3cret"}))
	require.Equal(t, "", get(server.URL+"/x", nil), "what was fetched with a credential is for who has it")
	require.Equal(t, "elsewhere", get(server.URL+"/away", map[string]any{"token": "s3cret"}))
	require.Equal(t, "", elsewhere.Load(), "another port is another server")

	printed := fmt.Sprintf("%v %+v %#v %x %+v %+v %s", s, s, f, f, struct{ s *Store }{s}, s.Resources(), func() string {
		_, err := s.Begin(t.Context(), nil).fetch(strings.Replace(other.URL, "http://", "https://s3cret:s3cret@", 1)+"/?s3cret=1&t=s3cret", nil)
		return err.Error()
	}())
	require.NotContains(t, strings.ReplaceAll(printed, "s3cret=...", ""), "s3cret")
	require.NotContains(t, printed, "YWRtaW46czNjcmV0")
}

// TestHTTPRetries is about time: tries, back-off, and the memory of a failure.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: func(n int, _ *http.Request) (*http.Response, error) {
			if n < 4 {
				return response(503, ""), nil
			}
			return response(200, "ok"), nil
		}}
		s := &Store{Client: &http.Client{Transport: w}}
		start := time.Now()
		_, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "ok", content)
		require.Equal(t, 3500*time.Millisecond, time.Since(start), "0.5, 1 and 2 s")
	})
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: func(int, *http.Request) (*http.Response, error) { return response(404, ""), nil }}
		s := &Store{Client: &http.Client{Transport: w}}
		for range 100 { // a storm of renders
			_, err := s.Begin(t.Context(), nil).fetch("http://a.test/", nil)
			require.ErrorContains(t, err, "http.Fetch http://a.test/: status 404 Not Found")
		}
		require.Equal(t, 1, w.count(), "what cannot pass is not tried again at once")
		time.Sleep(time.Second)
		_, err := s.Begin(t.Context(), nil).fetch("http://a.test/", nil)
		require.Error(t, err)
		require.Equal(t, 2, w.count())
		time.Sleep(time.Second) // the back-off has doubled
		_, err = s.Begin(t.Context(), nil).fetch("http://a.test/", nil)
		require.Error(t, err)
		require.Equal(t, 2, w.count())
	})
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		s := &Store{Client: &http.Client{Transport: w}}
		start := time.Now()
		_, err := s.Begin(t.Context(), nil).fetch("http://a.test/", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, renderWait, time.Since(start), "a render does not wait for ever")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Begin(ctx, nil).fetch("http://b.test/", nil)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestHTTPRun: conditional requests, and what Run does with failures.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &wire{answer: func(n int, r *http.Request) (*http.Response, error) {
			switch {
			case n == 1:
				return response(200, "one", "ETag", `"1"`, "Last-Modified", "Sat, 01 Nov 2025 00:00:00 GMT"), nil
			case n == 2:
				require.Equal(t, `"1"`, r.Header.Get("If-None-Match"))
				require.Equal(t, "Sat, 01 Nov 2025 00:00:00 GMT", r.Header.Get("If-Modified-Since"))
				return response(304, ""), nil
			case n == 3:
				return response(400, ""), nil
			}
			return response(200, "two", "ETag", `"2"`), nil
		}}
		var changes atomic.Int32
		s := &Store{Client: &http.Client{Transport: w}, OnChange: func(string) { changes.Add(1) }}
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		f, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "one", content)
		s.Settle(f, nil)
		synctest.Wait()
		require.Equal(t, 1, w.count())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 2, w.count())
		time.Sleep(time.Minute) // 400
		synctest.Wait()
		require.Equal(t, 3, w.count())
		require.Contains(t, s.Resources()[0].Error, "status 400")
		_, content = fetch(t, s, "http://a.test/")
		require.Equal(t, "one", content, "a server that fails does no harm")
		require.Zero(t, changes.Load())
		time.Sleep(time.Second) // sooner after a failure
		synctest.Wait()
		require.Equal(t, 4, w.count())
		require.Equal(t, int32(1), changes.Load())
		require.True(t, s.Resources()[0].Pending)
		_, content = fetch(t, s, "http://a.test/")
		require.Equal(t, "two", content)
		cancel()
		require.NoError(t, <-done)
	})
}

func TestMalformedRedirectDoesNotPrint(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Location", "http://admin:s3cret@h.test/%zz?token=s3cret")
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(server.Close)
	_, err := (&Store{}).Begin(t.Context(), nil).fetch(server.URL, nil)
	require.ErrorContains(t, err, "redirect refused: the header Location is not a URL")
	require.NotContains(t, err.Error(), "s3cret")
	require.Equal(t, 1, asked)
}

// TestPeersThatMisbehave: a server that sends our credentials back where an error quotes
// it has them hidden, and one that does not answer is told with how long it had.
func TestPeersThatMisbehave(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer listener.Close()
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil && req.URL.Path != "/silent" {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 2OO %s\r\n\r\n", req.Header.Get("Authorization"))
			} else {
				_, _ = conn.Read(make([]byte, 1)) // until the client goes
			}
			conn.Close()
		}
	})
	base := "http://" + listener.Addr().String()
	fetch := func(path string, options map[string]any) string {
		_, err := (&Store{Retries: -1}).Begin(t.Context(), nil).fetch(base+path, options)
		require.Error(t, err)
		return err.Error()
	}
	for _, options := range []map[string]any{{"username": "admin", "password": "hunter22"}, {"token": "hunter22"}} {
		text := fetch("/echo", options)
		require.Equal(t, "http.Fetch "+base+"/echo: net/http: HTTP/1.x transport connection broken: malformed answer: something else answers here", text)
	}
	require.Equal(t, "http.Fetch "+base+"/silent: no answer within 50ms", fetch("/silent", map[string]any{"timeout": "50ms"}))
}
