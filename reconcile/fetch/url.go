package fetch

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

	"github.com/hapticsdk/haptic/internal/printable"
)

// options say how a URL is fetched.
type options struct {
	interval, timeout time.Duration
	authorise         func(*http.Request) // a function, so that it does not print; nil: no credentials
	hide              func(string) string // hides the credentials in a server's texts
}

// parse reads the arguments of a fetch. Its errors show only the printable parts of the URL.
func (s *Store) parse(raw string, given map[string]any) (key, options, error) {
	u, err := parseURL(raw)
	if err != nil {
		return key{}, options{}, err
	}
	c := credential{}
	if u.User != nil {
		c.username = u.User.Username()
		c.password, _ = u.User.Password()
	}
	opts, err := s.options(&c, given)
	if err == nil {
		err = s.allowed(u)
	}
	if err != nil {
		return key{}, options{}, &Error{URL: display(raw), Err: err}
	}
	opts.authorise, opts.hide = c.authorise(), printable.Hide(c.username, c.password, c.token)
	u.User = nil
	return key{url: u.String(), credential: c.sum()}, opts, nil
}

func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil { // err quotes parts that may be a password
		return nil, &Error{URL: display(raw), Err: errors.New("not a URL")}
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Fragment, u.RawFragment = "", ""
	if !isHTTP(u) || u.Host == "" {
		return nil, &Error{URL: display(raw), Err: errNotHTTP}
	}
	return u, nil
}

var errNotHTTP = errors.New("not an http or https URL with a host")

func isHTTP(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// display returns a URL without its credentials and its query. If the URL has no host, any
// part of it may be a password.
func display(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || !isHTTP(u) || u.Host == "" {
		return fmt.Sprintf("(%d bytes)", len(raw))
	}
	shown := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	if u.RawQuery != "" {
		shown += "?..."
	}
	return shown
}

// credential holds the credentials of a request. It lives only while parse runs.
type credential struct{ username, password, token string }

func (c credential) sum() [sha256.Size]byte {
	if c == (credential{}) {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q", c.username, c.password, c.token))
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

func (c credential) check() error {
	switch {
	case c.token != "" && (c.username != "" || c.password != ""):
		return errors.New("a token and a username or password are two credentials")
	case strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("the token has white space or a control character")
	}
	return nil
}

// options reads the options of a fetch. An unknown option is an error.
func (s *Store) options(c *credential, given map[string]any) (options, error) {
	opts := options{interval: orDefault(s.Interval, defaultInterval), timeout: orDefault(s.Timeout, defaultTimeout)}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text, ok := given[name].(string)
		if !ok {
			return opts, fmt.Errorf("option %s is a %T, not a string", name, given[name])
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
	opts.interval = max(opts.interval, minInterval)
	return opts, c.check()
}

func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q is not more than zero", text)
	}
	return d, err
}

// orDefault returns n, or standard if n is zero or negative.
func orDefault[N ~int | ~int64](n, standard N) N {
	if n <= 0 {
		return standard
	}
	return n
}

func (s *Store) allowed(u *url.URL) error {
	if s.Allow == nil {
		return nil
	}
	if err := s.Allow(u); err != nil {
		return fmt.Errorf("not allowed: %w", err)
	}
	return nil
}
