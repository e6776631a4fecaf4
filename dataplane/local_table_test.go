package dataplane_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// haproxyVersion is that of the haproxy in PATH.
func haproxyVersion(t testing.TB) dataplane.Version {
	t.Helper()
	needHAProxy(t)
	out, err := exec.Command("haproxy", "-v").Output()
	require.NoError(t, err)
	var v dataplane.Version
	_, err = fmt.Sscanf(string(out), "HAProxy version %d.%d", &v.Major, &v.Minor)
	require.NoError(t, err)
	return v
}

// backends is a blueprint of one backend with those lines.
func backends(lines ...string) blueprint {
	return func(h *host) (string, []dataplane.File) {
		return h.global() + "frontend f\n bind " + h.socket("f") + "\n default_backend b\nbackend b\n " + strings.Join(lines, "\n ") + "\n", nil
	}
}

// withFile is a blueprint of a text with %s for the path of a file, and that file.
func withFile(text string, f dataplane.File, others ...dataplane.File) blueprint {
	return func(h *host) (string, []dataplane.File) {
		text := strings.NewReplacer("PATH", h.local.Layout().Path(f.Kind, f.Name), "DIR", h.dir, "SOCKET", h.socket("f")).Replace(text)
		files := append([]dataplane.File{f}, others...)
		for i := range files {
			if files[i].Kind == dataplane.CRTList { // in a certificate, these letters mean something else
				files[i].Content = bytes.ReplaceAll(files[i].Content, []byte("DIR"), []byte(h.dir))
			}
		}
		return h.global() + text, files
	}
}

// upstreams are servers that answer to health checks.
type upstreams struct{ plain, other, tls, proxied string }

func newUpstreams(t testing.TB) *upstreams {
	u := &upstreams{}
	both := localCertificate(t, "up.test")
	pair, err := tls.X509KeyPair(both, both)
	require.NoError(t, err)
	serve := func(handle func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var all sync.WaitGroup
		all.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				all.Go(func() {
					handle(conn)
					_ = conn.Close()
				})
			}
		})
		t.Cleanup(func() { _ = l.Close(); all.Wait() })
		return l.Addr().String()
	}
	answer := func(conn net.Conn) {
		buf := make([]byte, 256)
		_, _ = conn.Read(buf)
		_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\n")
	}
	u.plain, u.other = serve(answer), serve(answer)
	u.tls = serve(func(conn net.Conn) {
		secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}})
		if secured.Handshake() == nil {
			answer(secured)
		}
	})
	u.proxied = serve(func(conn net.Conn) {
		buf := make([]byte, 6)
		if _, err := io.ReadFull(conn, buf); err == nil && string(buf) == "PROXY " {
			answer(conn)
		}
	})
	return u
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// runtimeCase is a change that takes no reload.
type runtimeCase struct {
	before, after blueprint
	since         dataplane.Version
	names         map[string]string // of backends, by those in the process; "" for one that is gone
}

func serverCases(u *upstreams) map[string]runtimeCase {
	one := func(old, now string) runtimeCase {
		return runtimeCase{before: backends("server s " + old), after: backends("server s " + now)}
	}
	with := func(head, old, now string) runtimeCase {
		return runtimeCase{before: backends(head, "server s "+old), after: backends(head, "server s "+now)}
	}
	come := func(head, line string) runtimeCase {
		return runtimeCase{before: backends(head, "server s "+u.plain), after: backends(head, "server s "+u.plain, "server t "+line)}
	}
	const check = " check inter 50ms fastinter 50ms rise 1 fall 2 "
	const http = "option httpchk"
	cases := map[string]runtimeCase{
		"server update address":                  one(u.plain, u.other),
		"server update address with a check":     one(u.plain+check, u.other+check),
		"server update address to IPv6":          one("192.0.2.1:80", "[2001:db8:0:0:1:0:0:1]:81"),
		"server update weight":                   one(u.plain+" weight 3", u.plain+" weight 7"),
		"server update weight that goes":         one(u.plain+" weight 3", u.plain),
		"server update weight that stands twice": one(u.plain+" weight 3", u.plain+" weight 4 weight 9"),
		"server update state":                    one(u.plain, u.plain+" disabled"),
		"server update state back":               one(u.plain+check+"disabled", u.plain+check),
		"server update maxconn":                  one(u.plain+" maxconn 5", u.plain+" maxconn 6"),
		"server update maxconn that comes":       one(u.plain, u.plain+" maxconn 6"),
		"server update maxconn that goes":        one(u.plain+" maxconn 5", u.plain),

		"server update weight of a default-server":    with("default-server weight 5", u.plain+" weight 3", u.plain),
		"server update maxconn over a default-server": with("default-server maxconn 5", u.plain, u.plain+" maxconn 3"),
		"server update state of a default-server":     with("default-server disabled", u.plain, u.plain+" enabled"),
		"server update weight, consistent":            with("balance uri\n hash-type consistent", u.plain, u.plain+" weight 3"),

		"server create":                      come(http, u.other),
		"server create, checked":             come(http, u.other+check),
		"server create, checked over TLS":    come("option tcp-check", u.tls+check+"ssl verify none"),
		"server create, checked by PROXY":    come(http, u.proxied+check+"send-proxy"),
		"server create, checked elsewhere":   come(http, u.tls+check+"ssl verify none port "+port(u.plain)),
		"server create, of a default-server": come("default-server"+check+"weight 3 maxconn 4", u.other+" weight 9"),
		"server create, disabled":            come(http, u.other+check+"disabled"),
		"server create, limited":             come(http, u.other+" maxconn 3 maxqueue 5"),
		"server create, backup":              come("option allbackups", u.other+" backup"),
		"server create in a sticky backend":  come("cookie A insert", u.other),
		"server delete":                      {before: backends("server s "+u.plain, "server t "+u.other), after: backends("server t " + u.other)},
		"server delete, checked":             {before: backends("server s "+u.plain+check, "server t "+u.other), after: backends("server t " + u.other)},
		"server delete in a sticky backend":  {before: backends("cookie A insert", "server s "+u.plain+" cookie s", "server t "+u.other), after: backends("cookie A insert", "server t "+u.other)},
		"server create cookie":               come("cookie A insert", u.other+" cookie t"),
		"server create, of a default-server, TLS": {
			before: backends("default-server ssl verify none"+check, "server s "+u.tls),
			after:  backends("default-server ssl verify none"+check, "server s "+u.tls, "server t "+u.tls+" weight 2"),
		},
	}
	c := cases["server create cookie"]
	c.since = dataplane.Version{Major: 3, Minor: 0}
	cases["server create cookie"] = c
	return cases
}

