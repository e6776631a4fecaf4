package dataplane

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

func TestRedactWords(t *testing.T) {
	for in, want := range map[string]string{
		"bind :80":                                     "bind :80",
		"cookie SRV insert":                            "cookie SRV insert",
		"server a 1.2.3.4:80 cookie a":                 "server a 1.2.3.4:80 cookie a",
		"user a password x groups b":                   "user a password (secret)",
		"user a insecure-password x":                   "user a insecure-password (secret)",
		"stats auth a:b":                               "stats auth (secret)",
		"http-request set-header Authorization x y":    "http-request set-header Authorization (secret)",
		"http-request set-header X-Auth-Token x":       "http-request set-header X-Auth-Token (secret)",
		"http-check send hdr Cookie x":                 "http-check send hdr Cookie (secret)",
		"http-request set-var(txn.a) str(token=abc)":   "http-request set-var(txn.a) (secret)",
		"acl a req.hdr(authorization) -m str x":        "acl a (secret)",
		"tcp-check send 'AUTH x'":                      "tcp-check send (secret)",
		"setenv A b":                                   "setenv (secret)",
		"dynamic-cookie-key x":                         "dynamic-cookie-key (secret)",
		"http-request auth realm x if { path /private": "http-request auth (secret)",
		"use_backend a if { path_beg /auth }":          "use_backend a if { path_beg /auth }",
		"no option password":                           "no option password",
	} {
		words, err := haproxycfg.Fields(in)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(redactWords(words), " "), in)
	}
}

func TestParseMap(t *testing.T) {
	got := parseMap([]byte("# c\na b\r\n\n \t x \t y z \nonly\n#\n #no comment\n"))
	want := []mapEntry{{"a", "b"}, {"x", "y z"}, {"only", ""}, {"#no", "comment"}}
	require.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(mapEntry{})))
}

func FuzzParseMap(f *testing.F) {
	f.Add("# c\na b\n\n x  y z\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries := parseMap([]byte(text))
		var b strings.Builder
		for _, e := range entries {
			if e.key == "" || strings.ContainsAny(e.key, " \t\n") || strings.Contains(e.value, "\n") || strings.HasPrefix(e.value, " ") {
				t.Fatalf("entry %q", e)
			}
			if strings.HasPrefix(e.key, "#") {
				return // it is one only because blanks stand before it
			}
			b.WriteString(e.key + " " + e.value + "\n")
		}
		require.Equal(t, entries, parseMap([]byte(b.String())))
	})
}

func FuzzParseServer(f *testing.F) {
	f.Add("server a 1.2.3.4:80 check inter 2s disabled")
	f.Add("server a [::1]:80 ssl verify")
	f.Fuzz(func(t *testing.T, text string) {
		words, err := haproxycfg.Fields(text)
		if err != nil {
			return
		}
		s, ok := parseServer(words)
		if !ok {
			return
		}
		for _, name := range serverFields(&s, &s) {
			_ = s.value(name)
		}
		if addr, ok := s.literal(); ok {
			host, port := splitAddress(addr.String())
			require.NotEmpty(t, host)
			require.NotEqual(t, "0", port)
		}
	})
}

func TestParseStates(t *testing.T) {
	got, err := parseStates(`1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_port
3 b1 1 s1 127.0.0.3 2 0 3 82
3 b1 7 s2 - 0 5 1 0
`)
	require.NoError(t, err)
	require.Equal(t, serverStates{
		"s1": {id: 1, address: "127.0.0.3", port: "82", weight: 3, operational: 2},
		"s2": {id: 7, address: "-", port: "0", weight: 1, maintenance: true},
	}, got)
	for _, answer := range []string{"", "Can't find backend.", "1\n# srv_id\n1 2\n", "1\n# srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_port\nx a b 1 1 1 1\n"} {
		_, err := parseStates(answer)
		require.Error(t, err, answer)
	}
}

func FuzzParseStates(f *testing.F) {
	f.Add("1\n# srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_port\n1 a b 1 1 1 1\n")
	f.Fuzz(func(t *testing.T, answer string) {
		states, err := parseStates(answer)
		if err != nil && states != nil {
			t.Error("an error with a result")
		}
	})
}

