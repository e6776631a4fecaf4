package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// userSecret has the user "ann" with the password "secret".
const userSecret = `apiVersion: v1
kind: Secret
metadata: {name: users, namespace: evil}
type: Opaque
stringData: {auth: "ann:$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1"}
`

// annotated is a site whose Ingress has annotations: lines of YAML. Its host is its name
// behind ".test".
func annotated(name, host, port, path string, annotations ...string) string {
	text := strings.Replace(site(name, name+".test", port, host), "path: /,", "path: \""+path+"\",", 1)
	text = strings.Replace(text, "pathType: Prefix", "pathType: ImplementationSpecific", 1)
	return strings.Replace(text, "namespace: evil}\nspec:\n  ingressClassName", "namespace: evil, annotations: {\n    "+strings.Join(annotations, ",\n    ")+"}}\nspec:\n  ingressClassName", 1)
}

// ask sends a request, and returns the answer with its body.
func (d *demo) ask(method, host, path, body string, header ...string) (*http.Response, string) {
	d.tb.Helper()
	req, err := http.NewRequest(method, "http://"+d.http+path, strings.NewReader(body))
	require.NoError(d.tb, err)
	req.Host = host
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := d.client.Transport.RoundTrip(req) // follows no redirect
	require.NoError(d.tb, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(d.tb, err)
	return resp, string(text)
}

// listener is one at an address of the demo's backends.
func listener(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.22:0")
	require.NoError(t, err)
	return l
}

// TestAnnotationsTakeEffect: one request shows each, through a real HAProxy.
func TestAnnotationsTakeEffect(t *testing.T) {
	t.Parallel()
	host, port := accept(t, mirror)
	silent, silentPort := accept(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	other, otherPort := accept(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		_, _ = c.Read(buf)
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\ncanary")
	})
	h2 := &httptest.Server{Listener: listener(t), Config: &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })}}
	h2.Config.Protocols.SetUnencryptedHTTP2(true)
	h2.Start()
	t.Cleanup(h2.Close)
	secure := &httptest.Server{Listener: listener(t), EnableHTTP2: true, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, " ", r.TLS.ServerName) })}}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	h2Host, h2Port, _ := net.SplitHostPort(h2.Listener.Addr().String())
	secureHost, securePort, _ := net.SplitHostPort(secure.Listener.Addr().String())

	const nginx, tech = "nginx.ingress.kubernetes.io/", "haproxy.org/"
	d := startDemo(t)
	here := func(name, path string, annotations ...string) string {
		return annotated(name, host, port, path, annotations...)
	}
	canary := strings.ReplaceAll(annotated("other", other, otherPort, "/", nginx+`canary: "true"`, nginx+"canary-by-header: X-Canary", nginx+"canary-by-cookie: canary"), "other.test", "split.test")
	all := []string{
		userSecret,
		"apiVersion: v1\nkind: Secret\nmetadata: {name: ca, namespace: evil}\ntype: Opaque\nstringData: {ca.crt: \"" + strings.ReplaceAll(ca, "\n", `\n`) + "\"}\n",
		here("tls", "/", nginx+`force-ssl-redirect: "true"`),
		here("rewrite", "/", nginx+"rewrite-target: /new"),
		here("groups", "/a(/|$)(.*)", nginx+"rewrite-target: /b/$2"),
		here("allow", "/", nginx+"whitelist-source-range: 127.0.0.0/8"),
		here("allow-other", "/", tech+"allow-list: 10.0.0.0/8"),
		here("allow-wrong", "/", tech+"allow-list: ten"),
		here("deny", "/", nginx+"denylist-source-range: 127.0.0.1"),
		here("auth", "/", nginx+"auth-type: basic", nginx+"auth-secret: users", nginx+"auth-realm: shop"),
		here("auth-wrong", "/", nginx+"auth-type: basic", nginx+"auth-secret: nobody"),
		here("cors", "/", nginx+`enable-cors: "true"`, nginx+`cors-allow-origin: "https://a.test, https://*.b.test"`),
		here("rate", "/", tech+`rate-limit-requests: "2"`, tech+"rate-limit-period: 1m", tech+`rate-limit-status-code: "429"`),
		here("root", "/", nginx+"app-root: /app"),
		here("permanent", "/", nginx+"permanent-redirect: https://new.test/x"),
		here("temporal", "/", nginx+"temporal-redirect: https://new.test/y"),
		here("to-host", "/", tech+"request-redirect: new.test", tech+`request-redirect-code: "303"`),
		here("body", "/", nginx+`proxy-body-size: "10"`),
		here("headers", "/", tech+`request-set-header: "X-A 100% b"`, tech+`response-set-header: "X-B c"`, nginx+"upstream-vhost: inner.test", nginx+"x-forwarded-prefix: /shop"),
		annotated("slow", silent, silentPort, "/", tech+"timeout-server: 50ms"),
		annotated("h2", h2Host, h2Port, "/", nginx+"backend-protocol: GRPC"),
		annotated("https", secureHost, securePort, "/", nginx+"backend-protocol: HTTPS"),
		annotated("verified", secureHost, securePort, "/", nginx+"backend-protocol: GRPCS", nginx+"proxy-ssl-secret: evil/ca", nginx+`proxy-ssl-verify: "on"`, nginx+"proxy-ssl-name: example.com"),
		annotated("not-verified", secureHost, securePort, "/", nginx+"backend-protocol: HTTPS", nginx+"proxy-ssl-secret: evil/ca", nginx+`proxy-ssl-verify: "on"`, nginx+"proxy-ssl-name: other.test"),
		here("sticky", "/", nginx+"affinity: cookie", nginx+"session-cookie-name: stay"),
		here("hash", "/", nginx+"upstream-hash-by: $request_uri"),
		here("proxy", "/", tech+"send-proxy-protocol: proxy"),
		here("pattern", "/[0-9]+$", nginx+`use-regex: "true"`),
		here("split", "/"), canary,
		here("snippet", "/", nginx+"configuration-snippet: deny all;"),
	}
	d.edit("annotated.yaml", func(string) string { return strings.Join(all, "---\n") })
	d.publish(site("last", "last.test", port, host), "last.test", http.StatusOK)
	status := func(name string) int {
		resp, _ := d.ask("GET", name+".test", "/", "")
		return resp.StatusCode
	}
	for _, text := range all[2:] { // Secrets, Services and endpoints may come one by one
		name, _, _ := strings.Cut(strings.Split(text, "metadata: {name: ")[1], ",")
		want := map[string]int{"groups": 404, "pattern": 404, "other": 404, "slow": 504, "allow-wrong": 503, "auth-wrong": 503, "not-verified": 503, "snippet": 503}[name]
		d.until(func() bool { is := status(name); return is == want || want == 0 && is != 404 && is != 503 })
	}
	for name, want := range map[string]int{"allow": 200, "allow-other": 403, "allow-wrong": 503, "deny": 403, "auth": 401, "auth-wrong": 503, "slow": 504, "not-verified": 503, "snippet": 503, "hash": 200} {
		require.Equal(t, want, status(name), name)
	}
	for name, want := range map[string][2]string{
		"tls": {"308", "https://tls.test/p?q=1"}, "root": {"302", "/app"}, "permanent": {"301", "https://new.test/x"}, "temporal": {"302", "https://new.test/y"}, "to-host": {"303", "http://new.test/p?q=1"},
	} {
		path := "/p?q=1"
		if name == "root" {
			path = "/"
		}
		resp, _ := d.ask("GET", name+".test", path, "")
		require.Equal(t, want, [2]string{fmt.Sprint(resp.StatusCode), resp.Header.Get("Location")}, name)
	}
	for name, want := range map[string][2]string{"rewrite": {"/old?q=1", "GET /new?q=1 HTTP/1.1"}, "groups": {"/a/c/d?q=1", "GET /b/c/d?q=1 HTTP/1.1"}, "pattern": {"/123", "GET /123 "}, "proxy": {"/", "PROXY TCP4 127.0.0.1 "}} {
		_, body := d.ask("GET", name+".test", want[0], "")
		require.Contains(t, body, want[1], name)
	}
	resp, _ := d.ask("GET", "pattern.test", "/12a", "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)

	resp, _ = d.ask("GET", "auth.test", "/", "", "Authorization", "Basic YW5uOnNlY3JldA==")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	resp, _ = d.ask("GET", "auth.test", "/", "", "Authorization", "Basic YW5uOm90aGVy")
	require.Equal(t, []any{http.StatusUnauthorized, `Basic realm="shop"`}, []any{resp.StatusCode, resp.Header.Get("Www-Authenticate")})

	for origin, want := range map[string]string{"https://a.test": "https://a.test", "https://x.b.test": "https://x.b.test", "https://evil.test": "", "https://b.test.evil.test": ""} {
		resp, _ = d.ask("OPTIONS", "cors.test", "/", "", "Origin", origin, "Access-Control-Request-Method", "PUT")
		require.Equal(t, want, resp.Header.Get("Access-Control-Allow-Origin"), origin)
		if want != "" {
			require.Equal(t, http.StatusNoContent, resp.StatusCode)
			require.Contains(t, resp.Header.Get("Access-Control-Allow-Methods"), "PUT")
		}
	}
	d.until(func() bool { return status("rate") == http.StatusTooManyRequests })

	resp, _ = d.ask("POST", "body.test", "/", "more than ten")
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	resp, body := d.ask("GET", "headers.test", "/", "")
	got := headers(body)
	require.Equal(t, []string{"100% b", "inner.test", "/shop", "c"}, []string{got["x-a"][0], got["host"][0], got["x-forwarded-prefix"][0], resp.Header.Get("X-B")}, body)

	for name, want := range map[string]string{"h2": "HTTP/2.0", "https": "HTTP/1.1 ", "verified": "HTTP/2.0 example.com"} {
		_, body = d.ask("GET", name+".test", "/", "")
		require.Equal(t, want, body, name)
	}
	resp, _ = d.ask("GET", "sticky.test", "/", "")
	require.Equal(t, "stay=s1; path=/; HttpOnly", resp.Header.Get("Set-Cookie"))

	for want, header := range map[string][]string{"canary": {"X-Canary", "always"}, "GET /dump": nil, "GET /": {"X-Canary", "never"}, "canar": {"Cookie", "canary=always"}} {
		_, body = d.ask("GET", "split.test", "/dump", "", header...)
		require.Contains(t, body, want, header)
	}
	// All of them by weight, without another backend.
	d.edit("annotated.yaml", func(s string) string {
		return strings.Replace(s, "canary-by-header: X-Canary", `canary-weight: "100"`, 1)
	})
	d.until(func() bool { _, body := d.ask("GET", "split.test", "/", ""); return body == "canary" })

	log := d.stderr.String()
	require.Contains(t, log, "metadata.annotations[nginx.ingress.kubernetes.io/configuration-snippet]: lines of a configuration are not taken")
	require.NotContains(t, log, "$6$saltsalt")
}

