package haproxycfg

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNormaliseKeepsWhatItTakes(t *testing.T) {
	const text = `# a comment on top
global
    log stdout format raw local0
    stats socket /run/haproxy.sock mode 600 level admin
    setenv A "b c"
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    errorfile 503 /etc/haproxy/errors/503.http
frontend z
    bind :8080
    bind :8443 ssl crt-list /etc/haproxy/general/list.txt alpn h2,http/1.1
    acl is_a path_beg /a
    acl is_a path_beg /b
    http-request return status 200 content-type "text/plain" string "a b # c" if is_a
    http-request set-header X-A "%[src] \"q\" it's"
    http-request set-var(txn.m) base,map_beg(/etc/haproxy/maps/p.map)
    log-format "%ci:%cp [%tr] %ft"
    use_backend %[var(txn.m)] if { var(txn.m) -m found }
    default_backend b
backend b
    balance roundrobin
    option httpchk GET /health
    http-check expect status 200
    default-server check inter 2s
    server s1 127.0.0.1:80 weight 10
    server s2 127.0.0.1:81 weight 10 disabled
    server-template t 1-3 127.0.0.1:90
backend a
    server s1 127.0.0.1:80 # comment
listen l
    bind :9000
    mode tcp
    server x [::1]:80 send-proxy-v2 resolvers r
resolvers r
    nameserver n 127.0.0.1:53
`
	once, err := Normalise(text)
	require.NoError(t, err)
	twice, err := Normalise(once)
	require.NoError(t, err)
	if once != twice {
		t.Errorf("not stable:\n%s\nthen\n%s", once, twice)
	}
	t.Log(once)
	for _, want := range []string{
		"defaults unnamed_defaults_1", "backend a from unnamed_defaults_1",
		`string "a b # c" if is_a`, `set-header X-A "%[src] \"q\" it's"`, "server s2 127.0.0.1:81 weight 10 disabled",
	} {
		if !strings.Contains(once, want) {
			t.Errorf("%q is not in it", want)
		}
	}
}

func TestNormaliseRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		why  string
	}{
		"conditional block":      {"global\n  daemon\n.if feature(LUA)\n  maxconn 5\n.endif\n", 3, "conditional"},
		"long line":              {"global\n  # " + strings.Repeat("x", 64<<10) + "\n  daemon\n", 2, "drops everything"},
		"unknown section":        {"defaults\n  mode http\nnamespace_list\n  namespace a\n", 3, "does not know"},
		"section of 3.4":         {"global\n  daemon\nhealthcheck a\n  type tcp\n", 3, "does not know"},
		"double section":         {"backend a\n  mode http\nbackend b\nbackend a\n  mode tcp\n", 4, "line 1"},
		"two stores":             {"crt-store\n  load crt a.pem\ncrt-store\n  load crt b.pem\n", 3, "line 1"},
		"defaults too low":       {"global\nbackend a\n  mode http\ndefaults\n  mode tcp\n", 4, "in line 2"},
		"password too late":      {"userlist u\n  user a groups x,y password b\n", 2, "loses a password"},
		"not UTF-8":              {"global\n  description \xff\n", 2, "UTF-8"},
		"parser panics":          {"global\n  daemon\n  setenv\nbackend b\n", 3, "something is missing"},
		"global too low":         {"backend a\nglobal\n  daemon\n  crt-base /a\n", 4, "to the top"},
		"default-server too low": {"backend a\n  server s 127.0.0.1:1\n  default-server check\n", 3, "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Normalise(c.text)
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("got %v, want a *Refusal", err)
			}
			if r.Line != c.line || !strings.Contains(r.Error(), c.why) {
				t.Errorf("got %v, want line %d and %q", r, c.line, c.why)
			}
		})
	}
}

func FuzzNormalise(f *testing.F) {
	f.Add("global\n  daemon\nfrontend a\n  bind :80\n")
	f.Add("defaults x\n  mode http\nbackend b from x\n  server s 127.0.0.1:80 weight 1\n")
	f.Add("# c\n\nbackend b\n  default-server check\n  server s \"127.0.0.1:80\" # c\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) >= 0 {
			return // NewConfig refuses control characters
		}
		once, err := Normalise(text)
		if err != nil {
			var r *Refusal
			if errors.As(err, &r) && (r.Line < 1 || r.Line > strings.Count(text, "\n")+1) {
				t.Fatalf("line %d of %q", r.Line, text)
			}
			return
		}
		if lost := checkLost(directives(text), directives(once)); lost != nil {
			t.Fatal(lost)
		}
	})
}
