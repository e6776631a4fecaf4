package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const passed = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: passed, namespace: evil, annotations: {"ANNOTATION/ssl-passthrough": "VALUE"}}
spec:
  ingressClassName: haptic
  rules: [{host: HOST, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: secure, port: {name: http}}}}]}}]
---
`

// TestPassthrough: connections for the hosts of an Ingress go to its Service with their
// TLS, those for others end here as before, with the address of the client; a reload and
// the end of the annotation change nothing of that.
func TestPassthrough(t *testing.T) {
	t.Parallel()
	pair := selfSigned(t, "passed.test", "*.passed.test")
	host, port := accept(t, func(conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(patience))
		mirror(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}))
	})
	plain, at := accept(t, mirror)
	d := startDemo(t, "-access-log", "http")
	ends := func(name string) string {
		client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: name}}}
		req, err := http.NewRequest(http.MethodGet, "https://"+d.https+"/who", nil)
		require.NoError(t, err)
		req.Host = name
		resp, err := client.Do(req)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.TLS.PeerCertificates[0].Subject.CommonName + " " + strings.Join(headers(string(body))["x-forwarded-for"], ",")
	}
	save := func(annotation, value, host2 string) {
		d.edit("passed.yaml", func(string) string {
			return strings.NewReplacer("ANNOTATION", annotation, "VALUE", value, "HOST", host2).Replace(passed)
		})
	}
	d.edit("secure.yaml", func(string) string {
		s := site("secure", "nobody.passed", port, host)
		return s[strings.Index(s, "---")+4:]
	})
	d.edit("shop-plain.yaml", func(string) string {
		return strings.NewReplacer("evil", "demo", "path: /,", "path: /who,").Replace(site("plain", "shop.demo.test", at, plain))
	})
	d.until(func() bool { return ends("shop.demo.test") == "shop.demo.test 127.0.0.1" })

	save("haproxy.org", "true", "passed.test")
	d.until(func() bool { return ends("passed.test") == "passed.test " })
	require.Equal(t, "shop.demo.test 127.0.0.1", ends("shop.demo.test"), "TLS ends here, and the address of the client is known")
	require.Contains(t, ends("other.test"), "remote error")
	status, _ := d.get("https://"+d.https+"/who", "passed.test")
	require.Equal(t, http.StatusMisdirectedRequest, status, "over a connection for another host")
	status, _ = d.get("http://"+d.http+"/who", "passed.test")
	require.NotEqual(t, http.StatusMisdirectedRequest, status, "without TLS it goes by the rules")
	require.Regexp(t, `^127\.0\.0\.1:\d+ \[\S+\] tls TLS-evil_secure_80/s1 `, d.logged(" tls TLS-evil_secure_80/"))
	require.NotContains(t, d.stdout.String(), " tls tls-ends-here/", "they are logged as requests")

	save("nginx.ingress.kubernetes.io", "true", `"*.passed.test"`)
	d.until(func() bool { return ends("a.passed.test") == "passed.test " })
	require.NotEqual(t, "passed.test ", ends("a.b.passed.test"))
	require.NotEqual(t, "passed.test ", ends("passed.test"))

	save("haproxy.org", "true", "shop.demo.test") // of another namespace
	d.until(func() bool { return !strings.Contains(ends("a.passed.test"), "passed.test ") })
	require.Equal(t, "shop.demo.test 127.0.0.1", ends("shop.demo.test"))
	save("haproxy.org", "perhaps", "passed.test")
	d.until(func() bool {
		return strings.Contains(strings.ReplaceAll(d.stderr.String(), `\"`, `"`), `metadata.annotations[haproxy.org/ssl-passthrough]: "perhaps"`)
	})
	require.Equal(t, "shop.demo.test 127.0.0.1", ends("shop.demo.test"))
}

// TestPassthroughBehindALoadBalancer: the PROXY protocol of a load balancer is read once,
// also where it speaks of a client with an address of a load balancer.
func TestPassthroughBehindALoadBalancer(t *testing.T) {
	t.Parallel()
	plain, at := accept(t, mirror)
	d := startDemo(t, "-accept-proxy", "127.0.0.9/32")
	d.edit("secure.yaml", func(string) string {
		s := site("secure", "nobody.passed", at, plain)
		return s[strings.Index(s, "---")+4:]
	})
	d.edit("passed.yaml", func(string) string {
		return strings.NewReplacer("ANNOTATION", "haproxy.org", "VALUE", "true", "HOST", "passed.test").Replace(passed)
	})
	d.edit("shop-plain.yaml", func(string) string {
		return strings.NewReplacer("evil", "demo", "path: /,", "path: /who,").Replace(site("plain", "shop.demo.test", at, plain))
	})
	d.until(func() bool { return strings.Contains(d.stdout.String(), "frontend tls") })
	dialer := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	for _, client := range []string{"198.51.100.9", "127.0.0.9"} {
		d.until(func() bool {
			conn, err := dialer.Dial("tcp", d.https)
			if err != nil {
				return false // it reloads
			}
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			fmt.Fprintf(conn, "PROXY TCP4 %s 192.0.2.1 1111 443\r\n", client)
			secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: "shop.demo.test"})
			fmt.Fprint(secure, "GET /who HTTP/1.1\r\nHost: shop.demo.test\r\nConnection: close\r\n\r\n")
			text, _ := io.ReadAll(secure)
			return slices.Equal(headers(string(text))["x-forwarded-for"], []string{client})
		})
	}
}

// selfSigned makes a certificate for names.
func selfSigned(t *testing.T, names ...string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestNoPassthrough: with the flag, TLS ends here for all hosts.
func TestNoPassthrough(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-ssl-passthrough=false")
	d.edit("passed.yaml", func(string) string {
		return strings.NewReplacer("ANNOTATION", "haproxy.org", "VALUE", "true", "HOST", "passed.test", "name: secure", "name: x").Replace(passed) +
			site("x", "x.test", d.first(), "127.0.0.22")
	})
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), "Ingress evil/passed") && strings.Contains(d.stderr.String(), "metadata.annotations: ssl-passthrough is not served")
	})
	d.until(func() bool { return d.answers("passed.test", "/") == "127.0.0.22:18080" })
	require.NotContains(t, d.plans(), "frontend tls")
}

// TestPassthroughLeavesConnections: a host that is passed through takes no connections from the
// others, although theirs pass HAProxy twice meanwhile.
func TestPassthroughLeavesConnections(t *testing.T) {
	t.Parallel()
	const most = 40
	d := startDemo(t, "-maxconn", fmt.Sprint(most))
	d.edit("passed.yaml", func(string) string {
		return strings.NewReplacer("ANNOTATION", "haproxy.org", "VALUE", "true", "HOST", "passed.test", "name: secure", "name: x").Replace(passed) +
			site("x", "x.test", "9", "127.0.0.21")
	})
	d.until(func() bool { return strings.Contains(d.plans(), "+ frontend tls") })
	d.until(func() bool {
		status, _ := d.get("https://"+d.https+"/", "shop.demo.test")
		return status == http.StatusOK
	})
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, ServerName: "shop.demo.test"}}
	for range most {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		conn, err := dialer.DialContext(ctx, "tcp", d.https)
		cancel()
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = fmt.Fprint(conn, "GET /cart HTTP/1.1\r\nHost: shop.demo.test\r\n\r\n")
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.NoError(t, err)
	}
}
