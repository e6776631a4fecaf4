package annotation

import "regexp"

// denies matches a snippet that restricts access: without it something would be open.
var denies = regexp.MustCompile(
	`(?i)\bdeny\s+(all|[0-9])|\bauth_(basic|request|jwt)\b|\breturn\s+4\d\d|\blimit_(req|conn)\b|\bsatisfy\b|\binternal;|\bssl_verify_client\b|\bsecrule|\b(http|tcp)-request\s+(\w+\s+)?(deny|auth|tarpit|reject|silent-drop|return)\b`,
)

const (
	useTemplates = "lines of a configuration are not taken from an annotation: write a template of your own and give it by -templates"
	trusted      = "X-Forwarded-For is always set, and -trust-proxy says whose is believed"
	byFlag       = "it concerns all Ingresses: set it by a flag, or in a template"
)

// refused are known annotations that are not taken.
var refused = []Row{
	{
		HAProxy:  "backend-config-snippet frontend-config-snippet global-config-snippet stats-config-snippet",
		NGINX:    "configuration-snippet server-snippet stream-snippet modsecurity-snippet auth-snippet",
		closesOn: denies,
		Refused:  useTemplates,
	},
	{
		HAProxy: "-",
		NGINX:   "mirror-target mirror-host mirror-request-body",
		Refused: "HAProxy mirrors requests only through an agent (SPOE): write a template, or mirror in a mesh",
	},
	{
		HAProxy: "-",
		NGINX:   "enable-modsecurity enable-owasp-core-rules modsecurity-transaction-id",
		Closes:  true,
		Refused: "HAProxy has no ModSecurity without an agent of its own: write a template that calls one",
	},
	{
		HAProxy: "-",
		NGINX:   "auth-url auth-signin auth-signin-redirect-param auth-method auth-response-headers auth-request-redirect auth-cache-key auth-cache-duration auth-always-set-cookie auth-proxy-set-headers auth-keepalive auth-keepalive-requests auth-keepalive-share-vars auth-keepalive-timeout enable-global-auth global-auth-url",
		Closes:  true,
		Refused: "HAProxy can ask another service about a request only by Lua: put an authenticating proxy before the Service, or write a template",
	},
	{
		HAProxy: "client-ca client-crt-optional",
		NGINX:   "auth-tls-secret auth-tls-verify-client auth-tls-verify-client-optional auth-tls-verify-depth auth-tls-error-page auth-tls-pass-certificate-to-upstream auth-tls-match-cn",
		Closes:  true,
		Refused: "the bind line asks clients for certificates, for all hosts: write a template with ca-file and verify required",
	},
	{HAProxy: "server-crt", NGINX: "-", Closes: true, Refused: "no client certificate is sent to servers: write a template with crt on the server line"},
	{
		HAProxy: "-",
		NGINX:   "proxy-ssl-ciphers proxy-ssl-protocols proxy-ssl-verify-depth",
		Refused: "ciphers and versions to servers are those of HAProxy: write a template with ssl-default-server-options",
	},
	{HAProxy: "-", NGINX: "ssl-ciphers ssl-prefer-server-ciphers", always: true, Refused: byFlag},
	{HAProxy: "ssl-certificate", NGINX: "-", Refused: byFlag + "; spec.tls names certificates"},
	{HAProxy: "-", NGINX: "server-alias", Refused: "write a rule with that host"},
	{HAProxy: "-", NGINX: "from-to-www-redirect", Refused: "write an Ingress with the other host and permanent-redirect"},
	{
		HAProxy: "-",
		NGINX:   "default-backend custom-http-errors disable-proxy-intercept-errors",
		Refused: "errors of a Service are those of the Service: spec.defaultBackend answers what no rule matches",
	},
	{
		HAProxy: "-",
		NGINX:   "proxy-cookie-domain proxy-cookie-path",
		Refused: "cookies of a Service are not rewritten: write a template with http-response replace-header",
	},
	{
		HAProxy: "-",
		NGINX:   "proxy-redirect-from proxy-redirect-to",
		Refused: "redirects of a Service are not rewritten: write a template with http-response replace-header",
	},
	{HAProxy: "-", NGINX: "limit-rate limit-rate-after", Refused: "bandwidth is not bounded: write a template with a bwlim filter"},
	{
		HAProxy: "-",
		NGINX:   "denylist-source-range-code limit-req-status-code",
		Refused: "the status is 403 and 503; rate-limit-status-code of haproxy.org chooses another",
	},
	{HAProxy: "-", NGINX: "upstream-hash-by-subset upstream-hash-by-subset-size", Refused: "a hash leads to one server: HAProxy knows no subsets"},
	{HAProxy: "-", NGINX: "session-cookie-expires", Refused: "session-cookie-max-age says the same, and browsers know it"},
	{HAProxy: "-", NGINX: "session-cookie-conditional-samesite-none affinity-canary-behavior", Refused: "the Service that answers sets its own cookie"},
	{HAProxy: "-", NGINX: "custom-headers", Refused: "it names a ConfigMap: haproxy.org/response-set-header has the headers themselves"},
	{HAProxy: "-", NGINX: "service-upstream", Refused: "endpoints are served, never the address of the Service, so that a change takes no reload"},
	{HAProxy: "-", NGINX: "use-proxy-protocol", Refused: byFlag},
	{
		HAProxy: "-",
		NGINX:   "enable-opentelemetry opentelemetry-trust-incoming-span opentelemetry-operation-name enable-opentracing opentracing-trust-incoming-span",
		Refused: "HAProxy traces with a filter of its own: write a template",
	},
	{
		HAProxy: "-",
		NGINX:   "upstream-keepalive-connections influxdb-host lua-resty-waf fastcgi-index fastcgi-params-configmap",
		Refused: "HAProxy has nothing like it",
	},
	{
		HAProxy: "-",
		NGINX:   "proxy-next-upstream proxy-next-upstream-timeout proxy-next-upstream-tries",
		always:  true,
		Refused: "HAProxy tries a connection three times more, each time with another server: write a template with retry-on",
	},
	{HAProxy: "cookie-persistence-no-dynamic", NGINX: "-", Refused: "write cookie-persistence: the cookie is never a dynamic one"},
	{HAProxy: "src-ip-header", NGINX: "-", Refused: trusted},
	{
		HAProxy: "route-acl",
		NGINX:   "-",
		Refused: "a condition is not taken from an annotation: canary-by-header and canary-by-cookie choose a Service, all else is a matter of templates",
	},
	{HAProxy: "request-capture request-capture-len", NGINX: "-", Refused: "the log is that of all Ingresses: write a template with capture"},
	{
		HAProxy: "standalone-backend scale-server-slots server-slots",
		NGINX:   "-",
		Refused: "servers come and go at runtime, and annotations make backends of their own: there is nothing to choose",
	},
	{HAProxy: "ingress.class", NGINX: "-", Refused: "write spec.ingressClassName"},
	{HAProxy: "cr-backend", NGINX: "-", Refused: "it names a resource of haproxytech: write the annotations, or a template"},
	{
		HAProxy: "timeout-client timeout-http-request timeout-http-keep-alive timeout-client-fin timeout-server-fin maxconn nbthread syslog-server tls-alpn hard-stop-after http-keep-alive http-connection-mode http-server-close log-format log-format-tcp clean-certs client-strict-sni generate-certificates-signer quic-alt-svc-max-age dontlognull logasap abortonclose proxy-protocol",
		NGINX:   "-",
		always:  true,
		Refused: byFlag,
	},
}

