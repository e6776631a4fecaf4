package haproxycfg

import "testing"

// Headers as HAProxy 2.6, 3.0 and 3.2 take them, or one of these does not.
func TestParseHeader(t *testing.T) {
	tests := []struct{ line, want string }{
		{"backend a", ""},
		{"backend a:b.c_d-1", ""},
		{"backend a from d", ""},
		{"defaults a!b c d", ""},
		{"defaults", ""},
		{"program a!b", ""},
		{"cache a!b", ""},
		{"crt-store", ""},
		{"resolvers a b", ""},
		{"ring a b", ""},
		{"backend \"$NAME\"", ""},
		{"backend a # b", ""},
		{"backend", "a backend section needs a name"},
		{"backend ''", "a backend section needs a name"},
		{"backend a b", `a backend section cannot have "b" here: HAProxy refuses the section, or drops it in silence`},
		{"backend a from", `a backend section cannot have "from" here: HAProxy refuses the section, or drops it in silence`},
		{"backend a from d e", `a backend section cannot have "e" here: HAProxy refuses the section, or drops it in silence`},
		{"frontend a 127.0.0.1:80", `a frontend section cannot have "127.0.0.1:80" here: HAProxy refuses the section, or drops it in silence`},
		{"peers a b", `a peers section cannot have "b" here`},
		{"cache a b", `a cache section cannot have "b" here`},
		{"crt-store a b", `a crt-store section cannot have "b" here`},
		{"global a", `a global section cannot have "a" here`},
		{"backend a!b", `character '!' is not permitted in the name of a backend section`},
		{"backend 'a b'", `character ' ' is not permitted in the name of a backend section`},
		{"userlist ä", `character 'ä' is not permitted in the name of a userlist section`},
		{"resolvers a/b", `character '/' is not permitted in the name of a resolvers section`},
	}
	for _, tt := range tests {
		got := ""
		for _, f := range Parse(Split(tt.line + "\n")[0]) {
			got = f.Message
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.line, got, tt.want)
		}
	}
}
