package annotation

import (
	"fmt"
	"strings"
)

// redirects send clients elsewhere.
var redirects = []Row{
	{NGINX: "ssl-redirect", Value: "true or false", Closes: true,
		Becomes: "a redirect to https for hosts that spec.tls of the Ingress names",
		Differs: `without the annotation nothing is redirected; ingress-nginx and haproxytech redirect hosts with TLS without it`,
		set: func(r *reader, v value) string {
			is, problem := toBool(v)
			if is && r.Redirect.Code == 0 {
				r.Redirect.Code = 308
				if v.haproxy {
					r.Redirect.Code = 302
				}
			}
			return problem
		}},
	{
		NGINX:   "force-ssl-redirect",
		Value:   "true or false",
		Closes:  true,
		Becomes: "a redirect to https for all hosts: something before HAProxy has their certificates",
		Differs: "X-Forwarded-Proto of a proxy says that a request came by TLS where -trust-proxy names the proxy",
		set: func(r *reader, v value) string {
			is, problem := toBool(v)
			if is {
				r.Redirect.Force = true
				if r.Redirect.Code == 0 {
					r.Redirect.Code = 308
				}
			}
			return problem
		},
	},
	{
		NGINX:   "ssl-passthrough",
		Value:   "true or false",
		Becomes: "connections with TLS for the hosts go to the first Service of each rule, and HAProxy reads nothing in them",
		Differs: "refused beside allow and deny lists, auth and rates, which it would go past; requests without TLS go by the rules",
		set: func(r *reader, v value) (problem string) {
			r.Passthrough, problem = toBool(v)
			return problem
		},
	},
	{
		HAProxy: "ssl-redirect-code",
		NGINX:   "-",
		Needs:   "ssl-redirect force-ssl-redirect",
		Value:   "301, 302, 303, 307 or 308",
		Becomes: "the status of that redirect",
		set: func(r *reader, v value) string {
			n, problem := toCode(v.text)
			if r.Redirect.Code > 0 && n > 0 {
				r.Redirect.Code = n
			}
			return problem
		},
	},
	{
		HAProxy: "ssl-redirect-port",
		NGINX:   "-",
		Needs:   "ssl-redirect force-ssl-redirect",
		Value:   "a port",
		Becomes: "the port of that redirect",
		Differs: "443 without it, as clients see it; haproxytech has 8443",
		set: func(r *reader, v value) (problem string) {
			r.Redirect.Port, problem = toNumber(v.text, 1, 65535)
			return problem
		},
	},
	{NGINX: "app-root", Value: "a path", Becomes: "a redirect from / to it, with 302", set: func(r *reader, v value) string {
		if problem := toPath(v.text); problem != "" {
			return problem
		}
		r.AppRoot = v.text
		return ""
	}},
	{
		NGINX:   "permanent-redirect",
		Value:   "a URL",
		Becomes: "a redirect to it, with 301",
		Differs: "variables of nginx are refused",
		set: func(r *reader, v value) string {
			return r.redirectTo(v.text, 301)
		},
	},
	{NGINX: "permanent-redirect-code", Needs: "permanent-redirect", Value: "301, 302, 303, 307 or 308", Becomes: "the status of that redirect", set: setCode},
	{
		NGINX:   "temporal-redirect",
		Value:   "a URL",
		Becomes: "a redirect to it, with 302; it goes before permanent-redirect",
		Differs: "variables of nginx are refused",
		set: func(r *reader, v value) string {
			return r.redirectTo(v.text, 302)
		},
	},
	{NGINX: "temporal-redirect-code", Needs: "temporal-redirect", Value: "301, 302, 303, 307 or 308", Becomes: "the status of that redirect", set: setCode},
	{
		HAProxy: "request-redirect",
		NGINX:   "-",
		Value:   "a URL or a host",
		Becomes: "a redirect to the URL, or to the same path of the host, with 302",
		set: func(r *reader, v value) string {
			if strings.Contains(v.text, "://") {
				return r.redirectTo(v.text, 302)
			}
			problem := toHost(v.text)
			if problem == "" {
				r.Answer, r.answer = Answer{Code: 302, Host: v.text}, r.row.name()
			}
			return problem
		},
	},
	{
		HAProxy: "request-redirect-code",
		NGINX:   "-",
		Needs:   "request-redirect",
		Value:   "301, 302, 303, 307 or 308",
		Becomes: "the status of that redirect",
		set:     setCode,
	},
}

