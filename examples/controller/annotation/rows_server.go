package annotation

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// servers say how HAProxy speaks to the servers of a Service.
var servers = []Row{
	{NGINX: "backend-protocol", Value: "HTTP, HTTPS, GRPC, GRPCS or H2", Service: true, Becomes: "HTTP/2 or TLS to the servers",
		Differs: "FCGI and AUTO_HTTP are refused; appProtocol of the port of a Service says the same: https, kubernetes.io/h2c, grpc",
		set: func(r *reader, v value) string {
			problem := oneOf(strings.ToUpper(v.text), "HTTP", "HTTPS", "GRPC", "GRPCS", "H2")
			if problem == "" {
				r.Server.speak(strings.ToUpper(v.text))
			}
			return problem
		}},
	{
		HAProxy: "server-proto",
		NGINX:   "-",
		Value:   "h1 or h2",
		Service: true,
		Becomes: "HTTP/1 or HTTP/2 to the servers",
		Differs: "fcgi is refused",
		set: func(r *reader, v value) string {
			r.Server.HTTP2 = v.text == "h2"
			return oneOf(v.text, "h1", "h2")
		},
	},
	{HAProxy: "server-ssl", NGINX: "-", Value: "true or false", Service: true, Becomes: "TLS to the servers", set: func(r *reader, v value) (problem string) {
		r.Server.TLS, problem = toBool(v)
		return problem
	}},
	{
		HAProxy:   "server-ca",
		NGINX:     "proxy-ssl-secret",
		Value:     "the name of a Secret",
		secret:    true,
		Closes:    true,
		ofService: true,
		Becomes:   "its key ca.crt verifies the certificates of the servers; under haproxy.org ca.crt or else tls.crt",
		Differs:   "only an Ingress can have it: in a Service it closes; the Secret is of the same namespace; no client certificate is sent; under haproxy.org it verifies at once, under ingress-nginx with proxy-ssl-verify",
		set: func(r *reader, v value) string {
			problem := toSecret(v.text)
			if problem == "" {
				r.Server.CA, r.Server.CAKey, r.Server.Verify = v.text, "ca.crt", r.Server.Verify || v.haproxy
				if v.haproxy {
					r.Server.CAKey = "tls.crt"
				}
			}
			return problem
		},
	},
	{
		NGINX:   "proxy-ssl-verify",
		HAProxy: "-",
		Value:   "on or off",
		Closes:  true,
		Becomes: "the certificates of the servers must be of the CA in proxy-ssl-secret",
		Differs: "without proxy-ssl-name the name in a certificate is not looked at",
		set: func(r *reader, v value) string {
			r.Server.Verify = v.text == "on"
			return oneOf(v.text, "on", "off")
		},
	},
	{
		HAProxy: "server-sni",
		NGINX:   "proxy-ssl-name",
		Value:   "a host",
		Closes:  true,
		Becomes: "the server name that is sent, and the name that certificates must have where they are verified",
		set: func(r *reader, v value) string {
			problem := toHost(v.text)
			if problem == "" && strings.Contains(v.text, ":") {
				problem = wrong(v.text, "a host without a port")
			}
			if problem == "" {
				r.Server.Name = v.text
			}
			return problem
		},
	},
	{
		HAProxy: "pod-maxconn",
		NGINX:   "-",
		Value:   "a number",
		Service: true,
		Becomes: "maxconn of each server",
		Differs: "of each HAProxy: haproxytech divides it by their number",
		set: func(r *reader, v value) string {
			n, problem := toNumber(v.text, 1, maxRate)
			if problem == "" {
				r.Server.MaxConn = strconv.Itoa(n)
			}
			return problem
		},
	},
	{
		HAProxy: "check",
		NGINX:   "-",
		Value:   "true or false",
		Service: true,
		Becomes: "health checks of HAProxy's own",
		Differs: "none without it: the cluster probes pods",
		set: func(r *reader, v value) (problem string) {
			r.Server.Check, problem = toBool(v)
			return problem
		},
	},
	{
		HAProxy: "check-http",
		NGINX:   "-",
		Needs:   "check",
		Value:   "a path",
		Service: true,
		Becomes: "what checks ask for, by GET",
		Differs: "methods and versions are refused",
		set: func(r *reader, v value) string {
			problem := toPath(v.text)
			if problem == "" {
				r.Server.CheckPath = v.text
			}
			return problem
		},
	},
	{
		HAProxy: "check-interval",
		NGINX:   "-",
		Needs:   "check",
		Value:   "a time from 1s, such as 10s",
		Service: true,
		Becomes: "time between checks",
		set: func(r *reader, v value) string {
			problem := setTime(&r.Server.CheckEvery, v)
			if problem == "" && length(r.Server.CheckEvery) < time.Second {
				problem = wrong(v.text, `a time from 1s on, and one without a unit is of milliseconds: write it as in "10s"`)
			}
			return problem
		},
	},
	{
		HAProxy: "send-proxy-protocol",
		NGINX:   "-",
		Value:   "proxy, proxy-v1 or proxy-v2",
		Service: true,
		Becomes: "the PROXY protocol to the servers",
		Differs: "proxy-v2-ssl and proxy-v2-ssl-cn are refused",
		set: func(r *reader, v value) string {
			r.Server.Proxy = "v1"
			if v.text == "proxy-v2" {
				r.Server.Proxy = "v2"
			}
			return oneOf(v.text, "proxy", "proxy-v1", "proxy-v2")
		},
	},
	{
		NGINX:   "affinity",
		HAProxy: "-",
		Value:   "cookie",
		Service: true,
		Becomes: "a cookie that keeps a client with a server",
		Differs: "its value is the name of the server",
		set: func(r *reader, v value) string {
			problem := oneOf(v.text, "cookie")
			if problem == "" && r.Cookie.Name == "" {
				r.Cookie.Name = "INGRESSCOOKIE"
			}
			return problem
		},
	},
	{
		HAProxy: "cookie-persistence",
		NGINX:   "session-cookie-name",
		Value:   "a name",
		Service: true,
		Becomes: "the name of that cookie",
		Differs: "under haproxy.org it needs no affinity",
		set: func(r *reader, v value) string {
			name, problem := toToken(v.text, "a cookie")
			if v.haproxy || r.Cookie.Name != "" {
				r.Cookie.Name = name
			}
			return problem
		},
	},
	{
		NGINX:   "session-cookie-max-age",
		HAProxy: "-",
		Needs:   "affinity session-cookie-name",
		Value:   "seconds",
		Becomes: "how long a browser keeps the cookie",
		set: func(r *reader, v value) string {
			n, problem := toNumber(v.text, 1, 1<<30)
			if problem == "" {
				r.Cookie.MaxAge = strconv.Itoa(n)
			}
			return problem
		},
	},
	{
		NGINX:   "session-cookie-path",
		HAProxy: "-",
		Needs:   "affinity session-cookie-name",
		Value:   "/",
		Becomes: "the path of the cookie, which is always /",
		Differs: "other paths are refused",
		set: func(r *reader, v value) string {
			if v.text != "/" {
				return "the path of HAProxy's cookie is /: give Ingresses with other paths cookies of other names"
			}
			return ""
		},
	},
	{
		NGINX:   "session-cookie-samesite",
		HAProxy: "-",
		Needs:   "affinity session-cookie-name",
		Value:   "None, Lax or Strict",
		Becomes: "SameSite of the cookie",
		set: func(r *reader, v value) string {
			problem := oneOf(v.text, "None", "Lax", "Strict")
			if problem == "" {
				r.Cookie.SameSite = v.text
			}
			return problem
		},
	},
	{
		NGINX:   "session-cookie-secure",
		HAProxy: "-",
		Needs:   "affinity session-cookie-name",
		Value:   "true or false",
		Becomes: "Secure of the cookie",
		set: func(r *reader, v value) (problem string) {
			r.Cookie.Secure, problem = toBool(v)
			return problem
		},
	},
	{
		NGINX:   "session-cookie-domain",
		HAProxy: "-",
		Needs:   "affinity session-cookie-name",
		Value:   "a host",
		Becomes: "Domain of the cookie",
		set: func(r *reader, v value) string {
			problem := toHost(strings.TrimPrefix(v.text, "."))
			if !strings.Contains(v.text, ".") || strings.Contains(v.text, ":") {
				problem = wrong(v.text, "a host that browsers take for a cookie, such as example.com")
			}
			if problem == "" {
				r.Cookie.Domain = v.text
			}
			return problem
		},
	},
}

