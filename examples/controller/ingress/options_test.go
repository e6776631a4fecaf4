package ingress

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/templating/regex"
)

const (
	nginx = annotation.NGINX
	tech  = annotation.HAProxy
)

// userHash is that of "secret", by openssl passwd -6.
const userHash = "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1"

// effect is what annotations become: lines of the backend, or the reasons of refusals.
type effect struct {
	name    string
	give    map[string]string
	path    string
	service map[string]string
	lines   []string // in this order
	refused []string
}

const closedLine = `http-request return status 503 content-type text/plain string "an annotation is refused\n"`

// plain is a backend without options.
var plain = []string{"server s1 192.0.2.1:8080"}

var effects = []effect{
	{name: "ssl-redirect", give: map[string]string{nginx + "ssl-redirect": "true"}, lines: []string{"http-request redirect code 308 location https://%[req.hdr(host),host_only]%[pathq] unless { req.fhdr(x-forwarded-proto) -m str -i https }"}},
	{name: "ssl-redirect of HAProxy", give: map[string]string{tech + "ssl-redirect": "true", tech + "ssl-redirect-code": "303", tech + "ssl-redirect-port": "8443"}, lines: []string{"http-request redirect code 303 location https://%[req.hdr(host),host_only]:8443%[pathq] unless"}},
	{name: "ssl-redirect without TLS", path: "/no-tls", give: map[string]string{nginx + "ssl-redirect": "true"}, lines: plain},
	{name: "force-ssl-redirect", path: "/no-tls", give: map[string]string{nginx + "force-ssl-redirect": "true"}, lines: []string{"http-request redirect code 308"}},
	{name: "wrong ssl-redirect", give: map[string]string{nginx + "ssl-redirect": "treu"}, lines: []string{closedLine}, refused: []string{`metadata.annotations[nginx.ingress.kubernetes.io/ssl-redirect]: "treu" is not a boolean: write "true" or "false"; the paths of the Ingress answer 503`}},
	{name: "ssl-passthrough", give: map[string]string{nginx + "ssl-passthrough": "true"}, lines: plain},
	{name: "no ssl-passthrough", give: map[string]string{tech + "ssl-passthrough": "false"}, lines: plain},
	{name: "ssl-passthrough past a list", give: map[string]string{tech + "ssl-passthrough": "true", nginx + "whitelist-source-range": "10.0.0.0/8"}, lines: []string{"acl allowed"},
		refused: []string{"metadata.annotations: ssl-passthrough would go past the allow and deny lists, the users or the rates that other annotations name: TLS ends at HAProxy"}},
	{name: "rewrite-target", give: map[string]string{nginx + "rewrite-target": "/new"}, lines: []string{"http-request set-path /new"}},
	{name: "rewrite with groups", path: "/a(/|$)(.*)", give: map[string]string{nginx + "rewrite-target": "/b/$2"}, lines: []string{`http-request replace-path '(*LIMIT_MATCH=500000)^/a(/|$)(.*)' '/b/\2'`}},
	{name: "rewrite with too few groups", path: "/a/.*", give: map[string]string{nginx + "rewrite-target": "/b/$2"}, lines: plain, refused: []string{"it has 0 groups, and rewrite-target names group 2"}},
	{name: "rewrite of a variable", give: map[string]string{nginx + "rewrite-target": "/$uri"}, lines: plain, refused: []string{`rewrite-target]: "/$uri" has a '$' that is not in front of the number of a group`}},
	{name: "rewrite of a percent sign", path: "/(.*)", give: map[string]string{nginx + "rewrite-target": "/%[env(HOME)]$1"}, lines: []string{`http-request replace-path '(*LIMIT_MATCH=500000)^/(.*)' '/%%[env(HOME)]\1'`}},
	{name: "use-regex", path: "/[a-c]+/x", give: map[string]string{nginx + "use-regex": "true"}, lines: plain},
	{name: "regex that takes seconds", path: "/(a+)+b", give: map[string]string{nginx + "use-regex": "true"}, refused: []string{"spec.rules[0].http.paths[0].path: pattern \"/(a+)+b\" has a repeat, a ? or a | inside a repeat"}},
	{name: "path-rewrite", give: map[string]string{tech + "path-rewrite": `/api/(.*) /\1`}, lines: []string{`http-request replace-path '(*LIMIT_MATCH=500000)/api/(.*)' '/\1'`}},
	{name: "path-rewrite to one path", give: map[string]string{tech + "path-rewrite": "/one"}, lines: []string{"http-request set-path /one"}},
	{name: "app-root", give: map[string]string{nginx + "app-root": "/app"}, lines: []string{"http-request redirect code 302 location /app if { path / }"}},
	{name: "permanent-redirect", give: map[string]string{nginx + "permanent-redirect": "https://new.test/a?b=100%", nginx + "permanent-redirect-code": "308"}, lines: []string{"http-request redirect code 308 location https://new.test/a?b=100%%"}},
	{name: "temporal-redirect", give: map[string]string{nginx + "temporal-redirect": "https://new.test/", nginx + "temporal-redirect-code": "307"}, lines: []string{"http-request redirect code 307 location https://new.test/"}},
	{name: "request-redirect", give: map[string]string{tech + "request-redirect": "new.test:8080", tech + "request-redirect-code": "301"}, lines: []string{"http-request redirect code 301 location %[req.fhdr(x-forwarded-proto)]://new.test:8080%[pathq]"}},
	{name: "redirect to a script", give: map[string]string{nginx + "permanent-redirect": "javascript:alert(1)"}, lines: plain, refused: []string{"is not a URL: write one such as https://example.com/new"}},
	{name: "timeouts of nginx", give: map[string]string{nginx + "proxy-connect-timeout": "3", nginx + "proxy-read-timeout": "3000", nginx + "proxy-send-timeout": "9"}, lines: []string{"timeout connect 3s", "timeout server 3000s"}},
	{name: "proxy-send-timeout", give: map[string]string{nginx + "proxy-send-timeout": "9"}, lines: []string{"timeout server 9s"}},
	{name: "timeouts of HAProxy", give: map[string]string{tech + "timeout-connect": "300", tech + "timeout-server": "20s", tech + "timeout-queue": "1m", tech + "timeout-tunnel": "30m", tech + "timeout-check": "1s"},
		lines: []string{"timeout connect 300ms", "timeout server 20s", "timeout queue 1m", "timeout tunnel 30m", "timeout check 1s"}},
	{name: "no timeout", give: map[string]string{nginx + "proxy-read-timeout": "0"}, lines: plain, refused: []string{`"0" is not a time from 1 ms to 20 days`}},
	{name: "proxy-body-size", give: map[string]string{nginx + "proxy-body-size": "8m"}, lines: []string{"http-request deny deny_status 413 if { req.body_size gt 8388608 }"}},
	{name: "wrong proxy-body-size", give: map[string]string{nginx + "proxy-body-size": "8 megabytes"}, lines: []string{closedLine}, refused: []string{`"8 megabytes" is not a size up to 1024g`, "503"}},
	{name: "satisfy all", give: map[string]string{nginx + "satisfy": "all"}, lines: plain},
	{name: "a timeout that is too long", give: map[string]string{tech + "timeout-server": "20d"}, lines: []string{"timeout server 1h"}, refused: []string{"timeout-server]: \"20d\" is longer than the 1h that -longest-timeout allows"}},
	{name: "satisfy any", give: map[string]string{nginx + "satisfy": "any"}, lines: []string{closedLine}, refused: []string{"both the lists and auth count here"}},
	{name: "off", give: map[string]string{nginx + "enable-modsecurity": "false", nginx + "enable-global-auth": "false", nginx + "auth-tls-verify-client": "off", nginx + "server-snippet": "off"}, lines: plain},
	{name: "forwarded-for", give: map[string]string{tech + "forwarded-for": "true"}, lines: plain},
	{name: "no forwarded-for", give: map[string]string{tech + "forwarded-for": "false"}, lines: plain, refused: []string{"X-Forwarded-For is always set"}},
	{name: "proxy-body-size without a bound", give: map[string]string{nginx + "proxy-body-size": "0"}, lines: plain},
	{name: "allow list", give: map[string]string{nginx + "whitelist-source-range": "10.1.2.3/8, 2001:db8::/32,192.0.2.1"}, lines: []string{"http-request set-var(txn.client) src", "acl allowed var(txn.client) -m ip 10.0.0.0/8", "acl allowed var(txn.client) -m ip 192.0.2.1/32", "acl allowed var(txn.client) -m ip 2001:db8::/32", "http-request deny deny_status 403 unless allowed"}},
	{name: "wrong allow list", give: map[string]string{tech + "allow-list": "10.0.0.0/33"}, lines: []string{closedLine}, refused: []string{`allow-list]: "10.0.0.0/33" is not an address or a range`, "503"}},
	{name: "deny list", give: map[string]string{tech + "deny-list": "192.0.2.0/24"}, lines: []string{"acl denied var(txn.client) -m ip 192.0.2.0/24", "http-request deny deny_status 403 if denied"}},
	{name: "basic auth", give: map[string]string{nginx + "auth-type": "basic", nginx + "auth-secret": "users", nginx + "auth-realm": `the "shop"`}, lines: []string{"{ http_auth(ns_users) }", `http-request auth realm the\ \\\"shop\\\" unless { var(txn.login) -m found }`}},
	{name: "basic auth by keys", give: map[string]string{nginx + "auth-type": "basic", nginx + "auth-secret": "ns/keys", nginx + "auth-secret-type": "auth-map"}, lines: []string{"{ http_auth(ns_keys_map) }", `http-request auth realm Authentication\ Required unless { var(txn.login) -m found }`}},
	{name: "auth of another namespace", give: map[string]string{nginx + "auth-type": "basic", nginx + "auth-secret": "other/users"}, lines: []string{closedLine}, refused: []string{"auth-secret]: Secret other/users is of another namespace"}},
	{name: "auth without a Secret", give: map[string]string{tech + "auth-type": "basic-auth", tech + "auth-secret": "none"}, lines: []string{closedLine}, refused: []string{"metadata.annotations[haproxy.org/auth-secret]: there is no Secret ns/none"}},
	{name: "auth with a hash that HAProxy does not know", give: map[string]string{nginx + "auth-type": "basic", nginx + "auth-secret": "apache"}, lines: []string{closedLine}, refused: []string{"Secret ns/apache: line 1 of its key auth: a hash of Apache's own MD5 ($apr1$), which HAProxy does not know"}},
	{name: "digest", give: map[string]string{nginx + "auth-type": "digest", nginx + "auth-secret": "users"}, lines: []string{closedLine}, refused: []string{`"digest" is not known`}},
	{name: "CORS", give: map[string]string{nginx + "enable-cors": "true"}, lines: []string{"http-request set-var(txn.origin) str(*)", "http-after-response set-header Access-Control-Allow-Origin %[var(txn.origin)] if shared", "http-request return status 204 if { method OPTIONS }"}},
	{name: "all of CORS", give: map[string]string{tech + "cors-enable": "true", tech + "cors-allow-origin": "https://a.test, https://*.b.test:8443", tech + "cors-allow-methods": "GET,PUT", tech + "cors-allow-headers": "X-A", tech + "cors-expose-headers": "X-B", tech + "cors-max-age": "1m", tech + "cors-allow-credentials": "true"},
		lines: []string{"acl origin req.fhdr(origin) -m str -i https://a.test", `acl origin req.fhdr(origin) -m reg -i '(*LIMIT_MATCH=500000)^https://[A-Za-z0-9-]+\.b\.test:8443$'`, "Vary Origin", `Access-Control-Allow-Methods GET,\ PUT if`, "Access-Control-Allow-Headers X-A if", "Max-Age 60 if", "Expose-Headers X-B if", "Credentials true if"}},
	{name: "CORS for a pattern", give: map[string]string{nginx + "enable-cors": "true", nginx + "cors-allow-origin": "https://a.test|.*"}, lines: plain, refused: []string{"is not an origin"}},
	{name: "limit-rps", give: map[string]string{nginx + "limit-rps": "10", nginx + "limit-whitelist": "10.0.0.0/8"}, lines: []string{"acl exempt var(txn.client) -m ip 10.0.0.0/8", "stick-table type ipv6 size 10240 expire 10m store conn_cur,gpc0_rate(1m),http_req_rate(5s)", "http-request deny deny_status 503 if !exempt { sc_http_req_rate(0) gt 50 }"}},
	{name: "limit-burst-multiplier", give: map[string]string{nginx + "limit-rps": "10", nginx + "limit-burst-multiplier": "2", nginx + "limit-rpm": "100", nginx + "limit-connections": "3"},
		lines: []string{"http_req_rate(2s)", "sc_http_req_rate(0) gt 20", "sc-inc-gpc0(0)", "sc_gpc0_rate(0) gt 100", "sc_conn_cur(0) gt 3"}},
	{name: "rate-limit", give: map[string]string{tech + "rate-limit-requests": "7", tech + "rate-limit-period": "1m", tech + "rate-limit-size": "10k", tech + "rate-limit-status-code": "429"}, lines: []string{"size 10240", "http_req_rate(1m)", "deny_status 429 if !exempt { sc_http_req_rate(0) gt 7 }"}},
	{name: "wrong rate", give: map[string]string{nginx + "limit-rps": "many"}, lines: []string{closedLine}, refused: []string{`"many" is not a whole number from 0 to 1000000`}},
	{name: "backend-protocol", give: map[string]string{nginx + "backend-protocol": "HTTPS"}, lines: []string{"default-server ssl verify none"}},
	{name: "gRPC", give: map[string]string{nginx + "backend-protocol": "GRPC"}, lines: []string{"default-server proto h2"}},
	{name: "gRPC with TLS", give: map[string]string{nginx + "backend-protocol": "grpcs"}, lines: []string{"default-server ssl verify none", "default-server alpn h2"}},
	{name: "server-proto", give: map[string]string{tech + "server-proto": "h2", tech + "server-ssl": "true"}, lines: []string{"default-server ssl verify none", "default-server alpn h2"}},
	{name: "verified servers", give: map[string]string{nginx + "backend-protocol": "HTTPS", nginx + "proxy-ssl-secret": "ns/ca", nginx + "proxy-ssl-verify": "on", nginx + "proxy-ssl-name": "web.internal"}, lines: []string{"default-server ssl verify required ca-file ", "/ca_ns_ca.pem", "default-server sni str(web.internal)", "default-server verifyhost web.internal"}},
	{name: "verified servers without a CA", give: map[string]string{nginx + "backend-protocol": "HTTPS", nginx + "proxy-ssl-verify": "on"}, lines: []string{closedLine}, refused: []string{"there is no proxy-ssl-secret"}},
	{name: "server-ca as haproxytech has it", give: map[string]string{tech + "server-ca": "ca-tls"}, lines: []string{"verify required ca-file", "/ca_ns_ca-tls.pem"}},
	{name: "proxy-ssl-secret without ca.crt", give: map[string]string{nginx + "proxy-ssl-secret": "ca-tls", nginx + "proxy-ssl-verify": "on"}, lines: []string{closedLine}, refused: []string{"Secret ns/ca-tls: key ca.crt: it has no certificate in PEM"}},
	{name: "server-ca", give: map[string]string{tech + "server-ca": "ca", tech + "server-sni": "web.internal"}, lines: []string{"verify required ca-file"}},
	{name: "servers", give: map[string]string{tech + "pod-maxconn": "9", tech + "check": "true", tech + "check-http": "/health", tech + "check-interval": "10s", tech + "send-proxy-protocol": "proxy-v2"}, lines: []string{"option httpchk GET /health", "default-server maxconn 9", "default-server check inter 10s", "default-server send-proxy-v2"}},
	{name: "affinity", give: map[string]string{nginx + "affinity": "cookie", nginx + "session-cookie-name": "stay", nginx + "session-cookie-max-age": "600", nginx + "session-cookie-samesite": "Lax", nginx + "session-cookie-secure": "true", nginx + "session-cookie-domain": "x.test"}, lines: []string{"cookie stay insert indirect nocache httponly secure domain x.test attr SameSite=Lax attr Max-Age=600", "server s1 192.0.2.1:8080 cookie s1"}},
	{name: "path of a cookie", give: map[string]string{nginx + "affinity": "cookie", nginx + "session-cookie-path": "/"}, lines: []string{"cookie INGRESSCOOKIE insert"}},
	{name: "another path of a cookie", give: map[string]string{nginx + "affinity": "cookie", nginx + "session-cookie-path": "/shop"}, lines: []string{"cookie INGRESSCOOKIE insert"}, refused: []string{"the path of HAProxy's cookie is /"}},
	{name: "checks without a pause", give: map[string]string{tech + "check": "true", tech + "check-interval": "5ms"}, lines: []string{"default-server check"}, refused: []string{`"5ms" is not a time from 1s on`}},
	{name: "cookie-persistence", give: map[string]string{tech + "cookie-persistence": "stay"}, lines: []string{"cookie stay insert indirect nocache httponly", "server s1 192.0.2.1:8080 cookie s1"}},
	{name: "load-balance", give: map[string]string{tech + "load-balance": "leastconn"}, lines: []string{"balance leastconn"}},
	{name: "load-balance by a header", give: map[string]string{tech + "load-balance": "hdr(X-User)"}, lines: []string{"balance hdr(X-User)", "hash-type consistent"}},
	{name: "load-balance of nginx", give: map[string]string{nginx + "load-balance": "ewma"}, lines: plain, refused: []string{`"ewma" is not known`}},
	{name: "upstream-hash-by", give: map[string]string{nginx + "upstream-hash-by": "$request_uri"}, lines: []string{"balance uri", "hash-type consistent"}},
	{name: "upstream-hash-by a parameter", give: map[string]string{nginx + "upstream-hash-by": "${arg_user}"}, lines: []string{"balance url_param user"}},
	{name: "headers", give: map[string]string{tech + "request-set-header": "X-A 100% \"b\"\nX-C: d", tech + "response-set-header": "X-D e"}, lines: []string{`http-request set-header X-A 100%%\ \"b\"`, "http-request set-header X-C d", "http-response set-header X-D e"}},
	{name: "header of the connection", give: map[string]string{tech + "request-set-header": "Transfer-Encoding chunked"}, lines: plain, refused: []string{"Transfer-Encoding is not set by an annotation"}},
	{name: "hosts and prefixes", give: map[string]string{nginx + "upstream-vhost": "inner.test", nginx + "x-forwarded-prefix": "/shop"}, lines: []string{"http-request set-header X-Forwarded-Prefix /shop", "http-request set-header Host inner.test"}},
	{name: "snippet that denies", give: map[string]string{nginx + "configuration-snippet": "deny all;"}, lines: []string{closedLine}, refused: []string{"lines of a configuration are not taken from an annotation: write a template", "503"}},
	{name: "snippet", give: map[string]string{nginx + "configuration-snippet": "add_header X-A b;"}, lines: plain, refused: []string{"lines of a configuration are not taken from an annotation: write a template"}},
	{name: "mirror", give: map[string]string{nginx + "mirror-target": "https://x"}, lines: plain, refused: []string{"HAProxy mirrors requests only through an agent"}},
	{name: "auth by another service", give: map[string]string{nginx + "auth-url": "https://auth.test"}, lines: []string{closedLine}, refused: []string{"auth-url]", "503"}},
	{name: "client certificates", give: map[string]string{nginx + "auth-tls-secret": "ns/ca"}, lines: []string{closedLine}, refused: []string{"bind line", "503"}},
	{name: "misspelled", give: map[string]string{nginx + "rewrite-traget": "/"}, lines: plain, refused: []string{"it is not known, and does nothing: did you mean nginx.ingress.kubernetes.io/rewrite-target?"}},
	{name: "both prefixes", give: map[string]string{nginx + "proxy-read-timeout": "5", tech + "timeout-server": "6s"}, lines: []string{"timeout server 6s"}, refused: []string{"haproxy.org/timeout-server sets the same option, and that one counts"}},
	{name: "of the Service", service: map[string]string{tech + "load-balance": "leastconn"}, lines: []string{"balance leastconn"}},
	{name: "of the Service, over that of the Ingress", give: map[string]string{tech + "timeout-server": "9s", tech + "timeout-connect": "9s"}, service: map[string]string{tech + "timeout-server": "8s"}, lines: []string{"timeout connect 9s", "timeout server 8s"}},
	{name: "of the wrong kind", service: map[string]string{tech + "allow-list": "10.0.0.0/8"}, lines: plain, refused: []string{"it belongs to an Ingress, and does nothing in a Service: move it"}},
	{name: "appProtocol", service: map[string]string{"appProtocol": "kubernetes.io/h2c"}, lines: []string{"default-server proto h2"}},
}

