package dataplane_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

// ask sends one command to the stats socket.
func (h *host) ask(command string) string {
	h.t.Helper()
	conn, err := haproxyctl.Dial(h.t.Context(), h.local.RuntimeSocket())
	require.NoError(h.t, err)
	defer func() { _ = conn.Close() }()
	answer, err := conn.Exec(h.t.Context(), command)
	require.NoError(h.t, err)
	return answer
}

func TestLocalServersAtRuntime(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two, three := h.server("127.0.0.2"), h.server("127.0.0.3"), h.server("127.0.0.4")
	last := h.sync(h.web("server a " + one))

	// A server comes, with checks, and takes its share.
	last = h.atRuntime(last, h.web("server a "+one, "server b "+two+" check inter 100ms fall 1000"))
	eventually(t, "b answers", func() bool { return h.answers(4)[two] == 2 })

	// Another, and one that is disabled.
	last = h.atRuntime(last, h.web("server a "+one, "server b "+two+" check inter 100ms fall 1000", "server c "+three+" disabled"))
	require.Zero(t, h.answers(6)[three])
	last = h.atRuntime(last, h.web("server a "+one, "server b "+two+" check inter 100ms fall 1000", "server c "+three))
	require.Equal(t, map[string]int{one: 2, two: 2, three: 2}, h.answers(6))

	// Weights.
	last = h.atRuntime(last, h.web("server a "+one+" weight 0", "server b "+two+" check inter 100ms fall 1000", "server c "+three+" weight 2 maxconn 7"))
	require.Equal(t, map[string]int{two: 2, three: 4}, h.answers(6))
	last = h.atRuntime(last, h.web("server a "+one, "server b "+two+" check inter 100ms fall 1000", "server c "+three))
	require.Equal(t, map[string]int{one: 2, two: 2, three: 2}, h.answers(6))

	// Servers go, also one that was in the configuration from the start.
	last = h.atRuntime(last, h.web("server c "+three))
	require.Equal(t, map[string]int{three: 6}, h.answers(6))
	require.NotContains(t, h.ask("show servers state shop"), " b ")

	// None at all is an answer, too, and the name is free again.
	last = h.atRuntime(last, h.web("balance roundrobin")[:len(h.web("balance roundrobin"))-len("    balance roundrobin\n")])
	status, _ := h.get("shop.test", "/")
	require.Equal(t, http.StatusServiceUnavailable, status)
	h.atRuntime(last, h.web("server a "+two, "server b "+one))
	require.Equal(t, map[string]int{one: 3, two: 3}, h.answers(6))
}

// Up to HAProxy 2.8 servers added without an identifier to an empty backend push
// each other out of the tree of balance random.
func TestLocalServersOfEmptyRandomBackend(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	addresses := []string{h.server("127.0.0.2"), h.server("127.0.0.3"), h.server("127.0.0.4")}
	last := h.sync(h.web("balance random"))
	h.atRuntime(last, h.web("balance random", "server a "+addresses[0], "server b "+addresses[1], "server c "+addresses[2]))
	eventually(t, "all three answer", func() bool { return len(h.answers(30)) == 3 })
}

func TestLocalServerWithConnections(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	two := h.server("127.0.0.3")
	// A server that answers slowly holds a connection while it goes.
	slow := h.server("127.0.0.2")
	last := h.sync(h.web("server slow "+slow, "server b "+two+" weight 0"))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	body, release := io.Pipe()
	answered := make(chan error, 1)
	go func() {
		resp, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/", h.port), "text/plain", body)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		answered <- err
	}()
	_, err := release.Write([]byte("begun"))
	require.NoError(t, err)
	eventually(t, "the request is under way", func() bool {
		return strings.Contains(h.ask("show sess"), "srv=slow")
	})
	last = h.atRuntime(last, h.web("server b "+two))
	require.Equal(t, map[string]int{two: 3}, h.answers(3))
	require.Contains(t, h.ask("show servers state shop"), " slow ", "it stays in maintenance")
	require.Equal(t, last.WorkerPID, h.sync(h.web("server b "+two)).WorkerPID)
	require.NoError(t, release.Close())
	require.NoError(t, <-answered, "the request is not cut")
	weight := 1
	eventually(t, "the server goes with a later change", func() bool {
		weight = weight%200 + 1
		last = h.atRuntime(last, h.web(fmt.Sprintf("server b %s weight %d", two, weight)))
		return !strings.Contains(h.ask("show servers state shop"), " slow ")
	})
}