func toCode(s string) (code int, problem string) {
	if problem := oneOf(s, "301", "302", "303", "307", "308"); problem != "" {
		return 0, problem
	}
	return toNumber(s, 301, 308)
}

// setCode sets the status of the redirect that the annotation belongs to.
func setCode(r *reader, v value) string {
	n, problem := toCode(v.text)
	if n > 0 && r.answer+"-code" == r.row.name() {
		r.Answer.Code = n
	}
	return problem
}

func (r *reader) redirectTo(url string, code int) string {
	problem := toURL(url)
	if problem == "" {
		r.Answer, r.answer = Answer{Code: code, Location: url}, r.row.name()
	}
	return problem
}

// paths change the path, host or body limit of a request.
var paths = []Row{
	{
		HAProxy: "use-regex",
		NGINX:   "use-regex",
		Value:   "true or false",
		Becomes: "paths that are regular expressions, but for those of type Exact; the longest goes first, behind exact paths and before prefixes",
		Differs: "the case of letters counts; other Ingresses of the host keep plain paths; look-around, flags, a | outside of parentheses, a repeat or choice in a repeat, and several repeats that can share a text are refused; where two can, as in /(.*)/(.*)x, longer paths of the host get 414",
		set: func(r *reader, v value) (problem string) {
			r.Regex, problem = toBool(v)
			return problem
		},
	},
	{
		HAProxy: "rewrite-target",
		NGINX:   "rewrite-target",
		Value:   "a path, with $1 to $9",
		Becomes: "the path that the Service sees; with $1 it makes the paths regular expressions, as use-regex does",
		Differs: "without $1 the paths stay what they are; a query and variables of nginx are refused",
		set: func(r *reader, v value) string {
			to, groups, problem := toReplacement(v.text, '$')
			switch {
			case problem != "":
				return problem
			case groups == 0:
				r.SetPath = string(to)
				return toPath(v.text)
			}
			r.Regex, r.RewriteTo = true, to
			return ""
		},
	},
	{
		HAProxy: "path-rewrite",
		NGINX:   "-",
		Value:   "a path; or a regular expression, a space, and a path with \\1 to \\9",
		Service: true,
		Becomes: "the path that the Service sees",
		Differs: "one line is taken",
		set: func(r *reader, v value) string {
			words := strings.Fields(v.text)
			if len(words) == 1 {
				r.SetPath, r.RewriteFrom, r.RewriteTo = words[0], "", ""
				return toPath(words[0])
			}
			if len(words) != 2 {
				return wrong(v.text, "a path, or a regular expression and a path")
			}
			has, problem := CheckPattern(words[0])
			if problem != "" {
				return problem
			}
			to, groups, problem := toReplacement(words[1], '\\')
			if problem == "" && groups > has.Groups {
				problem = fmt.Sprintf("%q has no group %d", short(words[0]), groups)
			}
			if problem == "" {
				r.RewriteFrom, r.RewriteTo = Pattern(words[0]), to
			}
			return problem
		},
	},
	{
		HAProxy: "set-host",
		NGINX:   "upstream-vhost",
		Value:   "a host",
		Service: true,
		Becomes: "the Host header that the Service sees",
		Differs: "variables of nginx are refused",
		set: func(r *reader, v value) string {
			problem := toHost(v.text)
			if problem == "" {
				r.Host = v.text
			}
			return problem
		},
	},
	{NGINX: "x-forwarded-prefix", Value: "a path", Becomes: "the header X-Forwarded-Prefix", set: func(r *reader, v value) string {
		problem := toPath(v.text)
		if problem == "" {
			r.Prefix = v.text
		}
		return problem
	}},
	{
		NGINX:   "proxy-body-size",
		Value:   "a size, such as 8m; 0: no bound",
		Closes:  true,
		Becomes: "413 for a larger body",
		Differs: "there is no bound without it, where ingress-nginx has 1m; a body of unknown length counts as far as it has come",
		set: func(r *reader, v value) (problem string) {
			r.MaxBody, problem = toSize(v.text)
			return problem
		},
	},
}

