package reconcile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// use notes that a render uses a URL, and returns its version; nil if there is
// none yet.
func (s *HTTPStore) use(key httpKey, render uint64) *httpVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[key]
	if r == nil {
		return nil
	}
	r.used = max(r.used, render)
	return r.choose()
}

// version returns the version of a URL for a render, and fetches it where there
// is none.
func (s *HTTPStore) version(ctx context.Context, key httpKey, opts fetchOptions, render uint64) (*httpVersion, error) {
	s.mu.Lock()
	r := s.resources[key]
	if r == nil {
		if err := s.room(key); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		r = &httpResource{key: key, display: display(key.url)}
		s.resources[key] = r
	}
	r.used, r.opts = max(r.used, render), opts
	for r.choose() == nil {
		if err := ctx.Err(); err != nil {
			s.mu.Unlock()
			return nil, &HTTPError{URL: r.display, Err: err}
		}
		if r.fetching != nil { // wait for whoever does it already
			fetching := r.fetching
			s.mu.Unlock()
			select {
			case <-fetching:
			case <-ctx.Done():
			}
			s.mu.Lock()
		} else if r.err == nil || !time.Now().Before(r.next) {
			r.fetching = make(chan struct{})
			s.mu.Unlock()
			wait, cancel := context.WithTimeout(ctx, httpRenderWait)
			s.refresh(wait, r)
			cancel()
			s.mu.Lock()
		}
		// The error of a moment ago is that of now: no render may try in a loop.
		if r.choose() == nil && r.err != nil {
			defer s.mu.Unlock()
			return nil, r.err
		}
	}
	v := r.choose()
	s.mu.Unlock()
	return v, nil
}

func display(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return displayURL(u)
}

// room refuses one URL too many. What no render has used for long goes first:
// where nothing is ever deployed, as by a process that does not lead, nothing
// else says what can be forgotten. The caller holds s.mu.
func (s *HTTPStore) room(key httpKey) error {
	most := s.MaxURLs
	if most <= 0 {
		most = defaultHTTPMaxURLs
	}
	if len(s.resources) < most {
		return nil
	}
	for key, r := range s.resources {
		if r.used+httpUnusedRenders < s.renders && r.fetching == nil {
			delete(s.resources, key)
		}
	}
	if len(s.resources) < most {
		return nil
	}
	return &HTTPError{URL: display(key.url), Err: fmt.Errorf("%d URLs are held already, and there is no room for more", most)}
}

// answer is what a server gave.
type httpAnswer struct {
	content      string
	unchanged    bool // since the last one
	etag         string
	lastModified string
}

// refresh fetches a resource, with retries, takes what it got, and reports
// whether renders use another content now. The caller has set r.fetching, which
// ends here.
func (s *HTTPStore) refresh(ctx context.Context, r *httpResource) (changed bool) {
	s.mu.Lock()
	ask := httpQuestion{url: r.key.url, display: r.display, opts: r.opts, etag: r.etag, lastModified: r.lastModified, known: r.any}
	s.mu.Unlock()
	answer, err := s.ask(ctx, ask)
	now := time.Now()
	s.mu.Lock()
	switch {
	case errors.Is(err, context.Canceled): // who asked has gone: nothing failed
	case err != nil:
		r.err = err
		r.failures++
		r.next = now.Add(min(r.opts.interval, timing{retryBase: minHTTPInterval, retryMax: r.opts.interval}.backOff(r.failures)))
	default:
		changed = s.arrived(r, answer, now)
		r.err, r.failures, r.checked, r.next = nil, 0, now, now.Add(r.opts.interval)
	}
	close(r.fetching)
	r.fetching = nil
	s.mu.Unlock()
	s.poke()
	return changed
}

// arrived takes a content, and reports whether renders use another one now. The
// caller holds s.mu.
func (s *HTTPStore) arrived(r *httpResource, a *httpAnswer, now time.Time) bool {
	if a.unchanged {
		return false
	}
	r.etag, r.lastModified = a.etag, a.lastModified
	sum := sha256.Sum256([]byte(a.content))
	if r.any && sum == r.newest {
		return false
	}
	r.newest, r.any = sum, true
	before := r.choose()
	r.trial = trial{}
	if r.accepted != nil && r.accepted.sum == sum { // the server took the new one back
		r.pending = nil
		return before != r.accepted
	}
	s.versions++
	r.pending = &httpVersion{number: s.versions, content: a.content, sum: sum, at: now}
	eventbus.Publish(s.Bus, HTTPResourceUpdated{URL: r.display, Bytes: len(a.content), Hash: r.pending.hash()})
	return true
}

