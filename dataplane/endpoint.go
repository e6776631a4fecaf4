package dataplane

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

// Endpoint is the address of a Dataplane API, and our credentials for it. The password never
// prints: fmt, slog and JSON show name, URL and user name only.
type Endpoint struct {
	Name     string // shown in errors and logs; zero means the URL
	URL      string // http://host:port, https://host:port or unix:///path, without credentials
	Username string // for basic authentication, which covers unix sockets too
	Password string

	CAFile string      // PEM file of the CAs to trust for https; zero means those of TLS, or of the system
	TLS    *tls.Config // for https: client certificate, server name, ...; zero means Go's defaults
}

func (e Endpoint) name() string {
	if e.Name != "" {
		return e.Name
	}
	return withoutCredentials(e.URL)
}

// withoutCredentials guards against a URL that has credentials although it must not: the
// error that says so must not show them.
func withoutCredentials(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(a URL that cannot be parsed)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// String returns name, URL and user name.
func (e Endpoint) String() string {
	var b strings.Builder
	b.WriteString(e.name())
	if u := withoutCredentials(e.URL); u != b.String() {
		fmt.Fprintf(&b, " (%s)", u)
	}
	if e.Username != "" {
		b.WriteString(" as " + e.Username)
	}
	return b.String()
}

// GoString is String, so that %#v shows no password either.
func (e Endpoint) GoString() string           { return e.String() }
func (e Endpoint) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(e.String())) }
func (e Endpoint) LogValue() slog.Value       { return slog.StringValue(e.String()) }

// MarshalJSON gives name, URL and user name.
func (e Endpoint) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name     string `json:"name"`
		URL      string `json:"url"`
		Username string `json:"username,omitempty"`
	}{e.name(), withoutCredentials(e.URL), e.Username})
}
