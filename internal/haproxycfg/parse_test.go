package haproxycfg

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Finding
	}{
		{name: "fine", text: `# made by hand
global
  maxconn 100
  stats socket /run/h.sock mode 600 level admin
  tune.h2.be.rxbuf 1m
  log stdout format raw local0
defaults
  mode http
  timeout client 1s
  no option http-server-close
frontend web
  bind :80
  acl a path_beg /x # a comment
  http-request set-fc-mark 1 if a
  use_backend b if a
backend b
  balance roundrobin
  default-server inter 2s
  server "s 1" 127.0.0.1:80 check
userlist u
  user a insecure-password b
peers p
  peer a 127.0.0.1:1000
resolvers r
  nameserver a 127.0.0.1:53
http-errors e
  errorfile 503 /x.http
cache c
  total-max-size 4
`},
		{name: "unknown keyword", text: "global\n  maxconn 100\nbackend b\n  server a 127.0.0.1:80\n  sever b 127.0.0.1:80\n\n  foo\n", want: []Finding{
			{Line: 5, Text: "sever b 127.0.0.1:80", Message: `unknown keyword "sever"`},
			{Line: 7, Text: "foo", Message: `unknown keyword "foo"`},
		}},
		{name: "unknown section", text: "backend b\n  server a 127.0.0.1:80\nbakend c\n  server b 127.0.0.1:80\n", want: []Finding{
			{Line: 3, Text: "bakend c", Message: `unknown keyword "bakend"`},
		}},
		{name: "in front of all", text: "# x\nfoo bar\nglobal\n", want: []Finding{
			{Line: 2, Text: "foo bar", Message: `unknown keyword "foo" in front of the first section`},
		}},
		{name: "no name", text: "defaults\n  mode http\nbackend\n  mode http\n", want: []Finding{
			{Line: 3, Text: "backend", Message: "a backend section needs a name"},
		}},
		{name: "quotes", text: "backend b\n  http-request return status 200 string \"x\n  mode http\n", want: []Finding{
			{Line: 2, Text: `http-request return status 200 string "x`, Message: "column 41: syntax error: quote is not closed"},
		}},
		{name: "a keyword that client-native cannot read", text: "backend b\n  balance\n  server\n  timeout\n"},
		{name: "with no", text: "backend b\n  no foo\n  no option foo\n", want: []Finding{
			{Line: 2, Text: "no foo", Message: `unknown keyword "foo"`},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []Finding
			for _, s := range Split(tt.text) {
				got = append(got, Parse(s)...)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParse checks that no section makes the parser panic, that findings lie
// in the section, and that lines of known keywords make none.
func FuzzParse(f *testing.F) {
	f.Add("backend b\n  server a 127.0.0.1:80\n  foo\n")
	f.Add("defaults\n  no option x \"\n")
	f.Add("userlist\nuser a\n\\x\n")
	f.Add("\nbackend b from c\n stick-table type ip size 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range Split(text) {
			last := s.Line + strings.Count(s.Text, "\n")
			for _, finding := range Parse(s) {
				if finding.Line < s.Line || finding.Line > last {
					t.Fatalf("finding in line %d of a section from %d to %d", finding.Line, s.Line, last)
				}
				if finding.Message == "" {
					t.Fatal("finding without a message")
				}
			}
		}
	})
}
