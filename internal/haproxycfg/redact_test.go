package haproxycfg

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		words, err := Fields(in)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(RedactWords(words), " "), in)
	}
}

// A secret never shows, wherever in a line it stands behind such a word.
func FuzzRedact(f *testing.F) {
	f.Add("stats auth", "a:hunter2")
	f.Fuzz(func(t *testing.T, before, after string) {
		words, err := Fields("x " + before)
		if err != nil {
			return
		}
		words = append(words, "password", "hunter2"+after)
		require.NotContains(t, strings.Join(RedactWords(words), " "), "hunter2"+after)
	})
}

func TestParseCrtList(t *testing.T) {
	got := ParseCRTList([]byte("# c\n\n a.pem  [alpn h2]\t*.x !y\nb.pem\n"))
	require.Equal(t, []ListEntry{{"a.pem", "[alpn", "h2]", "*.x", "!y"}, {"b.pem"}}, got)
}

func TestListEntrySplit(t *testing.T) {
	for text, want := range map[string][2][]string{
		"a.pem":                         {},
		"a.pem *.x !y":                  {nil, {"*.x", "!y"}},
		"a.pem [alpn h2] b.test":        {{"alpn", "h2"}, {"b.test"}},
		"a.pem [ alpn h2 ] b.test":      {{"alpn", "h2"}, {"b.test"}},
		"a.pem [verify required] *.c d": {{"verify", "required"}, {"*.c", "d"}},
	} {
		options, filters := ListEntry(strings.Fields(text)).Split()
		require.Equal(t, want, [2][]string{options, filters}, text)
	}
}