// A secret never shows, wherever in a line it stands behind such a word.
func FuzzRedact(f *testing.F) {
	f.Add("stats auth", "a:hunter2")
	f.Fuzz(func(t *testing.T, before, after string) {
		words, err := haproxycfg.Fields("x " + before)
		if err != nil {
			return
		}
		words = append(words, "password", "hunter2"+after)
		require.NotContains(t, strings.Join(redactWords(words), " "), "hunter2"+after)
	})
}

func TestParseCrtList(t *testing.T) {
	got := parseCrtList([]byte("# c\n\n a.pem  [alpn h2]\t*.x !y\nb.pem\n"))
	require.Equal(t, [][]string{{"a.pem", "[alpn", "h2]", "*.x", "!y"}, {"b.pem"}}, got)
}

// What HAProxy 2.7 and later answer to a reload that fails.
func TestExplain(t *testing.T) {
	l, err := NewLocal(LocalOptions{Dir: "/srv/haptic"})
	require.NoError(t, err)
	s := &syncing{l: l}
	said := []string{"[NOTICE]   (1) : haproxy version is 3.0", "[ALERT]    (1) : config : parsing [/srv/haptic/haproxy.cfg:7] : unknown keyword 'x'"}
	e := l.explain("reload", ErrReload, s.words(t.Context(), 0, said))
	require.EqualError(t, e, "local: reload: haproxy.cfg:7: reload failed: config : parsing [haproxy.cfg:7] : unknown keyword 'x'")
}

func TestParsePatterns(t *testing.T) {
	got := parsePatterns([]byte("# c\na\r\n\n \tb c \n #no comment\na\nlast"))
	require.Equal(t, []string{"a", "b c ", "#no comment", "last"}, got)
}

func FuzzParsePatterns(f *testing.F) {
	f.Add("# c\na\n b\n")
	f.Fuzz(func(t *testing.T, text string) {
		seen := make(map[string]bool)
		for _, p := range parsePatterns([]byte(text)) {
			if p == "" || seen[p] || strings.ContainsAny(p, "\r\n") || p[0] == ' ' || p[0] == '\t' {
				t.Fatalf("pattern %q", p)
			}
			seen[p] = true
		}
	})
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{"3.2.26-1": {3, 2}, "2.6.12-1+deb12u4": {2, 6}, "3.10-dev1": {3, 10}, "": {}, "x": {}, "3": {}, "-1.2": {}} {
		require.Equal(t, want, parseVersion(text), text)
	}
}

// The parts of a bundle hold the same blocks in the same order, and each fits.
func FuzzBundleParts(f *testing.F) {
	f.Add([]byte("one"), []byte("two"), uint8(9))
	f.Fuzz(func(t *testing.T, a, b []byte, n uint8) {
		var all []byte
		for i := range int(n) {
			block := &pem.Block{Type: "CERTIFICATE", Bytes: [][]byte{a, b}[i%2]}
			all = append(append(all, "text\n\n"...), pem.EncodeToMemory(block)...)
		}
		const size = 400
		var blocks []string
		for _, part := range bundleParts(all, size) {
			count := 0
			for rest := part; ; count++ {
				var block *pem.Block
				if block, rest = pem.Decode(rest); block == nil {
					break
				}
				blocks = append(blocks, string(block.Bytes))
			}
			if len(part) > size && count > 1 {
				t.Fatalf("%d blocks in %d bytes", count, len(part))
			}
		}
		require.Len(t, blocks, int(n))
		for i, block := range blocks {
			require.Equal(t, string([][]byte{a, b}[i%2]), block)
		}
	})
}

func TestInfoField(t *testing.T) {
	const info = "Name: HAProxy\nPid: 12\nMaxconn: 100\nHard_maxconn: 200\n"
	require.Equal(t, "12", infoField(info, "Pid"))
	require.Equal(t, "100", infoField(info, "Maxconn"))
	require.Empty(t, infoField(info, "conn"))
}
