package annotation

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// access says who may send requests.
var access = []Row{
	{
		HAProxy: "allow-list whitelist",
		NGINX:   "whitelist-source-range allowlist-source-range",
		Value:   "addresses and ranges",
		Closes:  true,
		Becomes: "403 for all others",
		Differs: "where a proxy of -trust-proxy sends the request, the last address of X-Forwarded-For counts",
		set: func(r *reader, v value) (problem string) {
			r.Allow, problem = toCIDRs(v.text)
			return problem
		},
	},
	{
		HAProxy: "deny-list blacklist",
		NGINX:   "denylist-source-range",
		Value:   "addresses and ranges",
		Closes:  true,
		Becomes: "403 for them",
		Differs: "as with the allow list",
		set: func(r *reader, v value) (problem string) {
			r.Deny, problem = toCIDRs(v.text)
			return problem
		},
	},
	{
		NGINX:   "auth-type",
		HAProxy: "auth-type",
		Value:   "basic; basic-auth",
		Closes:  true,
		Becomes: "401 without a user and a password of auth-secret",
		Differs: "digest is refused",
		set: func(r *reader, v value) string {
			r.authType = true
			return oneOf(v.text, "basic", "basic-auth")
		},
	},
	{
		NGINX:   "auth-secret",
		HAProxy: "auth-secret",
		Value:   "the name of a Secret",
		secret:  true,
		Closes:  true,
		Becomes: "a userlist of its key auth, which is a file of htpasswd",
		Differs: "the Secret is of the same namespace; it has hashes of crypt(3) that take HAProxy 5 ms at most: see Passwords; without a key auth each key is a user",
		set: func(r *reader, v value) string {
			problem := toSecret(v.text)
			if problem == "" {
				r.Auth.Secret = v.text
			}
			return problem
		},
	},
	{
		NGINX:   "auth-secret-type",
		HAProxy: "-",
		Value:   "auth-file or auth-map",
		Closes:  true,
		Becomes: "auth-map: each key of the Secret is a user, its value the hash",
		set: func(r *reader, v value) string {
			r.Auth.Map = v.text == "auth-map"
			return oneOf(v.text, "auth-file", "auth-map")
		},
	},
	{
		NGINX:   "satisfy",
		HAProxy: "-",
		Value:   "all",
		Closes:  true,
		Becomes: "both the lists and auth count, as without it",
		Differs: "any is refused",
		set: func(r *reader, v value) string {
			if v.text != "all" {
				return "both the lists and auth count here: remove one of them where one is to be enough"
			}
			return ""
		},
	},
	{NGINX: "auth-realm", HAProxy: "auth-realm", Needs: "auth-type", Value: "text", Becomes: "what a browser shows", set: func(r *reader, v value) string {
		problem := toText(v.text)
		if problem == "" {
			r.Auth.Realm = v.text
		}
		return problem
	}},
}

// origin matches an origin of CORS, with or without a wildcard. Apps have their own schemes.
var origin = regexp.MustCompile(`^([a-z]{2,30})://(\*\.)?([a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:[0-9]{1,5})?$`)

func (c *CORS) allow(s string) string {
	all := words(s)
	var exact, patterns []string
	if len(all) == 0 || len(all) > MaxOrigins {
		return fmt.Sprintf("it names %d origins, from 1 to %d are taken", len(all), MaxOrigins)
	}
	c.Any = false
	for _, word := range all {
		word = strings.ToLower(word)
		parts := origin.FindStringSubmatch(word)
		switch {
		case word == "*":
			c.Any = true
		case parts == nil || len(word) > 255:
			return wrong(word, "an origin: write one such as https://example.com or https://*.example.com")
		case parts[2] != "":
			patterns = append(patterns, "^"+parts[1]+`://[A-Za-z0-9-]+\.`+regexp.QuoteMeta(parts[3]+parts[5])+"$")
		default:
			exact = append(exact, word)
		}
	}
	c.Origins, c.Patterns = listOf(exact), listOf(patterns)
	if c.Any {
		c.Origins, c.Patterns = "", ""
	}
	return ""
}

