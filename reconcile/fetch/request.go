package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/late"
	"github.com/hapticsdk/haptic/internal/printable"
)

const (
	retryBase    = 500 * time.Millisecond // first wait between two tries; doubles
	maxRedirects = 5
)

// Error says why the store could not fetch a URL. It shows no credential and no query.
type Error struct {
	URL    string // "https://host/path?..."
	Status int    // of the answer; 0 if there was none
	Err    error
}

func (e *Error) Error() string {
	if e.Status != 0 && e.Err == nil {
		return fmt.Sprintf("http.Fetch %s: status %d %s", e.URL, e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("http.Fetch %s: %v", e.URL, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// answer is the answer of a server.
type answer struct {
	text               string
	unchanged          bool
	etag, lastModified string
}

// ask fetches a resource. It retries failures that may pass.
func (s *Store) ask(ctx context.Context, r *resource) (*answer, error) {
	retries := defaultRetries
	if s.Retries != 0 {
		retries = s.Retries
	}
	for wait := retryBase; ; wait *= 2 {
		a, err := s.try(ctx, r)
		if err == nil || retries <= 0 || !mayPass(err) {
			return a, err
		}
		retries--
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// mayPass reports whether a failure may pass within seconds.
func mayPass(err error) bool {
	var e *Error
	if errors.As(err, &e) && e.Status != 0 && e.Err == nil {
		return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
	}
	return !errors.Is(err, errTooLarge) && !errors.Is(err, errRedirect)
}

var (
	errTooLarge = errors.New("the content is too large")
	errRedirect = errors.New("redirect refused")
)

func (s *Store) try(ctx context.Context, r *resource) (*answer, error) {
	ctx, cancel := late.Context(ctx, "no answer", r.opts.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.key.url, nil)
	if err != nil {
		return nil, &Error{URL: r.display, Err: errors.New("not a URL")}
	}
	if r.opts.authorise != nil {
		r.opts.authorise(req)
	}
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}
	if r.lastModified != "" {
		req.Header.Set("If-Modified-Since", r.lastModified)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) { // a url.Error prints the URL with its query
			err = e.Err
		}
		if strings.Contains(err.Error(), "Location header") { // the error quotes the header, which may have a credential
			err = fmt.Errorf("%w: the header Location is not a URL", errRedirect)
		}
		return nil, &Error{URL: r.display, Err: printable.SaidError(err, r.opts.hide)}
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && r.etag+r.lastModified != "":
		return &answer{unchanged: true}, nil
	case resp.StatusCode != http.StatusOK:
		return nil, &Error{URL: r.display, Status: resp.StatusCode}
	}
	text, err := s.read(resp)
	if err != nil {
		return nil, &Error{URL: r.display, Status: resp.StatusCode, Err: printable.SaidError(err, r.opts.hide)}
	}
	return &answer{text: text, etag: resp.Header.Get("ETag"), lastModified: resp.Header.Get("Last-Modified")}, nil
}

// read reads a whole body. The bound counts unpacked bytes.
func (s *Store) read(resp *http.Response) (string, error) {
	most := orDefault(s.MaxBytes, defaultMaxBytes)
	if resp.ContentLength > most {
		return "", fmt.Errorf("%w: %d bytes, %d are allowed", errTooLarge, resp.ContentLength, most)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the content: %w", err)
	case int64(len(b)) > most:
		return "", fmt.Errorf("%w: more than %d bytes", errTooLarge, most)
	}
	return string(b), nil
}

// newClient returns the client of the store, which bounds redirects.
func (s *Store) newClient() *http.Client {
	client := &http.Client{}
	if s.Client != nil {
		*client = *s.Client
	} else {
		client.Transport = &http.Transport{ // keeps no connections: requests are seconds or more apart
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		}
	}
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		first, last, err := via[0].URL, via[len(via)-1].URL, s.allowed(req.URL)
		switch {
		case len(via) > maxRedirects:
			err = fmt.Errorf("more than %d, one after the other", maxRedirects)
		case !isHTTP(req.URL):
			err = errNotHTTP
		case last.Scheme == "https" && req.URL.Scheme == "http":
			err = errors.New("from https to http")
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errRedirect, err)
		}
		if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
			req.Header.Del("Authorization")
		}
		return nil
	}
	return client
}
