package dpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

// The sizes, after decompression, at which an answer is given up: a broken proxy
// must not fill the memory.
const (
	maxAnswer = 16 << 20
	maxLarge  = 512 << 20 // a configuration, a file, or statistics of all servers
)

// Options say how to reach an API.
type Options struct {
	Username, Password string
	TLS                *tls.Config   // for https; nil means the system's roots
	HTTPClient         *http.Client  // nil means one of its own; TLS and unix URLs need their own
	Timeout            time.Duration // of one request; zero means 60 s, twice what the API allows itself
}

// Client is one Dataplane API. It is safe for concurrent use.
type Client struct {
	base     *url.URL // ends in /v3
	http     *http.Client
	username string
	password string
	timeout  time.Duration
	fence    func() error // nil for none
}

// Fenced returns a client that asks fence right before each call that changes
// something. An error of fence takes the place of the call.
func (c *Client) Fenced(fence func() error) *Client {
	fenced := *c
	fenced.fence = fence
	return &fenced
}

// New makes a client from http://host:port, https://host:port or
// unix:///path/of/socket. A trailing /v3 is optional. It does not connect.
func New(rawURL string, o Options) (*Client, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error of url.Parse quotes the URL, which may hold a password.
		return nil, errors.New("the URL cannot be parsed: want http://host:port, https://host:port or unix:///path")
	}
	if u.User != nil {
		return nil, errors.New("the URL has credentials in it, which would show in logs: give them apart")
	}
	c := &Client{http: o.HTTPClient, username: o.Username, password: o.Password, timeout: o.Timeout}
	if c.timeout <= 0 {
		c.timeout = 60 * time.Second
	}
	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		c.base = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path.Join("/", strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v3"), "v3")}
		if c.http == nil {
			c.http = newHTTPClient(o.TLS, "")
		}
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		c.base = &url.URL{Scheme: "http", Host: "unix", Path: "/v3"}
		c.http = newHTTPClient(nil, u.Path)
	default:
		return nil, fmt.Errorf("want http://host:port, https://host:port or unix:///path as URL, not %q", u.Redacted())
	}
	return c, nil
}

func newHTTPClient(tlsConfig *tls.Config, socket string) *http.Client {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     tlsConfig.Clone(), // the transport writes to it, and endpoints may share one
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
	if socket != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
	}
	return &http.Client{
		Transport: t,
		// The API never redirects; who does would be handed the credentials.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// CloseIdle closes connections that are not in use.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// String gives the base URL.
func (c *Client) String() string { return c.base.String() }

// StatusError is an answer that is not success.
type StatusError struct {
	Method  string
	Path    string
	Status  int    // HTTP status
	Message string // what the API said
	Version int64  // version of the configuration at that time, 0 if not told
}

// Error tells call, status and message.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %s", e.Method, e.Path, e.Status, e.Message)
}

// Status returns the HTTP status within an error, 0 if there is none.
func Status(err error) int {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Status
	}
	return 0
}

// call is one request.
type call struct {
	method      string
	path        []string // elements below /v3, not yet escaped
	query       url.Values
	header      http.Header
	contentType string
	body        []byte
	large       bool // the answer may be
}

// answer is what came back from a successful request.
type answer struct {
	status  int
	body    []byte
	version int64 // Configuration-Version, 0 if absent
	header  http.Header
}

func (c *Client) do(ctx context.Context, r call) (*answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %v: %w", c.timeout, context.DeadlineExceeded))
	defer cancel()
	u := *c.base
	u.RawQuery = r.query.Encode()
	u.Path, u.RawPath = joinPath(c.base.Path, r.path)
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if c.username != "" || c.password != "" {
		req.SetBasicAuth(c.username, c.password)
	}
	if c.fence != nil && r.method != http.MethodGet {
		if err := c.fence(); err != nil {
			return nil, err
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err // a *url.Error already
	}
	defer func() { _ = res.Body.Close() }()
	limit := int64(maxAnswer)
	if r.large && res.StatusCode < 300 {
		limit = maxLarge
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("the answer is larger than %d bytes: something else than a Dataplane API answers", limit)
	}
	if err != nil {
		return nil, &url.Error{Op: "read the answer to " + r.method, URL: u.String(), Err: err}
	}
	version, _ := strconv.ParseInt(res.Header.Get("Configuration-Version"), 10, 64)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, &StatusError{
			Method: r.method, Path: u.Path, Status: res.StatusCode,
			Message: message(body, res.Status), Version: version,
		}
	}
	return &answer{status: res.StatusCode, body: body, version: version, header: res.Header}, nil
}

// joinPath escapes every element, so that a map key with a slash stays one.
func joinPath(base string, elements []string) (plain, escaped string) {
	escaped = base
	plain = base
	for _, e := range elements {
		plain += "/" + e
		escaped += "/" + url.PathEscape(e)
	}
	return plain, escaped
}

// words finds the words in an error body: {"code":…,"message":…}, for some
// calls once more quoted as a JSON string, or plain text.
func words(body []byte, status string) string {
	text := strings.TrimSpace(string(body))
	var quoted string
	if json.Unmarshal([]byte(text), &quoted) == nil {
		text = strings.TrimSpace(quoted)
	}
	var m struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(text), &m) == nil && m.Message != "" {
		return strings.TrimSpace(m.Message)
	}
	if text == "" {
		return status
	}
	return text
}

// message is what the API said, cut to a length that fits into logs and events.
func message(body []byte, status string) string {
	const most = 4 << 10
	text := words(body, status)
	if len(text) > most {
		text = text[:most] + " ..."
	}
	return text
}

func (a *answer) json(into any) error {
	if err := json.Unmarshal(a.body, into); err != nil {
		return &url.Error{Op: "decode", URL: "answer", Err: err}
	}
	return nil
}

// Info is what the API says of itself.
type Info struct {
	APIVersion string // such as "v3.2.4 1eed677a"
	Version    int64  // version of the configuration
}

// Info asks for the version of the API and of the configuration: the cheapest
// call there is.
func (c *Client) Info(ctx context.Context) (Info, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: []string{"info"}})
	if err != nil {
		return Info{}, err
	}
	var v struct {
		API struct {
			Version string `json:"version"`
		} `json:"api"`
	}
	if err := a.json(&v); err != nil {
		return Info{}, err
	}
	return Info{APIVersion: v.API.Version, Version: a.version}, nil
}

// AtLeast reports whether the API is of that version or newer. A version that
// cannot be read, such as that of a build from a branch, counts as new.
func (i Info) AtLeast(major, minor int) bool {
	fields := strings.SplitN(strings.TrimPrefix(i.APIVersion, "v"), ".", 3)
	if len(fields) < 2 {
		return true
	}
	ma, err1 := strconv.Atoi(fields[0])
	mi, err2 := strconv.Atoi(fields[1])
	if err1 != nil || err2 != nil {
		return true
	}
	return ma > major || ma == major && mi >= minor
}