func backendCases(u *upstreams) map[string]runtimeCase {
	const lines = "\n balance leastconn\n option httpchk\n default-server check inter 50ms fastinter 50ms rise 1 fall 2\n"
	const spare = "backend haptic-spare-0" + lines
	text := func(sections ...string) string {
		return "frontend f\n bind SOCKET\n use_backend %[req.hdr(host),map(PATH)]\n" + strings.Join(sections, "")
	}
	routes := func(lines ...string) dataplane.File {
		return dataplane.File{Kind: dataplane.Map, Name: "m.map", Content: []byte("# routes\n" + strings.Join(lines, ""))}
	}
	shop := "backend shop" + lines + " server a " + u.plain + "\n server b " + u.other + " weight 3 maxconn 7\n server c " + u.plain + " disabled\n"
	with, without := withFile(text(spare, shop), routes("a shop\n")), withFile(text(spare), routes())
	// The lines are those of defaults with a name.
	const named = "defaults of-shops\n mode http\n timeout connect 1s\n timeout server 1s\n timeout check 1s\n option redispatch" + lines
	own := strings.Replace(shop, lines, "\n", 1)
	fromWith, fromWithout := withFile(text(named, own), routes("a shop\n")), withFile(text(named), routes())
	since := dataplane.Version{Major: 3, Minor: 4}
	return map[string]runtimeCase{
		"backend from defaults create":                  {before: fromWithout, after: fromWith, since: since},
		"backend from defaults create, without servers": {before: fromWithout, after: withFile(text(named, "backend shop from of-shops\n"), routes("a shop\n")), since: since},
		"backend from defaults delete":                  {before: fromWith, after: fromWithout, since: since},
		"backend create":                                {before: without, after: with, names: map[string]string{"haptic-spare-0": "shop"}},
		"backend create, of a spare with servers": {before: withFile(text(spare, " server a 127.0.0.1:9 disabled\n server x 127.0.0.1:9 disabled\n"), routes()),
			after: withFile(text(spare, " server a 127.0.0.1:9 disabled\n server x 127.0.0.1:9 disabled\n", shop), routes("a shop\n")), names: map[string]string{"haptic-spare-0": "shop"}},
		"backend create, without servers": {before: without, after: withFile(text(spare, "backend shop"+lines), routes("a shop\n")), names: map[string]string{"haptic-spare-0": "shop"}},
		"backend delete":                  {before: with, after: without, names: map[string]string{"shop": ""}},
	}
}