func TestLocalMapsAtRuntime(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	path := h.local.Layout().Path(dataplane.Map, "hosts.map")
	reg := h.local.Layout().Path(dataplane.Map, "paths.map")
	text := h.global() + fmt.Sprintf(`frontend web
    bind 127.0.0.1:%d
    http-request set-header x-note %%[req.hdr(host),map(%s,none)]
    http-request return status 200 content-type text/plain lf-string "%%[path,map_reg(%s,none)]" if { path_beg /reg }
    use_backend %%[req.hdr(host),lower,map_str(%s)]
backend one
    server a %s
backend two
    server a %s
`, h.port, path, reg, path, one, two)
	maps := func(hosts, paths string) []dataplane.File {
		return []dataplane.File{{Kind: dataplane.Map, Name: "hosts.map", Content: []byte(hosts)},
			{Kind: dataplane.Map, Name: "paths.map", Content: []byte(paths)}}
	}
	answer := func(host string) string { _, body := h.get(host, "/"); return body }
	last := h.sync(text, maps("a.test one\n", "^/reg/a first\n")...)
	require.Equal(t, one, answer("a.test"))

	last = h.atRuntime(last, text, maps("a.test two\nb.test one\n", "^/reg/a first\n")...)
	require.Equal(t, two, answer("a.test"))
	require.Equal(t, one, answer("b.test"))
	require.Equal(t, 2, last.Commands)

	last = h.atRuntime(last, text, maps("b.test one\n", "^/reg/a first\n")...)
	require.NotEqual(t, two, answer("a.test"))

	// An entry before another one of a map that is read in order.
	last = h.atRuntime(last, text, maps("b.test one\n", "^/reg/abc better\n^/reg/a first\n")...)
	_, body := h.get("b.test", "/reg/abc")
	require.Equal(t, "better", body)

	// So many that the map is replaced; values of several words.
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "host-%d.test two\n", i)
	}
	b.WriteString("b.test one\n")
	last = h.atRuntime(last, text, maps(b.String(), "^/reg/a two words; and $1 \\ more\n")...)
	require.Equal(t, two, answer("host-2999.test"))
	require.Equal(t, two, answer("host-0.test"))
	require.Equal(t, one, answer("b.test"))
	_, body = h.get("b.test", "/reg/a")
	require.Equal(t, `two words; and $1 \ more`, body)
	require.Len(t, strings.Split(h.ask("show map "+path), "\n"), 3001)

	// What was stored is what a new process reads.
	h.stop()
	h.start()
	require.True(t, h.sync(text, maps(b.String(), "^/reg/a two words; and $1 \\ more\n")...).Plan.Empty())
	require.Equal(t, two, answer("host-2999.test"))
}

// localCertificate makes a self-signed certificate with its key. A blank line
// between the blocks is common, and would end a payload.
func localCertificate(t testing.TB, commonName string) []byte {
	t.Helper()
	certificate, key := haproxytest.SelfSigned(t, commonName)
	return slices.Concat(certificate, []byte("\n\n"), key)
}

func TestLocalCertificatesAtRuntime(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	layout := h.local.Layout()
	text := h.web("server a "+one) + fmt.Sprintf("frontend tls\n    bind 127.0.0.1:%d ssl crt-list %s\n    default_backend shop\n",
		h.tls, layout.Path(dataplane.CRTList, "list.txt"))
	def, second, third := localCertificate(t, "default.test"), localCertificate(t, "second.test"), localCertificate(t, "third.test")
	entry := func(name, rest string) string { return layout.Path(dataplane.Certificate, name) + rest + "\n" }
	files := func(list string, certs map[string][]byte) []dataplane.File {
		out := []dataplane.File{{Kind: dataplane.CRTList, Name: "list.txt", Content: []byte(list)}}
		for name, content := range certs {
			out = append(out, dataplane.File{Kind: dataplane.Certificate, Name: name, Content: content})
		}
		return out
	}
	last := h.sync(text, files(entry("def.pem", ""), map[string][]byte{"def.pem": def})...)
	require.Equal(t, "default.test", h.handshake("second.test"))

	// Rotated.
	rotated := localCertificate(t, "rotated.test")
	last = h.atRuntime(last, text, files(entry("def.pem", ""), map[string][]byte{"def.pem": rotated})...)
	require.Equal(t, "rotated.test", h.handshake("default.test"))

	// New ones, with an entry each.
	last = h.atRuntime(last, text, files(entry("def.pem", "")+entry("b.pem", "")+entry("c.pem", " third.test"),
		map[string][]byte{"def.pem": rotated, "b.pem": second, "c.pem": third})...)
	require.Equal(t, "second.test", h.handshake("second.test"))
	require.Equal(t, "third.test", h.handshake("third.test"))

	// An entry gets another filter.
	last = h.atRuntime(last, text, files(entry("def.pem", "")+entry("b.pem", "")+entry("c.pem", " other.test"),
		map[string][]byte{"def.pem": rotated, "b.pem": second, "c.pem": third})...)
	require.Equal(t, "third.test", h.handshake("other.test"))
	require.Equal(t, "rotated.test", h.handshake("third.test"))

	// They go.
	h.atRuntime(last, text, files(entry("def.pem", "")+entry("c.pem", " other.test"), map[string][]byte{"def.pem": rotated, "c.pem": third})...)
	require.Equal(t, "rotated.test", h.handshake("second.test"))
	require.NotContains(t, h.ask("show ssl cert"), "b.pem")
	_, err := os.Stat(filepath.Join(h.dir, "ssl", "b.pem"))
	require.ErrorIs(t, err, os.ErrNotExist)

	// The key is for HAProxy and nobody else.
	info, err := os.Stat(filepath.Join(h.dir, "ssl", "def.pem"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o007)

	// A certificate whose key does not fit is refused by the process that
	// runs and by a reload, and the old one stays.
	broken := append(append([]byte{}, second[:strings.Index(string(second), "-----BEGIN PRIVATE")]...),
		third[strings.Index(string(third), "-----BEGIN PRIVATE"):]...)
	_, err = h.local.Sync(t.Context(), h.config(text, files(entry("def.pem", "")+entry("c.pem", " other.test"),
		map[string][]byte{"def.pem": broken, "c.pem": third})...))
	require.ErrorIs(t, err, dataplane.ErrReload)
	require.NotContains(t, err.Error(), "PRIVATE")
	require.Equal(t, "rotated.test", h.handshake("default.test"))
}

func TestLocalReloads(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	page := dataplane.File{Kind: dataplane.General, Name: "503.http", Content: []byte("HTTP/1.0 503 No\r\n\r\nfirst\n")}
	text := h.web("errorfile 503 " + h.local.Layout().Path(page.Kind, page.Name))
	last := h.sync(text, page)
	_, body := h.get("shop.test", "/")
	require.Equal(t, "first\n", body)

	page.Content = []byte("HTTP/1.0 503 No\r\n\r\nsecond\n")
	result := h.sync(text, page)
	require.Equal(t, 1, result.Reloads)
	require.NotEqual(t, last.WorkerPID, result.WorkerPID)
	_, body = h.get("shop.test", "/")
	require.Equal(t, "second\n", body)

	unused := dataplane.File{Kind: dataplane.General, Name: "unused.txt", Content: []byte("x")}
	idle := h.sync(text, page, unused)
	require.Zero(t, idle.Reloads+idle.Commands)
	require.Equal(t, 1, idle.Files)
	idle = h.sync(text, page)
	require.Zero(t, idle.Reloads+idle.Commands)
	_, err := os.Stat(filepath.Join(h.dir, "general", unused.Name))
	require.ErrorIs(t, err, os.ErrNotExist)

	// Many changes at once are one reload.
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "backend more_%d\n    server a %s\n", i, one)
	}
	require.Equal(t, 1, h.sync(text+b.String(), page).Reloads)
}