// effectsWorld has an Ingress and a Service for each effect.
func effectsWorld(t *testing.T) *world {
	w := newWorld()
	ca, _ := certificate(t)
	for name, data := range map[string]map[string]string{
		"users": {"auth": "a:" + userHash + "\n# more\n\nb:" + userHash + "\n"}, "keys": {"a": userHash}, "apache": {"auth": "a:$apr1$x$JnfUMaRMSDySeWsNAWvmB1"}, "ca": {"ca.crt": string(ca)}, "ca-tls": {"tls.crt": string(ca)},
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{}}
		for key, text := range data {
			s.Data[key] = []byte(text)
		}
		w.secrets["ns/"+name] = s
	}
	for i, e := range effects {
		name, host := fmt.Sprintf("e%d", i), fmt.Sprintf("e%d.test", i)
		kind, at := networkingv1.PathTypeImplementationSpecific, "/"
		if e.path != "" {
			at = e.path
		}
		ing := ingress(name, rule(host, path(kind, at, name)))
		if e.path != "/no-tls" {
			ing = withTLS(ing, host, "none")
		}
		ing.Annotations = e.give
		w.ingresses = append(w.ingresses, ing)
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: e.service}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
		if p, ok := e.service["appProtocol"]; ok {
			svc.Spec.Ports[0].AppProtocol = &p
		}
		w.services["ns/"+name], w.slices["ns/"+name] = svc, []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.1")}
	}
	return w
}

