package dpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/printable"
)

// Bounds of an answer. The client gives up above them, because a lying API must not fill the
// memory. It reads only the beginning of an answer that is not success.
const (
	maxHeaders = 256 << 10
	maxAnswer  = 16 << 20
	maxLarge   = 128 << 20 // a configuration, a file, or statistics of all servers
	maxError   = 64 << 10
	maxValues  = 500_000 // elements of a list
)

// Options say how to reach an API.
type Options struct {
	Username, Password string
	TLS                *tls.Config   // for https; nil means the system's roots
	HTTPClient         *http.Client  // nil means a new one; replaces TLS, and is not used for unix URLs
	Timeout            time.Duration // of one request; zero means 60 s, twice what the API allows itself
}

// Client talks to one Dataplane API. It is safe for concurrent use.
type Client struct {
	base  string // ends in /v3
	http  *http.Client
	opts  Options
	fence func() error // nil for none

	hide func(string) string // hides our password
}

// Fenced returns a client that calls fence right before each call that changes something. If
// fence returns an error, the call returns it and sends nothing.
func (c *Client) Fenced(fence func() error) *Client {
	fenced := *c
	fenced.fence = fence
	return &fenced
}

// New makes a client for http://host:port, https://host:port or unix:///path/of/socket. A
// trailing /v3 is optional. It does not connect.
func New(rawURL string, o Options) (*Client, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error of url.Parse quotes the URL, which may hold a password.
		return nil, errors.New("the URL cannot be parsed: want http://host:port, https://host:port or unix:///path")
	}
	if u.User != nil {
		return nil, errors.New("the URL has credentials in it, which would show in logs: give them apart")
	}
	c := &Client{opts: o, hide: printable.Hide(o.Username, o.Password)}
	if o.Timeout <= 0 {
		c.opts.Timeout = 60 * time.Second
	}
	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		below := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v3")
		c.base = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path.Join("/", below, "v3")}).String()
		c.http = newHTTPClient(o.TLS, "")
		if o.HTTPClient != nil {
			given := *o.HTTPClient
			given.CheckRedirect = c.http.CheckRedirect
			c.http = &given
		}
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		c.base, c.http = "http://unix/v3", newHTTPClient(nil, u.Path)
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

		MaxResponseHeaderBytes: maxHeaders,
	}
	if socket != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	// The API never redirects: a server that does would get the credentials.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: t, CheckRedirect: stay}
}

// CloseIdle closes connections that are not in use.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// String returns the base URL.
func (c *Client) String() string { return c.base }

// Info is the API's description of itself.
type Info struct {
	APIVersion string // such as "v3.2.4 1eed677a"
	Version    int64  // version of the configuration
}

// Info asks for the version of the API and of the configuration. No other call is cheaper.
func (c *Client) Info(ctx context.Context) (Info, error) {
	v, a, err := read[struct {
		API struct {
			Version string `json:"version"`
		} `json:"api"`
	}](ctx, c, call{method: http.MethodGet, path: "info"})
	return Info{APIVersion: v.API.Version, Version: a.version}, err
}
