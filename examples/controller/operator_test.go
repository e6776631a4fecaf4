package main

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDefaultCertificate: it is for server names without one, in place of a refusal, and
// not for those that have one.
func TestDefaultCertificate(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-default-certificate", "edge/own")
	served := func(name string) string {
		conn, err := tls.Dial("tcp", d.https, &tls.Config{InsecureSkipVerify: true, ServerName: name})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	require.Contains(t, served("nobodys.test"), "remote error", "there is no such Secret yet")
	require.Contains(t, d.stderr.String(), "Secret edge/own: -default-certificate names it, and there is none of type kubernetes.io/tls")

	text, err := os.ReadFile("demo/tls.yaml")
	require.NoError(t, err)
	d.edit("edge.yaml", func(string) string {
		return strings.NewReplacer("name: shop-tls", "name: own", "namespace: demo", "namespace: edge").Replace(string(text))
	})
	d.until(func() bool { return served("nobodys.test") == "shop.demo.test" })
	require.Equal(t, "shop.demo.test", served(""), "without a server name, too")
	require.Equal(t, "shop.demo.test", served("shop.demo.test"))
	status, _ := d.get("https://"+d.https+"/cart", "shop.demo.test")
	require.Equal(t, http.StatusOK, status)
}

// TestCiphers: clients with TLS 1.2 keep what they say secret from those who get the key
// later, and none without authentication of what is sent.
func TestCiphers(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	for suite, want := range map[uint16]bool{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: true, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: false} {
		conn, err := tls.Dial("tcp", d.https, &tls.Config{InsecureSkipVerify: true, ServerName: "shop.demo.test", MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}})
		require.Equal(t, want, err == nil, tls.CipherSuiteName(suite))
		if err == nil {
			conn.Close()
		}
	}
}

// TestDefaultBackend: it has the requests without a route, also for hosts that somebody
// has; without the Service they get 404.
func TestDefaultBackend(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-default-backend", "edge/web:http")
	status, _ := d.get("http://"+d.http+"/", "nobodys.test")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, d.stderr.String(), "Service edge/web: -default-backend names it: Service edge/web does not exist")
	d.claim("edge", "127.0.0.29", "  rules: [{host: edge.test}]")
	d.until(func() bool { return d.answers("nobodys.test", "/") == "127.0.0.29:18080" })
	require.Equal(t, "127.0.0.29:18080", d.answers("blog.demo.test", "/none"))
	require.Equal(t, "127.0.0.14:18080", d.answers("blog.demo.test", "/posts"))
	d.edit("edge.yaml", func(s string) string { return strings.Replace(s, "127.0.0.29", "127.0.0.28", 1) })
	d.until(func() bool { return d.answers("nobodys.test", "/") == "127.0.0.28:18080" })
}

// echo sends a line over TCP and returns the lines that come back.
func echo(address string, lines ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	fmt.Fprint(conn, strings.Join(lines, ""))
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	all, err := io.ReadAll(conn)
	return string(all), err
}

const tcpMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: tcp, namespace: edge}
data:
`

// TestTCPServices: ports of a ConfigMap lead to Services, with the PROXY protocol where it
// says so. Wrong entries are refused by their key.
func TestTCPServices(t *testing.T) {
	t.Parallel()
	host, port := accept(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	var at [3]string
	for i := range at {
		at[i] = freeAddress(t)
	}
	number := func(address string) string { _, p, _ := net.SplitHostPort(address); return p }
	d := startDemo(t, "-tcp-services", "edge/tcp", "-access-log", "http")
	require.Contains(t, d.stderr.String(), "ConfigMap edge/tcp: -tcp-services names it, and there is none")
	d.edit("echo.yaml", func(string) string { return site("echo", "echo.test", port, host) })
	d.until(func() bool { return strings.Contains(d.stdout.String(), "echo.test") })
	d.edit("tcp.yaml", func(string) string {
		return tcpMap + fmt.Sprintf("  %q: evil/echo:80\n  %q: evil/echo:http:PROXY\n  %q: evil/echo:80::PROXY\n  %q: evil/echo:80\n  \"80\": evil/echo:80\n  \"9443\": evil\n  \"9444\": evil/none:80\n",
			number(at[0]), number(at[1]), number(at[2]), number(d.http))
	})
	d.until(func() bool { got, err := echo(at[0], "hello\n"); return err == nil && got == "hello\n" })
	got, err := echo(at[1], "PROXY TCP4 198.51.100.9 192.0.2.1 1111 80\r\n", "hello\n")
	require.NoError(t, err)
	require.Equal(t, "hello\n", got)
	require.Regexp(t, `^198\.51\.100\.9:1111 .* tcp-`+number(at[1]), d.logged("198.51.100.9"))
	got, err = echo(at[2], "hello\n")
	require.NoError(t, err)
	require.Regexp(t, `^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+\r\nhello\n$`, got)
	for _, want := range []string{
		`data["80"]: "80" is not a port from 1024 to 65535: it is not served`,
		`data["9443"]: "evil": want namespace/service:port: it is not served`,
		`data["` + number(d.http) + `"]: HAProxy or the controller listens at that port already`,
		`data["9444"]: connections are closed: Service evil/none does not exist`,
	} {
		d.until(func() bool { return strings.Contains(strings.ReplaceAll(d.stderr.String(), `\"`, `"`), want) })
	}
	d.until(func() bool { return strings.Count(d.stdout.String(), "one reload") == 1 })
	d.edit("echo.yaml", func(string) string { return site("echo", "echo.test", d.first(), "127.0.0.20") })
	d.until(func() bool {
		got, err := echo(at[0], "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		return err == nil && strings.Contains(got, "127.0.0.20")
	})
	d.until(func() bool { return strings.Count(d.stdout.String(), "no reload") >= 1 })
	require.Equal(t, 1, strings.Count(d.stdout.String(), "one reload"), "an endpoint takes none")

	// No endpoint leads to a port of the ConfigMap, which would go in a circle.
	d.edit("circle.yaml", func(string) string { return site("circle", "circle.test", number(at[0]), "127.0.0.1") })
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), at[0]+" is where HAProxy or the controller listens")
	})
	d.edit("tcp.yaml", func(string) string { return tcpMap + "  \"1\": x\n" })
	d.until(func() bool { _, err := net.Dial("tcp", at[0]); return err != nil })
}

// nameserver answers each question with the addresses of its kind that are said now.
func nameserver(t *testing.T, says func(name string) []net.IP) (address string) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			end, name := 12, ""
			for end < n && b[end] != 0 {
				name += string(b[end+1:end+1+int(b[end])]) + "."
				end += 1 + int(b[end])
			}
			question := b[12 : end+5]
			answer := append([]byte{b[0], b[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			for _, ip := range says(name) {
				kind := byte(28) // AAAA
				if four := ip.To4(); four != nil {
					ip, kind = four, 1
				}
				if binary.BigEndian.Uint16(question[len(question)-4:]) == uint16(kind) {
					answer[7]++
					answer = append(append(answer, 0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 1, 0, byte(len(ip))), ip...)
				}
			}
			_, _ = conn.WriteTo(answer, from)
		}
	})
	t.Cleanup(func() { conn.Close(); wg.Wait() })
	return conn.LocalAddr().String()
}

const external = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ext, namespace: ext}
spec:
  ingressClassName: haptic
  rules: [{host: ext.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: ext, port: {number: PORT}}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {name: ext, namespace: ext}
spec: {type: ExternalName, externalName: "NAME"}
`

// TestExternalName: it is refused with the reason, unless a flag allows it; then HAProxy
// follows the name. What is this host for certain is refused all the same.
func TestExternalName(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	six := net.ParseIP("2001:db8::1") // which leads nowhere
	leads := []net.IP{six, net.IPv4(127, 0, 0, 20)}
	dns := nameserver(t, func(name string) []net.IP {
		mu.Lock()
		defer mu.Unlock()
		if name == "db.example.com." {
			return leads
		}
		return nil
	})
	d := startDemo(t, "-allow-external-name", "-dns-server", dns)
	save := func(d *demo, name string) {
		d.edit("ext.yaml", func(string) string { return strings.NewReplacer("PORT", d.first(), "NAME", name).Replace(external) })
	}
	save(d, "DB.example.com.")
	d.until(func() bool { return d.answers("ext.test", "/") == "127.0.0.20:18080" })
	mu.Lock()
	leads = slices.Repeat([]net.IP{net.IPv4(127, 0, 0, 21)}, 60) // more than 512 bytes
	mu.Unlock()
	d.until(func() bool { return d.answers("ext.test", "/") == "127.0.0.21:18080" })
	for name, want := range map[string]string{
		"localhost":       `spec.externalName: answers 503: "localhost" is this host`,
		"a.localhost":     `"a.localhost" is this host`,
		"169.254.169.254": "is a link-local address",
		"127.1":           `"127.1" is not a host name`,
		"a b":             `"a b" is not a host name`,
	} {
		save(d, name)
		d.until(func() bool { return strings.Contains(strings.ReplaceAll(d.stderr.String(), `\"`, `"`), want) })
	}
	d.until(func() bool {
		status, _ := d.get("http://"+d.http+"/", "ext.test")
		return status == http.StatusServiceUnavailable
	})

	off := startDemo(t)
	save(off, "db.example.com")
	off.until(func() bool {
		return strings.Contains(off.stderr.String(), "Service ext/ext (") && strings.Contains(off.stderr.String(), "spec.type: answers 503: ExternalName is not served, as the name may lead anywhere later")
	})
}

// TestServiceWithoutSelector: the addresses of an EndpointSlice that somebody wrote are
// served, by the name of a port as by its number.
func TestServiceWithoutSelector(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.edit("own.yaml", func(string) string {
		s := strings.Replace(site("own", "own.test", d.first(), "127.0.0.22"), "number: 80", "name: http", 1)
		return strings.Replace(s, "spec: {ports: [{name: http, port: 80}]}", "spec: {ports: [{name: http, port: 80, targetPort: 9}, {name: other, port: 81}]}", 1)
	})
	d.until(func() bool { return d.answers("own.test", "/") == "127.0.0.22:18080" })
}