func (s *Server) speak(protocol string) {
	s.TLS = protocol == "HTTPS" || protocol == "GRPCS"
	s.HTTP2 = protocol == "H2" || strings.HasPrefix(protocol, "GRPC")
}

// AppProtocol applies the appProtocol of a Service's port, unless an annotation says
// otherwise. An unknown protocol means plain HTTP.
func (o *Options) AppProtocol(protocol string) {
	if o.Closed || o.Server.TLS || o.Server.HTTP2 {
		return
	}
	switch protocol {
	case "https", "HTTPS", "kubernetes.io/wss":
		o.Server.speak("HTTPS")
	case "kubernetes.io/h2c", "h2c", "H2C", "http2", "grpc", "GRPC":
		o.Server.speak("H2")
	case "grpcs", "GRPCS":
		o.Server.speak("GRPCS")
	}
}

// balances say how HAProxy chooses a server.
var balances = []Row{
	{
		HAProxy: "load-balance",
		NGINX:   "load-balance",
		Value:   "roundrobin, static-rr, leastconn, first, source, random, uri, hdr(NAME) or url_param NAME; round_robin",
		Service: true,
		Becomes: "balance",
		Differs: "ewma is refused: leastconn is near to it",
		set: func(r *reader, v value) string {
			method, of := v.text, ""
			switch {
			case strings.HasPrefix(method, "hdr(") && strings.HasSuffix(method, ")"):
				method, of = "hdr", method[4:len(method)-1]
			case strings.HasPrefix(method, "url_param "):
				method, of = "url_param", strings.TrimSpace(method[10:])
			case method == "round_robin":
				method = "roundrobin"
			}
			if method == "hdr" || method == "url_param" {
				name, problem := toToken(of, "a header or a parameter")
				r.Balance = Balance{method, name}
				return problem
			}
			if problem := oneOf(method, "roundrobin", "static-rr", "leastconn", "first", "source", "random", "uri"); problem != "" {
				return problem
			}
			r.Balance = Balance{Method: method}
			if method == "roundrobin" {
				r.Balance = Balance{}
			}
			return ""
		},
	},
	{
		NGINX:   "upstream-hash-by",
		HAProxy: "-",
		Value:   "$request_uri, $remote_addr, $host, $http_NAME or $arg_NAME",
		Becomes: "balance by a consistent hash of it",
		Differs: "one variable alone, and no cookie; $request_uri is the path",
		set: func(r *reader, v value) string {
			name := strings.TrimSuffix(strings.TrimPrefix(v.text, "${"), "}")
			name = strings.TrimPrefix(name, "$")
			header, isHeader := strings.CutPrefix(name, "http_")
			arg, isArg := strings.CutPrefix(name, "arg_")
			b := Balance{}
			switch {
			case name == "request_uri" || name == "uri":
				b.Method = "uri"
			case name == "remote_addr" || name == "binary_remote_addr":
				b.Method = "source"
			case name == "host" || name == "http_host":
				b = Balance{"hdr", "host"}
			case isHeader && isToken(header):
				b = Balance{"hdr", strings.ReplaceAll(header, "_", "-")}
			case isArg && isToken(arg):
				b = Balance{"url_param", arg}
			default:
				return wrong(v.text, "a variable that HAProxy hashes: write $request_uri, $remote_addr, $host, $http_NAME or $arg_NAME")
			}
			r.Balance = b
			return ""
		},
	},
}