// TestAnnotations: each annotation becomes its lines, and a wrong value is refused by name.
func TestAnnotations(t *testing.T) {
	layout := dataplane.Layout{Base: t.TempDir()}
	routes := effectsWorld(t).build()
	cfg := renderRoutes(t, layout, routes)
	backends := map[string]string{} // by Service
	for _, section := range strings.Split(cfg.Main(), "\n\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(section), "backend ns_"); ok {
			name, lines, _ := strings.Cut(rest, "\n")
			backends[strings.Split(name, "_")[0]] += lines
		}
	}
	seen := map[string]bool{}
	for i, e := range effects {
		t.Run(e.name, func(t *testing.T) {
			name := fmt.Sprintf("e%d", i)
			text := backends[name]
			rest := text
			for _, line := range e.lines {
				_, after, found := strings.Cut(rest, line)
				require.True(t, found, "%q is missing, or in another order:\n%s", line, text)
				rest = after
			}
			if len(e.lines) == 1 && e.lines[0] == plain[0] {
				require.Equal(t, "    "+strings.Join(plain, "\n    "), strings.TrimRight(text, "\n"), "no options")
			}
			var said []string
			for _, r := range routes.Refused {
				if (r.Resource == "Ingress ns/"+name || r.Resource == "Service ns/"+name) && !strings.Contains(r.Reason, "there is no Secret ns/none of type kubernetes.io/tls") {
					said = append(said, r.Field+": "+r.Reason)
				}
			}
			if len(e.refused) == 0 {
				require.Empty(t, said)
				for name := range e.give {
					seen[name] = true
				}
			}
			for _, why := range e.refused {
				require.Contains(t, strings.Join(said, "\n"), why)
			}
			require.NotContains(t, strings.Join(said, "\n"), "$apr1$x")
		})
	}
	for _, row := range annotation.Table() {
		has := row.Refused != "" || row.Ignored != "" || strings.HasPrefix(row.NGINX, "canary")
		for _, name := range row.Names() {
			has = has || seen[name]
		}
		require.True(t, has, "no case shows what %v becomes", row.Names())
	}
	t.Run("HAProxy takes all", func(t *testing.T) { acceptable(t, layout, cfg) })
}