// cors lets pages of other origins read responses.
var cors = []Row{
	{
		HAProxy: "cors-enable",
		NGINX:   "enable-cors",
		Value:   "true or false",
		Becomes: "headers of CORS, and 204 for a preflight",
		Differs: "a preflight is an OPTIONS with Access-Control-Request-Method",
		set: func(r *reader, v value) (problem string) {
			r.CORS.Enabled, problem = toBool(v)
			if problem == "" {
				r.CORS.Any, r.CORS.Credentials, r.CORS.MaxAge = true, true, "1728000"
				r.CORS.Methods = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
				r.CORS.Headers = "DNT, Keep-Alive, User-Agent, X-Requested-With, If-Modified-Since, Cache-Control, Content-Type, Range, Authorization"
				if v.haproxy {
					r.CORS.Credentials, r.CORS.MaxAge, r.CORS.Methods, r.CORS.Headers = false, "5", "*", "*"
				}
			}
			return problem
		},
	},
	{
		HAProxy: "cors-allow-origin",
		NGINX:   "cors-allow-origin",
		Needs:   "enable-cors",
		Value:   "origins, or *",
		Becomes: "Access-Control-Allow-Origin",
		Differs: "a list answers with the origin that asks; a regular expression of haproxytech is refused, and a refused one turns CORS off",
		set: func(r *reader, v value) string {
			return r.CORS.allow(v.text)
		},
		off: func(r *reader) { r.CORS = CORS{} },
	},
	{
		HAProxy: "cors-allow-methods",
		NGINX:   "cors-allow-methods",
		Needs:   "enable-cors",
		Value:   "methods",
		Becomes: "Access-Control-Allow-Methods",
		set: func(r *reader, v value) string {
			return setTokens(&r.CORS.Methods, v, "a method")
		},
	},
	{
		HAProxy: "cors-allow-headers",
		NGINX:   "cors-allow-headers",
		Needs:   "enable-cors",
		Value:   "headers",
		Becomes: "Access-Control-Allow-Headers",
		set: func(r *reader, v value) string {
			return setTokens(&r.CORS.Headers, v, "a header")
		},
	},
	{
		HAProxy: "cors-expose-headers",
		NGINX:   "cors-expose-headers",
		Needs:   "enable-cors",
		Value:   "headers",
		Becomes: "Access-Control-Expose-Headers",
		set: func(r *reader, v value) string {
			return setTokens(&r.CORS.Expose, v, "a header")
		},
	},
	{
		HAProxy: "cors-allow-credentials",
		NGINX:   "cors-allow-credentials",
		Needs:   "enable-cors",
		Value:   "true or false",
		Becomes: "Access-Control-Allow-Credentials",
		Differs: "not with the origin *, where browsers refuse it; without it true, and false under cors-enable of haproxy.org",
		set: func(r *reader, v value) string {
			is, problem := toBool(v)
			r.CORS.Credentials = is
			return problem
		},
		off: func(r *reader) { r.CORS.Credentials = false },
	},
	{
		HAProxy: "cors-max-age",
		NGINX:   "cors-max-age",
		Needs:   "enable-cors",
		Value:   "seconds; under haproxy.org a time, such as 1m",
		Becomes: "Access-Control-Max-Age",
		set: func(r *reader, v value) string {
			if v.haproxy {
				time, problem := toDuration(v)
				r.CORS.MaxAge = strconv.Itoa(int(length(time).Seconds()))
				return problem
			}
			n, problem := toNumber(v.text, 0, 10_000_000)
			if problem == "" {
				r.CORS.MaxAge = strconv.Itoa(n)
			}
			return problem
		},
	},
}

func setTokens(to *string, v value, what string) string {
	list, problem := toTokens(v.text, what)
	if problem == "" {
		*to = list
	}
	return problem
}

