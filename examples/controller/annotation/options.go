// Package annotation says what the annotations of Ingresses and Services mean. [Read] turns
// them into [Options], which templates print. One table lists all of them. The package knows
// neither clusters nor HAProxy's files: its callers check the content of Secrets.
package annotation

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/templating/regex"
)

// List is a list of words. It is a string, so that Options can be compared.
type List string

// All returns the words.
func (l List) All() []string {
	if l == "" {
		return nil
	}
	return strings.Split(string(l), "\n")
}

func listOf(words []string) List { return List(strings.Join(words, "\n")) }

// Pattern is a checked regular expression, see [regex.Check].
type Pattern string

// Quoted returns the pattern as an argument of HAProxy, which ends what takes it too many
// steps. A template prints it with raw.
func (p Pattern) Quoted() string { return quoted(regex.Bounded(string(p))) }

// Longest returns the bytes of a text that HAProxy may try the pattern on; 0: any text.
func (p Pattern) Longest() int {
	if is, _ := CheckPattern(string(p)); is.Longest < regex.Subject {
		return is.Longest
	}
	return 0
}

// Replacement replaces the match of a Pattern: \1 is its first group.
type Replacement string

// Quoted returns the replacement as an argument of HAProxy that may hold a log-format.
func (r Replacement) Quoted() string { return quoted(strings.ReplaceAll(string(r), "%", "%%")) }

// Loose reports whether it begins with a group. Then the result may not be a path.
func (r Replacement) Loose() bool { return !strings.HasPrefix(string(r), "/") }

// Groups returns the highest group in it.
func (r Replacement) Groups() (most int) {
	for i := range len(r) - 1 {
		if r[i] == '\\' {
			most = max(most, int(r[i+1]-'0'))
		}
	}
	return most
}

// quoted puts an argument into single quotes, in which no character is special to
// HAProxy. The parsers refuse quotes and control characters.
func quoted(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '\'' || r >= 0x7f }) {
		panic("annotation: a value that was not checked")
	}
	return "'" + s + "'"
}

// Header is a header and its value.
type Header struct{ Name, Value string }

// Headers are several headers. They are a string, so that Options can be compared.
type Headers string

// All returns the headers in their order.
func (h Headers) All() (all []Header) {
	for _, line := range List(h).All() {
		name, value, _ := strings.Cut(line, " ")
		all = append(all, Header{name, value})
	}
	return all
}

// Options are what the annotations of an Ingress and of a Service together ask for.
// Compare them by ==. The zero value asks for nothing.
type Options struct {
	Closed bool // requests get 503: a refused annotation would have closed something

	Passthrough bool // connections with TLS go to the Service as they are

	Redirect TLSRedirect
	Answer   Answer
	AppRoot  string // target of requests for "/"

	Regex       bool        // paths are patterns
	SetPath     string      // in place of the path of a request
	RewriteFrom Pattern     // RewriteTo replaces its match; empty: the path is a pattern itself
	RewriteTo   Replacement // with groups
	Host        string      // in place of the Host header
	Prefix      string      // of X-Forwarded-Prefix

	Allow, Deny List // of CIDRs
	Auth        Auth
	CORS        CORS
	Rate        Rate
	MaxBody     string // bytes

	SetRequest, SetResponse Headers

	ConnectTimeout, ServerTimeout, QueueTimeout, TunnelTimeout, CheckTimeout string // "60s"

	Balance Balance
	Cookie  Cookie
	Server  Server
	Canary  Canary
}

// TLSRedirect sends requests without TLS to https.
type TLSRedirect struct {
	Code  int  // 0: it does not
	Port  int  // 0: 443
	Force bool // also for hosts without a certificate
}

// Answer is a redirect in place of the answer of a Service.
type Answer struct {
	Code     int // 0: there is none
	Location string
	Host     string // in place of Location: the path stays
}

// Auth asks for a user and a password.
type Auth struct {
	Secret   string // "": it does not
	Map      bool   // the Secret has a key for each user, not one file
	Realm    string
	Userlist string // made of the Secret; the caller of Read sets it
}