const streams = "HAProxy streams, with buffers of its own"

// ignored are known annotations whose absence changes nothing for a user.
var ignored = []Row{
	{
		HAProxy: "-",
		NGINX:   "proxy-buffering proxy-request-buffering proxy-buffer-size proxy-buffers-number proxy-busy-buffers-size proxy-max-temp-file-size client-body-buffer-size",
		Ignored: streams,
	},
	{HAProxy: "-", NGINX: "proxy-http-version connection-proxy-header", Ignored: "HAProxy speaks HTTP/1.1 with keep-alive, and WebSockets need nothing"},
	{HAProxy: "-", NGINX: "enable-access-log enable-rewrite-log", Ignored: "-access-log is for all Ingresses"},
	{HAProxy: "-", NGINX: "http2-push-preload", Ignored: "browsers have given it up"},
	{
		HAProxy: "-",
		NGINX:   "affinity-mode session-cookie-change-on-failure",
		Ignored: "a client stays with its server as long as that serves, and then gets another and its cookie",
	},
	{HAProxy: "-", NGINX: "proxy-ssl-server-name", Ignored: "the server name is that of proxy-ssl-name, and is sent where that is given"},
	{
		HAProxy: "-",
		NGINX:   "relative-redirects use-port-in-redirects",
		Ignored: "a redirect to https has the host that was asked for, and the port of ssl-redirect-port",
	},
	{HAProxy: "-", NGINX: "preserve-trailing-slash", Ignored: "redirects keep it"},
}