// maxRate bounds a number of requests.
const maxRate = 1_000_000

// rates bound the requests of one address.
var rates = []Row{
	{NGINX: "limit-rps", Value: "requests a second", Closes: true, Becomes: "503 for more requests of an address, counted over 5 seconds and in each HAProxy",
		Differs: "a client can send five times as many in any 5 seconds, and none above; refused requests count, so that a client that does not slow down gets nothing",
		set: func(r *reader, v value) (problem string) {
			r.perS, problem = toNumber(v.text, 0, maxRate)
			return problem
		}},
	{
		NGINX:   "limit-burst-multiplier",
		Needs:   "limit-rps",
		Value:   "a number",
		Becomes: "over how many seconds limit-rps counts",
		set: func(r *reader, v value) (problem string) {
			r.burst, problem = toNumber(v.text, 1, 600)
			return problem
		},
	},
	{
		NGINX:   "limit-rpm",
		Value:   "requests a minute",
		Closes:  true,
		Becomes: "503 for more requests of an address in a minute",
		Differs: "no burst above it; refused requests count",
		set: func(r *reader, v value) string {
			return setCount(&r.Rate.PerMinute, v.text)
		},
	},
	{NGINX: "limit-connections", Value: "requests", Closes: true, Becomes: "503 for more requests of an address at once", set: func(r *reader, v value) string {
		return setCount(&r.Rate.Connections, v.text)
	}},
	{
		HAProxy: "limit-whitelist rate-limit-whitelist",
		NGINX:   "limit-whitelist limit-allowlist",
		Value:   "addresses and ranges",
		Becomes: "addresses without these bounds",
		set: func(r *reader, v value) (problem string) {
			r.Rate.Exempt, problem = toCIDRs(v.text)
			return problem
		},
	},
	{
		HAProxy: "rate-limit-requests",
		NGINX:   "-",
		Value:   "requests",
		Closes:  true,
		Becomes: "403 for more requests of an address in rate-limit-period",
		set: func(r *reader, v value) string {
			if r.Rate.Status == "" {
				r.Rate.Status = "403"
			}
			return setCount(&r.Rate.Requests, v.text)
		},
	},
	{
		HAProxy: "rate-limit-period",
		NGINX:   "-",
		Needs:   "rate-limit-requests",
		Value:   "a time, such as 1s",
		Closes:  true,
		Becomes: "how long rate-limit-requests counts; 1s without it",
		set: func(r *reader, v value) string {
			return setTime(&r.period, v)
		},
	},
	{
		HAProxy: "rate-limit-size",
		NGINX:   "-",
		Needs:   "rate-limit-requests limit-rps limit-rpm limit-connections",
		Value:   "a number, with k or m",
		Becomes: "how many addresses are counted; 10k without it",
		Differs: "100k in haproxytech, for all Ingresses together",
		set: func(r *reader, v value) string {
			bytes, problem := toSize(v.text)
			if n, _ := strconv.Atoi(bytes); problem == "" && (n < 1 || n > 1<<20) {
				return wrong(v.text, "from 1 to 1m")
			}
			r.Rate.Size = bytes
			return problem
		},
	},
	{
		HAProxy: "rate-limit-status-code",
		NGINX:   "-",
		Needs:   "rate-limit-requests limit-rps limit-rpm limit-connections",
		Value:   "400 to 599",
		Becomes: "the status in place of 403",
		set: func(r *reader, v value) string {
			if problem := oneOf(v.text, "400", "401", "403", "404", "405", "408", "410", "413", "425", "429", "500", "501", "502", "503", "504"); problem != "" {
				return problem
			}
			r.Rate.Status = v.text
			return ""
		},
	},
}

// setCount sets a bound; 0 means none.
func setCount(to *string, s string) string {
	n, problem := toNumber(s, 0, maxRate)
	*to = strconv.Itoa(n)
	if n == 0 {
		*to = ""
	}
	return problem
}