// headers set headers of requests and responses.
var headers = []Row{
	{
		HAProxy: "forwarded-for",
		NGINX:   "-",
		Value:   "true",
		Service: true,
		Becomes: "X-Forwarded-For, which is always set",
		Differs: "false is refused",
		set: func(r *reader, v value) string {
			is, problem := toBool(v)
			if problem == "" && !is {
				problem = trusted
			}
			return problem
		},
	},
	{HAProxy: "request-set-header", NGINX: "-", Value: "lines of a name and a value", Service: true, Becomes: "headers that the Service sees",
		Differs: "values are plain text; those of a connection, X-Forwarded-For and such are refused, and Host, which set-host has",
		set: func(r *reader, v value) (problem string) {
			r.SetRequest, problem = toHeaders(v.text)
			return problem
		}},
	{
		HAProxy: "response-set-header",
		NGINX:   "-",
		Value:   "lines of a name and a value",
		Service: true,
		Becomes: "headers that clients see",
		Differs: "values are plain text",
		set: func(r *reader, v value) (problem string) {
			r.SetResponse, problem = toHeaders(v.text)
			return problem
		},
	},
}

// timeouts are times of HAProxy.
var timeouts = []Row{
	{
		HAProxy: "timeout-connect",
		NGINX:   "proxy-connect-timeout",
		Value:   "a time, such as 5s",
		Service: true,
		Becomes: "timeout connect",
		Differs: "5s without it",
		set: func(r *reader, v value) string {
			return r.setTimeout(&r.ConnectTimeout, v)
		},
	},
	{
		HAProxy: "timeout-server",
		NGINX:   "proxy-read-timeout",
		Value:   "a time, such as 60s",
		Service: true,
		Becomes: "timeout server",
		Differs: "50s without it; a WebSocket has timeout-tunnel",
		set: func(r *reader, v value) string {
			return r.setTimeout(&r.ServerTimeout, v)
		},
	},
	{
		NGINX:   "proxy-send-timeout",
		Value:   "a time, such as 60s",
		Becomes: "timeout server, where proxy-read-timeout is not given",
		Differs: "HAProxy has one for both",
		set: func(r *reader, v value) string {
			var time string
			problem := r.setTimeout(&time, v)
			if r.ServerTimeout == "" {
				r.ServerTimeout = time
			}
			return problem
		},
	},
	{
		HAProxy: "timeout-queue",
		NGINX:   "-",
		Value:   "a time, such as 5s",
		Service: true,
		Becomes: "timeout queue",
		set:     func(r *reader, v value) string { return r.setTimeout(&r.QueueTimeout, v) },
	},
	{
		HAProxy: "timeout-tunnel",
		NGINX:   "-",
		Value:   "a time, such as 1h",
		Service: true,
		Becomes: "timeout tunnel",
		Differs: "1h without it",
		set:     func(r *reader, v value) string { return r.setTimeout(&r.TunnelTimeout, v) },
	},
	{
		HAProxy: "timeout-check",
		NGINX:   "-",
		Value:   "a time, such as 5s",
		Service: true,
		Becomes: "timeout check",
		set:     func(r *reader, v value) string { return r.setTimeout(&r.CheckTimeout, v) },
	},
}

func setTime(to *string, v value) string {
	time, problem := toDuration(v)
	if problem == "" {
		*to = time
	}
	return problem
}