// httpQuestion is all that a fetch depends on.
type httpQuestion struct {
	url, display       string
	opts               fetchOptions
	etag, lastModified string
	known              bool // there is a content that the server may say is unchanged
}

// ask fetches, with retries of failures that may pass.
func (s *HTTPStore) ask(ctx context.Context, q httpQuestion) (*httpAnswer, error) {
	tries := 1 + defaultHTTPRetries
	if s.Retries != 0 {
		tries = 1 + max(s.Retries, 0)
	}
	wait := httpRetryBase
	for {
		answer, err := s.try(ctx, q)
		if err == nil {
			return answer, nil
		}
		tries--
		if tries == 0 || !passing(err) || ctx.Err() != nil || !sleepUntil(ctx, time.Now().Add(wait)) {
			return nil, err
		}
		wait *= 2
	}
}

// passing reports whether a failure may pass within seconds.
func passing(err error) bool {
	var e *HTTPError
	if errors.As(err, &e) && e.Status != 0 && e.Err == nil {
		return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
	}
	return !errors.Is(err, errHTTPTooLarge) && !errors.Is(err, errHTTPRefused)
}

var (
	errHTTPTooLarge = errors.New("the content is too large")
	errHTTPRefused  = errors.New("redirect refused")
)

func (s *HTTPStore) try(ctx context.Context, q httpQuestion) (*httpAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, q.opts.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, q.url, nil)
	if err != nil {
		return nil, &HTTPError{URL: q.display, Err: errors.New("not a URL")}
	}
	if q.opts.authorise != nil {
		q.opts.authorise(req)
	}
	if q.known && q.etag != "" {
		req.Header.Set("If-None-Match", q.etag)
	}
	if q.known && q.lastModified != "" {
		req.Header.Set("If-Modified-Since", q.lastModified)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, &HTTPError{URL: q.display, Err: withoutURL(err)}
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && q.known && q.etag+q.lastModified != "":
		return &httpAnswer{unchanged: true}, nil
	case resp.StatusCode != http.StatusOK:
		return nil, &HTTPError{URL: q.display, Status: resp.StatusCode}
	}
	content, err := s.read(resp)
	if err != nil {
		return nil, &HTTPError{URL: q.display, Status: resp.StatusCode, Err: err}
	}
	return &httpAnswer{content: content, etag: resp.Header.Get("ETag"), lastModified: resp.Header.Get("Last-Modified")}, nil
}

// read reads a whole body, as it is after it was unpacked.
func (s *HTTPStore) read(resp *http.Response) (string, error) {
	most := s.MaxBytes
	if most <= 0 {
		most = defaultHTTPMaxBytes
	}
	if resp.ContentLength > most {
		return "", fmt.Errorf("%w: %d bytes, %d are allowed", errHTTPTooLarge, resp.ContentLength, most)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the content: %w", err)
	case int64(len(b)) > most:
		return "", fmt.Errorf("%w: more than %d bytes", errHTTPTooLarge, most)
	}
	return string(b), nil
}

// withoutURL takes away what net/http puts around an error: the URL, with its
// query.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// newClient makes the client that the store uses, with bounded redirects.
func (s *HTTPStore) newClient() *http.Client {
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, // seconds or more lie between two requests
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}}
	if s.Client != nil {
		own := *s.Client
		client = &own
	}
	theirs := client.CheckRedirect
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		first, last := via[0].URL, via[len(via)-1].URL
		switch {
		case len(via) > maxHTTPRedirects:
			return fmt.Errorf("%w: more than %d, one after the other", errHTTPRefused, maxHTTPRedirects)
		case req.URL.Scheme != "http" && req.URL.Scheme != "https":
			return fmt.Errorf("%w: %w", errHTTPRefused, errNotHTTP)
		case last.Scheme == "https" && req.URL.Scheme == "http":
			return fmt.Errorf("%w: from https to http", errHTTPRefused)
		}
		if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
			req.Header.Del("Authorization")
		}
		if err := s.allowed(req.URL); err != nil {
			return fmt.Errorf("%w: %w", errHTTPRefused, err)
		}
		if theirs != nil {
			return theirs(req, via)
		}
		return nil
	}
	return client
}