// TestLargestValues: HAProxy takes the largest value that is taken of each annotation.
func TestLargestValues(t *testing.T) {
	repeat := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, "\n")
	}
	text := strings.Repeat(`" `, annotation.MaxText/2-1) + `"x`
	long := "/" + strings.Repeat("%", annotation.MaxText-1)
	all := map[string]string{
		nginx + "whitelist-source-range": repeat(annotation.MaxCIDRs, "2001:db8:1234:5678:9abc:def0:1234:%x"), nginx + "denylist-source-range": repeat(annotation.MaxCIDRs, "2001:db8:%x::/48"),
		nginx + "auth-type": "basic", nginx + "auth-secret": "users", nginx + "auth-realm": text,
		nginx + "enable-cors": "true", nginx + "cors-allow-origin": repeat(annotation.MaxOrigins, "https://*.o%d.test"), nginx + "cors-allow-headers": repeat(annotation.MaxHeaders, strings.Repeat("h", 90)+"%d"), nginx + "cors-max-age": "10000000",
		nginx + "limit-rpm": "1000000", nginx + "limit-connections": "1000000", tech + "rate-limit-requests": "1000000", tech + "rate-limit-period": "20d", tech + "rate-limit-size": "1m",
		nginx + "app-root": long, nginx + "x-forwarded-prefix": long, nginx + "rewrite-target": long, nginx + "proxy-body-size": "1024g",
		tech + "timeout-connect": "1h", tech + "timeout-server": "1h", tech + "timeout-queue": "1h", tech + "timeout-tunnel": "1h", tech + "timeout-check": "1h", tech + "check": "true", tech + "check-interval": "20d", tech + "check-http": long,
		tech + "request-set-header": repeat(annotation.MaxHeaders, "X-A%d "+strings.ReplaceAll(text, "%", "%%")), tech + "pod-maxconn": "1000000", nginx + "affinity": "cookie", nginx + "session-cookie-max-age": fmt.Sprint(1 << 30), tech + "load-balance": "hdr(" + strings.Repeat("h", 100) + ")",
	}
	redirect := map[string]string{nginx + "permanent-redirect": "https://x.test/" + strings.Repeat("%41", annotation.MaxText/3-8)}
	pattern := map[string]string{nginx + "use-regex": "true", nginx + "rewrite-target": "/$1" + long[:annotation.MaxText-10]}
	w := effectsWorld(t)
	w.ingresses = nil
	for i, given := range []map[string]string{all, redirect, pattern} {
		at := "/"
		if i == 2 {
			at = "/(a)" + strings.Repeat("%", regex.MaxLength-4)
		}
		ing := ingress(fmt.Sprint("large", i), rule(fmt.Sprintf("l%d.test", i), path(specific, at, fmt.Sprint("e", i))))
		ing.Annotations = given
		w.ingresses = append(w.ingresses, ing)
	}
	c := w.cluster()
	c.Limits = Limits{RateAddressesPerNamespace: 1 << 22, RateAddressesOfAll: 1 << 22}
	routes := Build(c, &Slots{})
	require.Empty(t, allSaid(routes))
	layout := dataplane.Layout{Base: t.TempDir()}
	acceptable(t, layout, renderRoutes(t, layout, routes))
}

// acceptable has HAProxy check a configuration.
func acceptable(t *testing.T, layout dataplane.Layout, cfg *dataplane.Config) {
	t.Helper()
	needHAProxy(t)
	writeConfig(t, layout, cfg)
	out, err := exec.CommandContext(t.Context(), "haproxy", "-c", "-f", layout.ConfigPath()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "[WARNING]")
}

func writeConfig(t *testing.T, layout dataplane.Layout, cfg *dataplane.Config) {
	t.Helper()
	for _, f := range cfg.Files() {
		require.NoError(t, os.MkdirAll(layout.Dir(f.Kind), 0o755))
		require.NoError(t, os.WriteFile(layout.Path(f.Kind, f.Name), f.Content, 0o600))
	}
	require.NoError(t, os.WriteFile(layout.ConfigPath(), []byte(cfg.Main()), 0o600))
}