// TestAnnotationsBehindAProxy: the address and the TLS of a client are those that a proxy
// says which -trust-proxy names, and nobody else's word counts.
func TestAnnotationsBehindAProxy(t *testing.T) {
	t.Parallel()
	host, port := accept(t, mirror)
	const nginx = "nginx.ingress.kubernetes.io/"
	for name, c := range map[string]struct {
		flags []string
		want  [4]int // of the list: by a client of it, by one of it that another proxy names, by another client, of the redirect: by TLS
	}{
		"trusted":     {[]string{"-trust-proxy", "127.0.0.1/32"}, [4]int{200, 403, 403, 200}},
		"not trusted": {nil, [4]int{403, 403, 403, 308}},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDemo(t, c.flags...)
			d.edit("annotated.yaml", func(string) string {
				return annotated("allow", host, port, "/", nginx+"whitelist-source-range: 10.0.0.0/8") + "---\n" + annotated("tls", host, port, "/", nginx+`force-ssl-redirect: "true"`)
			})
			d.publish(site("last", "last.test", port, host), "last.test", http.StatusOK)
			status := func(host string, header ...string) int {
				resp, _ := d.ask("GET", host, "/", "", header...)
				return resp.StatusCode
			}
			d.until(func() bool {
				return status("allow.test") == http.StatusForbidden && status("tls.test") == http.StatusPermanentRedirect
			})
			for i, header := range [][]string{{"X-Forwarded-For", "10.1.1.1"}, {"X-Forwarded-For", "10.1.1.1, 192.0.2.1"}, {"X-Forwarded-For", "192.0.2.1"}} {
				d.until(func() bool { s := status("allow.test", header...); return s != http.StatusServiceUnavailable })
				require.Equal(t, c.want[i], status("allow.test", header...), header)
			}
			d.until(func() bool { return status("tls.test", "X-Forwarded-Proto", "https") == c.want[3] })
		})
	}
}