func fileCases(t testing.TB) map[string]runtimeCase {
	file := func(kind dataplane.FileKind, name string, lines ...string) dataplane.File {
		return dataplane.File{Kind: kind, Name: name, Content: []byte(strings.Join(lines, "\n") + "\n")}
	}
	made := func(kind dataplane.FileKind, name, host string) dataplane.File {
		return dataplane.File{Kind: kind, Name: name, Content: localCertificate(t, host)}
	}
	change := func(text string, old, now dataplane.File, others ...dataplane.File) runtimeCase {
		return runtimeCase{before: withFile(text, old, others...), after: withFile(text, now, others...)}
	}
	many := func(n int, format string) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprintf(format, i))
		}
		return lines
	}
	const (
		mapped   = "frontend f\n bind SOCKET\n use_backend %[req.hdr(host),map(PATH)]\n"
		ordered  = "frontend f\n bind SOCKET\n use_backend %[req.hdr(host),map_reg(PATH)]\n"
		patterns = "frontend f\n bind SOCKET\n http-request deny if { req.hdr(host) -i -f PATH }\n"
		networks = "frontend f\n bind SOCKET\n acl local src -f PATH\n http-request deny if local\n"
		listed   = "frontend f\n bind SOCKET ssl crt-list PATH\n"
		strict   = "frontend f\n bind SOCKET ssl strict-sni crt-list PATH\n"
		ca       = "backend b\n server s 192.0.2.1:443 ssl verify required ca-file PATH\n"
	)
	list := func(entries ...string) dataplane.File {
		for i, e := range entries {
			entries[i] = "DIR/ssl/" + e
		}
		return file(dataplane.CRTList, "l.txt", entries...)
	}
	a, b := made(dataplane.Certificate, "a.pem", "a.test"), made(dataplane.Certificate, "b.pem", "b.test")
	bundle := func(n int) dataplane.File {
		var all []byte
		for i := range n {
			cert, _, _ := bytes.Cut(localCertificate(t, fmt.Sprintf("ca-%d.test", i)), []byte("-----BEGIN PRIVATE"))
			all = append(all, cert...)
		}
		return dataplane.File{Kind: dataplane.CA, Name: "ca.pem", Content: all}
	}
	entries := file(dataplane.Map, "m.map", "a.test one  ", "b.test two", "c.test")
	cases := map[string]runtimeCase{
		"map entry create":                             change(mapped, entries, file(dataplane.Map, "m.map", "a.test one", "b.test two", "c.test", "d.test three words  ")),
		"map entry update":                             change(mapped, entries, file(dataplane.Map, "m.map", "a.test 1", "b.test two", "c.test")),
		"map entry delete":                             change(mapped, entries, file(dataplane.Map, "m.map", "b.test two")),
		"map entry delete, twice":                      change(mapped, file(dataplane.Map, "m.map", "a 1", "a 2", "b 3"), file(dataplane.Map, "m.map", "a 2", "b 3")),
		"map entry update, of all":                     change(mapped, file(dataplane.Map, "m.map", many(2000, "host-%d.test one")...), file(dataplane.Map, "m.map", many(2000, "host-%d.test two")...)),
		"map entry create, in order":                   change(ordered, file(dataplane.Map, "ordered.map", "^a 1", "^b 2"), file(dataplane.Map, "ordered.map", "^c 3", "^a 1", "^b 2")),
		"acl entry create":                             change(patterns, file(dataplane.General, "p.txt", "a.test"), file(dataplane.General, "p.txt", "a.test", "# c", " b.test")),
		"acl entry delete":                             change(networks, file(dataplane.General, "p.txt", "192.0.2.0/24", "198.51.100.1"), file(dataplane.General, "p.txt", "198.51.100.1")),
		"acl entry create, many":                       change(patterns, file(dataplane.General, "p.txt", "a.test"), file(dataplane.General, "p.txt", many(3000, "host-%d.test")...)),
		"certificate update":                           change("frontend f\n bind SOCKET ssl crt PATH\n", a, made(dataplane.Certificate, "a.pem", "new.test")),
		"certificate create and crt-list entry create": {before: withFile(listed, list("a.pem"), a), after: withFile(listed, list("a.pem", "b.pem"), a, b)},
		"certificate delete and crt-list entry delete": {before: withFile(listed, list("a.pem", "b.pem"), a, b), after: withFile(listed, list("a.pem"), a)},
		"crt-list entry update":                        change(listed, list("a.pem", "b.pem"), list("a.pem", "b.pem c.test"), a, b),
		"crt-list entry update, the first":             change(strict, list("a.pem", "b.pem"), list("a.pem c.test", "b.pem"), a, b),
		"crt-list entry delete, the first":             {before: withFile(strict, list("a.pem", "b.pem"), a, b), after: withFile(strict, list("b.pem"), b)},
		"ca update":                                    change(ca, bundle(1), bundle(2)),
	}
	return cases
}

// Every row of the table, on the haproxy that is there: the process stays and
// is then as one that starts with the new configuration.
func TestRuntimeChangesHold(t *testing.T) {
	t.Parallel()
	version := haproxyVersion(t)
	cases := serverCases(newUpstreams(t))
	for _, more := range []map[string]runtimeCase{fileCases(t), backendCases(newUpstreams(t))} {
		for name, c := range more {
			cases[name] = c
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for processes and health checks
			h := newHost(t)
			text, files := c.before(h)
			last := h.sync(text, files...)
			text, files = c.after(h)
			if version.Compare(c.since) < 0 {
				require.Equal(t, 1, h.sync(text, files...).Reloads)
				return
			}
			h.atRuntime(last, text, files...)
			h.asFresh(c.after, c.names)
		})
	}
	for _, row := range dataplane.RuntimeChanges() {
		what := strings.TrimSpace(fmt.Sprintf("%s %s %s", row.Kind, row.Action, row.Field))
		covered := false
		for name := range cases {
			covered = covered || strings.Contains(name, what)
		}
		require.True(t, covered, "no case for %q", what)
	}
}
