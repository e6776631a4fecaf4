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

func TestRedact(t *testing.T) {
	t.Parallel()
	tests := []struct{ line, want string }{
		{"server a 10.0.0.1:80 check", "server a 10.0.0.1:80 check"},
		{"user bob insecure-password hunter2 groups g", "user bob insecure-password (secret)"},
		{"user bob pasword hunter2", "user bob (secret)"},
		{"user haproxy", "user haproxy"},
		{"stats auth admin:hunter2", "stats auth (secret)"},
		{"http-request set-header Authorization \"Basic abc\"", "http-request set-header Authorization (secret)"},
		{"http-request deny if { req.hdr(x-token) -m str(token=abc) }", "http-request deny if { (secret)"},
		{"setenv TOKEN abc", "setenv (secret)"},
		{"dynamic-cookie-key abc", "dynamic-cookie-key (secret)"},
		{"cluster-secret abc", "cluster-secret (secret)"},
		{"eab-mac-key abc", "eab-mac-key (secret)"},
		{"http-request set-var(txn.a) req.hdr(a),hmac(sha256,abc)", "http-request set-var(txn.a) (secret)"},
		{"server a 192.0.2.1:80 agent-check agent-send \"abc\"", "server a 192.0.2.1:80 agent-check agent-send (secret)"},
		{"tcp-check send AUTH\\ abc\\r\\n", "tcp-check send (secret)"},
		{"option httpchk GET / HTTP/1.1\\r\\nAuthorization:\\ Basic\\ abc", "option httpchk GET / (secret)"},
		{"http-check send meth GET hdr Authorization abc", "http-check send meth GET hdr Authorization (secret)"},
		{"http-request set-header \"Cookie\" abc", "http-request set-header \"Cookie\" (secret)"},
		{"http-request set-header X-Site-Key abc", "http-request set-header X-Site-Key (secret)"},
		{"http-request redirect location https://bob:abc@a.example/ code 302", "http-request redirect location https://(secret)@a.example/ code 302"},
		{"server a bob:abc@192.0.2.1:80", "server a (secret)@192.0.2.1:80"},
		{"stats auht admin:abc", "stats auht (secret)"},
		{"presetenv PASS abc", "presetenv (secret)"},
		{"option mysql-check user root password abc", "option mysql-check user root password (secret)"},
		{"bind quic4@:443 ssl crt /etc/haproxy/ssl/a.pem", "bind quic4@:443 ssl crt /etc/haproxy/ssl/a.pem"},
		{"bind :443 ssl crt /etc/haproxy/ssl/a-key.pem alpn h2", "bind :443 ssl crt /etc/haproxy/ssl/a-key.pem alpn h2"},
		{"http-request set-var(txn.password) str(abc)", "http-request (secret)"},
		{"cookie SRV insert indirect", "cookie SRV insert indirect"},
		{"http-request auth unless { http_auth(users) }", "http-request auth (secret)"},
		{"http-request set-header X-Auth abc", "http-request set-header X-Auth (secret)"},
		{"acl a url_param(api_key) -m str abc", "acl a (secret)"},
		{"http-request set-var(txn.private_key) str(abc)", "http-request (secret)"},
		{"http-request set-header X-Private abc", "http-request set-header X-Private (secret)"},
		{"http-request set-header X \"basic abc\"", "http-request set-header X \"basic (secret)"},
	}
	for _, tt := range tests {
		if got := Redact(tt.line); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.line, got, tt.want)
		}
	}
	if got := RedactQuoted("unknown option 'hunter2' of 'user'", "user bob pasword hunter2"); strings.Contains(got, "hunter2") {
		t.Errorf("message %s", got)
	}
}