// canaries make an Ingress take a part of another one's requests for the same path.
var canaries = []Row{
	{
		NGINX:   "canary",
		HAProxy: "canary",
		Value:   "true or false",
		Becomes: "paths that take a part of the requests of another Ingress of the namespace for the same host and path",
		Differs: "all else, such as auth, is that of the other Ingress; a wrong value makes a canary without requests",
		set: func(r *reader, v value) (problem string) {
			r.Canary.Is, problem = toBool(v)
			return problem
		},
		off: func(r *reader) { r.canaryOff = true },
	},
	{
		NGINX:   "canary-weight",
		HAProxy: "canary-weight",
		Needs:   "canary",
		Value:   "0 to canary-weight-total",
		Becomes: "how many of 100, by chance",
		Differs: "a change of the weight alone takes no reload",
		set: func(r *reader, v value) (problem string) {
			r.Canary.Weight, problem = toNumber(v.text, 0, maxRate)
			return problem
		},
	},
	{
		NGINX:   "canary-weight-total",
		HAProxy: "canary-weight-total",
		Needs:   "canary",
		Value:   "a number",
		Becomes: "the total of which canary-weight is a part, in place of 100",
		set: func(r *reader, v value) (problem string) {
			r.Canary.Total, problem = toNumber(v.text, 1, maxRate)
			return problem
		},
	},
	{
		NGINX:   "canary-by-header",
		HAProxy: "canary-by-header",
		Needs:   "canary",
		Value:   "a header",
		Becomes: `"always" of it leads to the canary, "never" does not, all else goes by cookie and weight`,
		set: func(r *reader, v value) (problem string) {
			r.Canary.Header, problem = toToken(v.text, "a header")
			return problem
		},
	},
	{
		NGINX:   "canary-by-header-value",
		HAProxy: "canary-by-header-value",
		Needs:   "canary-by-header",
		Value:   "text",
		Becomes: `what of the header leads to the canary, in place of "always"`,
		set: func(r *reader, v value) string {
			problem := toText(v.text)
			if strings.ContainsAny(v.text, "{}") {
				problem = fmt.Sprintf("%q has a brace, which is a sign of conditions in HAProxy: write a canary-by-header-pattern", short(v.text))
			}
			r.Canary.Value = v.text
			return problem
		},
	},
	{
		NGINX:   "canary-by-header-pattern",
		HAProxy: "canary-by-header-pattern",
		Needs:   "canary-by-header",
		Value:   "a regular expression",
		Becomes: `a pattern of the header that leads to the canary, in place of "always"`,
		set: func(r *reader, v value) string {
			_, problem := CheckPattern(v.text)
			if v.text == "}" {
				problem = wrong(v.text, `a pattern here, where it ends a condition in HAProxy: write "[}]"`)
			}
			if problem == "" {
				r.Canary.Pattern = Pattern(v.text)
			}
			return problem
		},
	},
	{
		NGINX:   "canary-by-cookie",
		HAProxy: "canary-by-cookie",
		Needs:   "canary",
		Value:   "a cookie",
		Becomes: `"always" of it leads to the canary, "never" does not, all else goes by weight`,
		set: func(r *reader, v value) (problem string) {
			r.Canary.Cookie, problem = toToken(v.text, "a cookie")
			return problem
		},
	},
}