// Longest is [MaxLogin].
func (Auth) Longest() int { return MaxLogin }

// CORS lets pages of other origins read answers.
type CORS struct {
	Enabled                          bool
	Any                              bool // any origin
	Origins                          List
	Patterns                         List // of origins, as Pattern
	Methods, Headers, Expose, MaxAge string
	Credentials                      bool
}

// Quoted returns a word of Patterns as an argument of HAProxy.
func (CORS) Quoted(pattern string) string { return Pattern(pattern).Quoted() }

// Rate bounds the requests of one client address.
type Rate struct {
	Requests, PerMinute, Connections string // "": no bound
	Period                           string // of Requests
	Expire                           string // of an address without requests
	Status                           string
	Size                             string
	Exempt                           List // CIDRs
}

// Is reports whether there is a bound.
func (r Rate) Is() bool { return r.Requests+r.PerMinute+r.Connections != "" }

// Balance is how a server is chosen.
type Balance struct {
	Method string // "": roundrobin
	Of     string // name of a header or parameter
}

// Cookie keeps a client with a server.
type Cookie struct {
	Name     string // "": no cookie
	MaxAge   string // seconds
	SameSite string
	Domain   string
	Secure   bool
}

// Server says how HAProxy speaks to servers.
type Server struct {
	TLS        bool
	HTTP2      bool
	CA         string // Secret with CA certificates
	CAKey      string // its key: "ca.crt", or "tls.crt" if that is missing
	CAFile     string // made of the Secret; the caller of Read sets it
	Verify     bool
	Name       string // server name, also in the certificate
	MaxConn    string
	Check      bool
	CheckPath  string
	CheckEvery string
	Proxy      string // version of the PROXY protocol: "v1", "v2"
}

// Canary is the part of the requests of another Ingress that this one gets.
type Canary struct {
	Is            bool
	Weight, Total int
	Header        string
	Value         string
	Pattern       Pattern
	Cookie        string
}

// Size is the length of all lists and texts of the options, in bytes. A backend has a
// line or a word for each entry.
func (o *Options) Size() int {
	if o == nil {
		return 0
	}
	size := 300 // all else
	for _, list := range []List{o.Allow, o.Deny, o.Rate.Exempt, o.CORS.Origins, o.CORS.Patterns, List(o.SetRequest), List(o.SetResponse)} {
		if list != "" {
			const line = 40 // text before a word of a list
			size += len(list) + line*(1+strings.Count(string(list), "\n"))
		}
	}
	for _, text := range []string{o.Answer.Location, o.AppRoot, o.SetPath, string(o.RewriteFrom), string(o.RewriteTo), o.Prefix, o.Auth.Realm, o.CORS.Methods, o.CORS.Headers, o.CORS.Expose, o.Server.CheckPath} {
		size += len(text)
	}
	return size
}

// Addresses is how many client addresses the options count at most.
func (o *Options) Addresses() int {
	if o == nil {
		return 0
	}
	n, _ := strconv.Atoi(o.Rate.Size)
	return n
}

// CheckInterval is the time between two health checks of a server; 0: there are none.
func (o *Options) CheckInterval() time.Duration {
	const usual = 2 * time.Second // HAProxy's own
	switch {
	case o == nil || !o.Server.Check:
		return 0
	case o.Server.CheckEvery == "":
		return usual
	}
	return length(o.Server.CheckEvery)
}

// WithoutChecks returns the options with no health checks.
func (o *Options) WithoutChecks() *Options {
	now := *o
	now.Server.Check, now.Server.CheckPath, now.Server.CheckEvery = false, "", ""
	return &now
}

// Hash names options: 32 digits, "" for the zero value. Tenants choose options, and backends with
// the same name are one: with fewer digits they find an open and a closed one that share it.
func (o *Options) Hash() string {
	if *o == (Options{}) {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", *o))
	return fmt.Sprintf("%x", sum[:16])
}