// Without a stats socket every change takes a reload, and the plan says why.
func TestLocalWithoutStatsSocket(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	without := func(s string) string {
		start := strings.Index(s, "    stats socket")
		return s[:start] + s[start+strings.IndexByte(s[start:], '\n')+1:]
	}
	h.sync(without(h.web("server a " + one)))
	plan, err := h.local.DryRun(t.Context(), h.config(without(h.web("server a "+two))))
	require.NoError(t, err)
	require.Equal(t, dataplane.ImpactReload, plan.Impact())
	require.Contains(t, plan.String(), "has no stats socket")
	result := h.sync(without(h.web("server a " + two)))
	require.Equal(t, 1, result.Reloads)
	require.Empty(t, result.Fallback)
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body)
}

// What HAProxy refuses at runtime becomes a reload.
func TestLocalRefusedCommand(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	h.sync(h.web("server a " + one))
	// Somebody deletes the server behind our back.
	h.ask("set server shop/a state maint")
	require.Contains(t, h.ask("del server shop/a"), "deleted")
	result := h.sync(h.web("server a " + two))
	require.Equal(t, 1, result.Reloads)
	require.Contains(t, result.Fallback, "No such server")
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body)
}

// Requests go on through changes of every kind, none of them fails.
func TestLocalTrafficDuringChanges(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	// The servers have the same port, as pods of a service do: HAProxy 2.6 sets
	// address and port one after the other, and a request that connects between
	// the two goes astray.
	one := h.server("127.0.0.2")
	two := h.serverAt("127.0.0.3" + one[strings.IndexByte(one, ':'):])
	h.sync(h.web("server a " + one))
	ctx, cancel := context.WithCancel(t.Context())
	failures := make(chan string, 2)
	for range cap(failures) {
		go func() {
			for ctx.Err() == nil {
				if status, body := h.get("shop.test", "/"); status != http.StatusOK {
					failures <- fmt.Sprint(status, " ", body)
					return
				}
			}
			failures <- ""
		}()
	}
	rounds := 4
	if *full {
		rounds = 10
	}
	for i := range rounds {
		// Every round starts with a reload; the servers of the old process
		// must not be those that the next change is for.
		timeout := fmt.Sprintf("timeout server %ds", 5+i)
		last := h.syncOnly(h.web(timeout, "server a "+one))
		last = h.atRuntime(last, h.web(timeout, "server a "+two))
		last = h.atRuntime(last, h.web(timeout, "server a "+one, "server b "+two))
		h.atRuntime(last, h.web(timeout, "server b "+two))
	}
	cancel()
	for range cap(failures) {
		require.Empty(t, <-failures)
	}
}
