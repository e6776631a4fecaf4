package reconcile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// fetchOptions says how a URL is fetched.
type fetchOptions struct {
	interval, timeout time.Duration
	authorise         func(*http.Request) // a function, so that it does not print; nil: no credentials
}

// parse reads what a template gave. Its errors have nothing of the URL but what
// may be printed.
func (s *HTTPStore) parse(raw string, options map[string]any) (httpKey, fetchOptions, error) {
	u, err := parseURL(raw)
	if err != nil {
		return httpKey{}, fetchOptions{}, err
	}
	fail := func(err error) (httpKey, fetchOptions, error) {
		return httpKey{}, fetchOptions{}, &HTTPError{URL: displayURL(u), Err: err}
	}
	c := credential{}
	if u.User != nil {
		c.username = u.User.Username()
		c.password, _ = u.User.Password()
	}
	opts, err := s.readOptions(&c, options)
	if err != nil {
		return fail(err)
	}
	if err := s.allowed(u); err != nil {
		return fail(err)
	}
	opts.authorise = c.authorise()
	u.User = nil
	return httpKey{url: u.String(), credential: c.sum()}, opts, nil
}

func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil { // it says where, with parts that may be a password
		return nil, &HTTPError{URL: fmt.Sprintf("(%d bytes)", len(raw)), Err: errors.New("not a URL")}
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Fragment, u.RawFragment = "", ""
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, &HTTPError{URL: displayURL(u), Err: errNotHTTP}
	}
	return u, nil
}

var errNotHTTP = errors.New("not an http or https URL with a host")

// displayURL leaves out the credentials of a URL and the values of its query.
func displayURL(u *url.URL) string {
	if u.Opaque != "" {
		return u.Scheme + ":..."
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	s := shown.String()
	if u.RawQuery == "" {
		return s
	}
	keys, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return s + "?..."
	}
	sep := "?"
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if slices.Equal(keys[k], []string{""}) { // a key alone is as good a place for a token
			s += sep + "..."
		} else {
			s += sep + url.QueryEscape(k) + "=..."
		}
		sep = "&"
	}
	return s
}

// credential is what a request is made with. It lives only while options are
// read.
type credential struct{ username, password, token string }

func (c credential) sum() [sha256.Size]byte {
	if c == (credential{}) {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256([]byte(fmt.Sprintf("%q %q %q", c.username, c.password, c.token)))
}

func (c credential) authorise() func(*http.Request) {
	switch {
	case c.token != "":
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.token) }
	case c.username != "" || c.password != "":
		return func(r *http.Request) { r.SetBasicAuth(c.username, c.password) }
	}
	return nil
}

// readOptions reads the options of a fetch; unknown ones are errors.
func (s *HTTPStore) readOptions(c *credential, options map[string]any) (fetchOptions, error) {
	opts := fetchOptions{interval: s.Interval, timeout: s.Timeout}
	if opts.interval <= 0 {
		opts.interval = defaultHTTPInterval
	}
	if opts.timeout <= 0 {
		opts.timeout = defaultHTTPTimeout
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		text, ok := options[name].(string)
		if !ok {
			return opts, fmt.Errorf("option %s is a %T, not a string", name, options[name])
		}
		var err error
		switch name {
		case "username":
			c.username = text
		case "password":
			c.password = text
		case "token":
			c.token = text
		case "interval":
			opts.interval, err = positive(text)
		case "timeout":
			opts.timeout, err = positive(text)
		default:
			return opts, fmt.Errorf("no option is called %q: username, password, token, interval and timeout are", name)
		}
		if err != nil {
			return opts, fmt.Errorf("option %s: %w", name, err)
		}
	}
	opts.interval = max(opts.interval, minHTTPInterval)
	switch {
	case c.token != "" && (c.username != "" || c.password != ""):
		return opts, errors.New("a token and a username or password are two credentials")
	case strings.ContainsFunc(c.token, func(r rune) bool { return isControl(r) || r == ' ' }):
		return opts, errors.New("the token has white space or a control character")
	}
	return opts, nil
}

func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q is not more than zero", text)
	}
	return d, err
}

// allowed asks Allow.
func (s *HTTPStore) allowed(u *url.URL) error {
	if s.Allow == nil {
		return nil
	}
	if err := s.Allow(u); err != nil {
		return fmt.Errorf("not allowed: %w", err)
	}
	return nil
}
